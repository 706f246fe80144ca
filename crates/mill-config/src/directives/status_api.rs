//! `millstream_api` and `status_zone`: what is told of servers and groups, and changed, while they run.

use crate::Text;
use crate::config::Api;
use crate::directive::{
    Apply, Arity, Contexts, Directive, LOCATION, NOT_HERE_YET, Notice, SERVER_LOCATION, once,
};
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
        Apply::With(|r, s| {
            r.level.status_zone = Some(Text::from(s.arg(1).bytes.as_slice()));
            Ok(())
        }),
        "Name under which the API counts the requests of a server or location.",
    )
    .unread(NOT_HERE_YET, Notice::Given),
];

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
