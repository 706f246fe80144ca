//! The blocks `http`, `server` and `location`, and the names of servers.

use crate::Text;
use crate::config::{ListenAddress, LocationName, ServerName};
use crate::directive::{
    Apply, Arity, Contexts, Directive, HTTP, HTTP_AND_STREAM, HTTP_SERVER, MAIN, SERVER,
    SERVER_LOCATION, Value, many, once,
};
use crate::directives::{listen, log};
use crate::lexer::{Statement, Word};
use crate::resolve::draft::{HttpDraft, LocationDraft, Origin, ServerDraft};
use crate::resolve::{Applied, Resolver};

const HASHES: &str = "tables size themselves";

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "http",
        MAIN,
        Arity::Exactly(0),
        Apply::Block(http),
        "Everything that serves HTTP.",
    ),
    many(
        "server",
        HTTP,
        Arity::Exactly(0),
        Apply::Block(server),
        "A virtual server.",
    ),
    many(
        "location",
        SERVER_LOCATION,
        Arity::Between(1, 2),
        Apply::Block(location),
        "Settings for paths: exact (=), by prefix (and ^~), by regular expression (~, ~*), or named (@).",
    ),
    many(
        "server_name",
        SERVER,
        Arity::AtLeast(1),
        Apply::With(server_name),
        "Names of the server: exact, *.name, name.*, .name, or ~expression.",
    ),
    once(
        "connection_pool_size",
        HTTP_SERVER,
        Arity::Exactly(1),
        "512",
        Apply::WithoutEffect(Value::Size, "connections have no pool of their own"),
        "Memory taken at once for a connection.",
    ),
    once(
        "request_pool_size",
        HTTP_SERVER,
        Arity::Exactly(1),
        "4k",
        Apply::WithoutEffect(Value::Size, "requests take buffers of a fixed size"),
        "Memory taken at once for a request.",
    ),
    once(
        "server_names_hash_max_size",
        HTTP,
        Arity::Exactly(1),
        "512",
        Apply::WithoutEffect(Value::Number, HASHES),
        "Size of the table of server names.",
    ),
    once(
        "server_names_hash_bucket_size",
        HTTP,
        Arity::Exactly(1),
        "64",
        Apply::WithoutEffect(Value::Number, HASHES),
        "Bucket of the table of server names.",
    ),
    once(
        "variables_hash_max_size",
        HTTP_AND_STREAM,
        Arity::Exactly(1),
        "1024",
        Apply::WithoutEffect(Value::Number, HASHES),
        "Size of the table of variables.",
    ),
    once(
        "variables_hash_bucket_size",
        HTTP_AND_STREAM,
        Arity::Exactly(1),
        "64",
        Apply::WithoutEffect(Value::Number, HASHES),
        "Bucket of the table of variables.",
    ),
];

fn http(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    if resolver.http.is_some() {
        return Err(resolver.refused(statement, "is duplicate"));
    }
    resolver.http = Some(HttpDraft {
        log_formats: vec![log::combined()],
        ..Default::default()
    });
    let main = std::mem::take(&mut resolver.level);
    resolver.server = ServerDraft::default();
    let parsed = resolver.block(statement, Contexts::HTTP);
    let level = std::mem::replace(&mut resolver.level, main);
    let end = resolver.position();
    if let Some(http) = &mut resolver.http {
        http.end = end;
        http.level = level;
    }
    parsed
}

/// Port of a server without `listen`, with and without super-user privileges.
const DEFAULT_PORTS: (u16, u16) = (80, 8000);

fn server(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let index = resolver.http.as_ref().map_or(0, |http| http.servers.len());
    // The index in the list is reserved at once: `listen` refers to servers by index.
    if let Some(http) = &mut resolver.http {
        http.servers.push(ServerDraft::default());
    }
    let draft = ServerDraft {
        index,
        ..Default::default()
    };
    let outer_server = std::mem::replace(&mut resolver.server, draft);
    let outer_level = std::mem::take(&mut resolver.level);
    let parsed = resolver.block(statement, Contexts::SERVER);
    let listening = parsed.and_then(|()| default_listen(resolver, statement));
    let level = std::mem::replace(&mut resolver.level, outer_level);
    let mut draft = std::mem::replace(&mut resolver.server, outer_server);
    draft.level = level;
    if draft.names.is_empty() {
        draft.names.push(ServerName::Exact(Text::default()));
        draft.name_texts.push(Text::default());
        draft
            .name_origins
            .push(Some(Origin::of(statement, statement.name())));
    }
    if let Some(place) = resolver
        .http
        .as_mut()
        .and_then(|http| http.servers.get_mut(index))
    {
        *place = draft;
    }
    listening
}

fn default_listen(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    if resolver.server.has_listen {
        return Ok(());
    }
    let (privileged, other) = DEFAULT_PORTS;
    let port = if resolver.options.is_privileged {
        privileged
    } else {
        other
    };
    let address = ListenAddress::Inet((std::net::Ipv4Addr::UNSPECIFIED, port).into());
    let written = listen::Written::default();
    listen::add(resolver, statement, address, &written)
}

fn location(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let name = location_name(resolver, statement)?;
    check_nesting(resolver, statement, &name)?;
    let inner = LocationDraft {
        name: Some(name),
        ..Default::default()
    };
    let outer = std::mem::replace(&mut resolver.level, inner);
    let parsed = resolver.block(statement, Contexts::LOCATION);
    let inner = std::mem::replace(&mut resolver.level, outer);
    resolver.level.locations.push(inner);
    parsed
}

fn location_name(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<LocationName> {
    if let [modifier, name] = statement.args() {
        let path = Text::from(name.bytes.as_slice());
        return match modifier.bytes.as_slice() {
            b"=" => Ok(LocationName::Exact(path)),
            b"^~" => Ok(LocationName::Prefix {
                path,
                final_match: true,
            }),
            b"~" => regex_name(resolver, statement, name, &name.bytes, false),
            b"~*" => regex_name(resolver, statement, name, &name.bytes, true),
            _ => {
                let message = format!("invalid location modifier \"{}\"", modifier.display());
                let mut error = resolver.emerg(statement, modifier, message);
                error.help = Some(String::from("one of: =, ^~, ~, ~*"));
                Err(error)
            }
        };
    }
    let word = statement.arg(1);
    match word.bytes.as_slice() {
        [b'=', path @ ..] => Ok(LocationName::Exact(Text::from(path))),
        [b'^', b'~', path @ ..] => Ok(LocationName::Prefix {
            path: Text::from(path),
            final_match: true,
        }),
        [b'~', b'*', source @ ..] => regex_name(resolver, statement, word, source, true),
        [b'~', source @ ..] => regex_name(resolver, statement, word, source, false),
        path @ [b'@', ..] => Ok(LocationName::Named(Text::from(path))),
        path => Ok(LocationName::Prefix {
            path: Text::from(path),
            final_match: false,
        }),
    }
}

fn regex_name(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    word: &Word,
    source: &[u8],
    caseless: bool,
) -> Applied<LocationName> {
    let pattern = resolver.shared_pattern(source, caseless, statement, word)?;
    Ok(LocationName::Pattern(pattern))
}

/// nginx's errors for locations in locations, and for two with the same name.
fn check_nesting(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    name: &LocationName,
) -> Applied {
    let word = statement.args().last().unwrap_or(statement.name());
    let shown = String::from_utf8_lossy(name.text()).into_owned();
    let fail = |message: String| Err(resolver.emerg(statement, word, message));
    if resolver.context == Contexts::LOCATION
        && let Some(outer) = &resolver.level.name
    {
        let outer_shown = String::from_utf8_lossy(outer.text());
        match outer {
            LocationName::Exact(_) => {
                return fail(format!(
                    "location \"{shown}\" cannot be inside the exact location \"{outer_shown}\""
                ));
            }
            LocationName::Named(_) => {
                return fail(format!(
                    "location \"{shown}\" cannot be inside the named location \"{outer_shown}\""
                ));
            }
            _ => {}
        }
        if matches!(name, LocationName::Named(_)) {
            return fail(format!(
                "named location \"{shown}\" can be on the server level only"
            ));
        }
        let is_pattern = matches!(name, LocationName::Pattern(_));
        if !is_pattern && !name.text().starts_with(outer.text()) {
            return fail(format!(
                "location \"{shown}\" is outside location \"{outer_shown}\""
            ));
        }
    }
    let others = resolver
        .level
        .locations
        .iter()
        .filter_map(|other| other.name.as_ref());
    let is_same = |other: &LocationName| match (name, other) {
        (LocationName::Exact(a), LocationName::Exact(b))
        | (LocationName::Named(a), LocationName::Named(b))
        | (LocationName::Prefix { path: a, .. }, LocationName::Prefix { path: b, .. }) => a == b,
        _ => false,
    };
    let mut same = others.filter(|other| is_same(other));
    if same.next().is_some() {
        let message = format!("duplicate location \"{shown}\"");
        if matches!(name, LocationName::Named(_)) {
            // nginx does not notice and uses the first.
            let message = format!("{message}, ignored");
            resolver.warn(statement, word, message);
            return Ok(());
        }
        return Err(resolver.emerg(statement, word, message));
    }
    Ok(())
}

fn server_name(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    for word in statement.args() {
        let text = word.bytes.as_slice();
        let invalid = match text {
            [b'*', b'.', _, ..] => false,
            [b'*', ..] | [b'.'] => true,
            _ => false,
        };
        if invalid {
            let message = format!("server name \"{}\" is invalid", word.display());
            return Err(resolver.emerg(statement, word, message));
        }
        if text.contains(&b'/') {
            let message = format!("server name \"{}\" has suspicious symbols", word.display());
            resolver.warn(statement, word, message);
        }
        if let [b'~', source @ ..] = text {
            if source.is_empty() {
                let message = format!("empty regex in server name \"{}\"", word.display());
                return Err(resolver.emerg(statement, word, message));
            }
            // nginx ignores case if the expression has a capital letter.
            let caseless = source.iter().any(u8::is_ascii_uppercase);
            let pattern = resolver.shared_pattern(source, caseless, statement, word)?;
            resolver.server.names.push(ServerName::Pattern(pattern));
            resolver.server.name_texts.push(Text::from(text));
            resolver.server.name_origins.push(None);
            continue;
        }
        let text = if text.eq_ignore_ascii_case(b"$hostname") {
            resolver.options.hostname.to_ascii_lowercase()
        } else {
            text.to_ascii_lowercase()
        };
        resolver.server.names.push(plain_name(&text));
        resolver.server.name_texts.push(Text::from(text));
        resolver
            .server
            .name_origins
            .push(Some(Origin::of(statement, word)));
    }
    Ok(())
}

/// A lower-cased name, classified by its stars and dots.
fn plain_name(text: &[u8]) -> ServerName {
    if let Some(rest) = text.strip_prefix(b"*.") {
        ServerName::Below(Text::from(rest))
    } else if let Some(rest) = text.strip_prefix(b".") {
        ServerName::Domain(Text::from(rest))
    } else if let Some(rest) = text.strip_suffix(b".*") {
        ServerName::Prefix(Text::from(rest))
    } else {
        ServerName::Exact(Text::from(text))
    }
}
