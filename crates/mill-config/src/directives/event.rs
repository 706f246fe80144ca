//! The `events` block.

use crate::config::{Events, Network};
use crate::diagnostic::Diagnostic;
use crate::directive::{
    Apply, Arity, Contexts, Directive, EVENTS, MAIN, Notice, Value, many, once,
};
use crate::directives::access;
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};
use crate::value;

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "events",
        MAIN,
        Arity::Exactly(0),
        Apply::Block(events),
        "How connections are accepted.",
    ),
    once(
        "worker_connections",
        EVENTS,
        Arity::Exactly(1),
        "512",
        Apply::With(worker_connections),
        "Connections that one worker may have open.",
    ),
    once(
        "ssl_handshakes_per_turn",
        EVENTS,
        Arity::Exactly(1),
        "1",
        Apply::With(handshakes_per_turn),
        "TLS handshakes that a worker answers before it looks at its other connections again.",
    ),
    once(
        "use",
        EVENTS,
        Arity::Exactly(1),
        "",
        Apply::With(use_method),
        "How the kernel reports readiness: epoll.",
    ),
    once(
        "multi_accept",
        EVENTS,
        Arity::Exactly(1),
        "off",
        Apply::With(|r, s| {
            let value = r.flag(s)?;
            open(r).multi_accept = value;
            Ok(())
        }),
        "Accept all waiting connections in one turn.",
    )
    .unread(
        "how many connections are accepted in a turn follows the load",
        Notice::Spared,
    ),
    once(
        "accept_mutex",
        EVENTS,
        Arity::Exactly(1),
        "off",
        Apply::With(accept_mutex),
        "Workers take turns in accepting.",
    )
    .unread(NO_LOCK, Notice::Spared),
    once(
        "accept_mutex_delay",
        EVENTS,
        Arity::Exactly(1),
        "500ms",
        Apply::With(|r, s| {
            let value = r.read(s, value::milliseconds)?;
            open(r).accept_mutex_delay = value;
            Ok(())
        }),
        "How long a worker waits for its turn in accepting.",
    )
    .unread("there is no accept mutex to wait for", Notice::Given),
    many(
        "debug_connection",
        EVENTS,
        Arity::Exactly(1),
        Apply::With(debug_connection),
        "Clients whose connections are logged at level debug.",
    ),
    once(
        "worker_aio_requests",
        EVENTS,
        Arity::Exactly(1),
        "32",
        Apply::WithoutEffect(Value::Number, "files are not read by the kernel's aio"),
        "Outstanding asynchronous reads of files.",
    ),
    once(
        "epoll_events",
        EVENTS,
        Arity::Exactly(1),
        "512",
        Apply::WithoutEffect(Value::Number, "the size of one epoll batch is fixed"),
        "Events taken from the kernel at once.",
    ),
];

fn events(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    if resolver.main.events.is_some() {
        return Err(resolver.refused(statement, "is duplicate"));
    }
    resolver.main.events = Some(Events::default());
    resolver.block(statement, Contexts::EVENTS)
}

/// The events of the open block.
fn open<'a>(resolver: &'a mut Resolver<'_>) -> &'a mut Events {
    resolver.main.events.get_or_insert_with(Events::default)
}

fn worker_connections(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    open(resolver).worker_connections = number(resolver, statement)?;
    Ok(())
}

fn handshakes_per_turn(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let count = number(resolver, statement)?;
    if count == 0 {
        return Err(resolver.refused(statement, "must be 1 or more"));
    }
    open(resolver).handshakes_per_turn = count;
    Ok(())
}

fn number(resolver: &Resolver<'_>, statement: &Statement) -> Result<u32, Box<Diagnostic>> {
    let word = statement.arg(1);
    let count = value::number(&word.bytes).and_then(|count| u32::try_from(count).ok());
    count.ok_or_else(|| {
        let message = format!("invalid number \"{}\"", word.display());
        resolver.emerg(statement, word, message)
    })
}

fn use_method(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    match word.bytes.as_slice() {
        b"epoll" => Ok(()),
        b"select" | b"poll" => {
            let message = format!("event type \"{}\" is taken as \"epoll\"", word.display());
            resolver.notice(
                statement,
                word,
                message,
                "answers are the same; epoll is always there",
            );
            Ok(())
        }
        _ => {
            let message = format!("invalid event type \"{}\"", word.display());
            let mut error = resolver.emerg(statement, word, message);
            error.help = Some(String::from(
                "on Linux it is \"epoll\", also when nothing is said",
            ));
            Err(error)
        }
    }
}

fn accept_mutex(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let value = resolver.flag(statement)?;
    open(resolver).accept_mutex = value;
    if value {
        resolver.note_without_effect(statement, NO_LOCK);
    }
    Ok(())
}

/// Why accepting needs no mutex; `accept_mutex off`, the default, is in force and not reported.
const NO_LOCK: &str = "workers have listeners of their own or share one; none takes a lock";

fn debug_connection(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    if let Some((network, _)) = access::network(&word.bytes) {
        open(resolver).debug_connection.push(network);
        return Ok(());
    }
    let addresses = resolver.source.resolve(&word.bytes);
    if addresses.is_empty() {
        let message = format!("host not found in debug_connection \"{}\"", word.display());
        return Err(resolver.emerg(statement, word, message));
    }
    let bits = |address: &std::net::IpAddr| if address.is_ipv4() { 32 } else { 128 };
    let networks = addresses
        .iter()
        .map(|address| Network::Cidr(*address, bits(address)));
    open(resolver).debug_connection.extend(networks);
    Ok(())
}
