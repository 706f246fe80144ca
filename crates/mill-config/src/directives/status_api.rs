//! `millstream_api` and `status_zone`: what is told of servers and groups, and changed, while they run.

use crate::Text;
use crate::config::Api;
use crate::directive::{Apply, Arity, Contexts, Directive, LOCATION, SERVER_LOCATION, once};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "millstream_api",
        LOCATION,
        Arity::Between(0, 1),
        "",
        Apply::With(api),
        "Millstream's own: answers with its state as JSON, as the API of NGINX Plus; with write=on it changes groups of servers.",
    ),
    once(
        "api",
        LOCATION,
        Arity::Between(0, 1),
        "",
        Apply::With(api),
        "The name of millstream_api in NGINX Plus.",
    ),
    once(
        "status_zone",
        SERVER_LOCATION.and(Contexts::IF_IN_LOCATION),
        Arity::Exactly(1),
        "",
        Apply::With(status_zone),
        "Name under which the API counts the requests of a server, or of a location and those inside it; off.",
    ),
];

fn status_zone(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let name = statement.arg(1).bytes.as_slice();
    let index = match &mut resolver.http {
        Some(http) if name != b"off" => {
            let zones = &mut http.status_zones;
            let known = zones.iter().position(|known| known.as_bytes() == name);
            Some(known.unwrap_or_else(|| {
                zones.push(Text::from(name));
                zones.len() - 1
            }))
        }
        _ => None,
    };
    resolver.level.status_zone = Some(index);
    Ok(())
}

fn api(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let write = match statement.args() {
        [] => false,
        [word] if word.bytes == b"write=on" => true,
        [word] if word.bytes == b"write=off" => false,
        [word, ..] => {
            let message = format!("invalid parameter \"{}\"", word.display());
            return Err(resolver.emerg(statement, word, message));
        }
    };
    resolver.level.become_handler();
    resolver.level.api = Some(Api { write });
    Ok(())
}
