//! Connections: `keepalive_*`, `lingering_*`, `send_timeout`, `tcp_*`; and their limits.

use std::time::Duration;

use crate::config::settings::group;
use crate::directive::{
    ALL_LEVELS, ANY_LEVEL, Apply, Arity, Directive, Notice, SERVER_LOCATION, Value, many, once,
};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};
use crate::value;

group! {
    /// How long a connection stays open, and how it sends and closes.
    ConnectionSettings {
        /// `keepalive_timeout`, first value; zero closes after each answer.
        keepalive_timeout: Duration = Duration::from_secs(75),
        /// `keepalive_timeout`, second value: sent as `Keep-Alive: timeout=N`.
        keepalive_header: Option<Duration> = None,
        /// `keepalive_min_timeout`.
        keepalive_min_timeout: Duration = Duration::ZERO,
        /// `keepalive_requests` per connection.
        keepalive_requests: u64 = 1000,
        /// `keepalive_time`: after it a connection closes with its next answer.
        keepalive_time: Duration = Duration::from_secs(3600),
        /// `keepalive_disable`.
        keepalive_disable: KeepaliveDisable = KeepaliveDisable { msie6: true, safari: false },
        /// `lingering_close`.
        lingering_close: LingeringClose = LingeringClose::On,
        /// `lingering_time`.
        lingering_time: Duration = Duration::from_secs(30),
        /// `lingering_timeout`.
        lingering_timeout: Duration = Duration::from_secs(5),
        /// `send_timeout`, between two writes.
        send_timeout: Duration = Duration::from_secs(60),
        /// `reset_timedout_connection`.
        reset_timedout: bool = false,
        /// `tcp_nopush`.
        tcp_nopush: bool = false,
        /// `tcp_nodelay`.
        tcp_nodelay: bool = true,
    }
}

/// `keepalive_disable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepaliveDisable {
    /// No keep-alive after a POST from MSIE 6.
    pub msie6: bool,
    /// No keep-alive with Safari on macOS.
    pub safari: bool,
}

/// `lingering_close`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LingeringClose {
    /// Close at once.
    Off,
    /// Go on reading if the client may still be sending.
    On,
    /// Always go on reading.
    Always,
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "keepalive_timeout",
        ANY_LEVEL,
        Arity::Between(1, 2),
        "75s",
        Apply::With(keepalive_timeout),
        "How long an idle connection stays open, and what Keep-Alive says of it.",
    ),
    once(
        "keepalive_min_timeout",
        ANY_LEVEL,
        Arity::Exactly(1),
        "0",
        Apply::Milliseconds(|s| &mut s.connection.keepalive_min_timeout),
        "An idle connection is not closed earlier when others need its place.",
    )
    .unread(
        "idle connections are closed when their worker ends, and only then early",
        Notice::Given,
    ),
    once(
        "keepalive_requests",
        ANY_LEVEL,
        Arity::Exactly(1),
        "1000",
        Apply::Number(|s| &mut s.connection.keepalive_requests),
        "Most requests on a connection.",
    ),
    once(
        "keepalive_time",
        ANY_LEVEL,
        Arity::Exactly(1),
        "1h",
        Apply::Milliseconds(|s| &mut s.connection.keepalive_time),
        "Oldest age of a connection that stays open.",
    ),
    once(
        "keepalive_disable",
        ANY_LEVEL,
        Arity::Between(1, 2),
        "msie6",
        Apply::With(keepalive_disable),
        "Browsers whose connections do not stay open.",
    ),
    once(
        "lingering_close",
        ANY_LEVEL,
        Arity::Exactly(1),
        "on",
        Apply::With(|r, s| {
            let choices = [
                ("off", LingeringClose::Off),
                ("on", LingeringClose::On),
                ("always", LingeringClose::Always),
            ];
            r.level.settings.connection.lingering_close = Some(r.choice(s, s.arg(1), &choices)?);
            Ok(())
        }),
        "Read on before closing, so that the answer arrives.",
    ),
    once(
        "lingering_time",
        ANY_LEVEL,
        Arity::Exactly(1),
        "30s",
        Apply::Milliseconds(|s| &mut s.connection.lingering_time),
        "Longest time of reading on.",
    ),
    once(
        "lingering_timeout",
        ANY_LEVEL,
        Arity::Exactly(1),
        "5s",
        Apply::Milliseconds(|s| &mut s.connection.lingering_timeout),
        "Longest silence while reading on.",
    ),
    once(
        "send_timeout",
        ANY_LEVEL,
        Arity::Exactly(1),
        "60s",
        Apply::Milliseconds(|s| &mut s.connection.send_timeout),
        "Longest time between two successful writes.",
    ),
    once(
        "reset_timedout_connection",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.connection.reset_timedout),
        "Reset connections that timed out.",
    ),
    once(
        "tcp_nopush",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.connection.tcp_nopush),
        "Send head and file in full packets (TCP_CORK).",
    )
    .unread(
        "a head and the file behind it always leave in full packets",
        Notice::Spared,
    ),
    once(
        "tcp_nodelay",
        ALL_LEVELS,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.connection.tcp_nodelay),
        "Send small packets at once (TCP_NODELAY).",
    ),
    many(
        "stub_status",
        SERVER_LOCATION,
        Arity::Between(0, 1),
        Apply::With(|r, _| {
            r.level.become_handler();
            r.level.stub_status = true;
            Ok(())
        }),
        "Answers with the numbers of connections and requests.",
    ),
    many(
        "millstream_metrics",
        SERVER_LOCATION,
        Arity::Exactly(0),
        Apply::With(|r, _| {
            r.level.become_handler();
            r.level.metrics = true;
            Ok(())
        }),
        "Millstream's own: answers with all counters of all workers, in the text format of Prometheus.",
    ),
    once(
        "send_lowat",
        ANY_LEVEL,
        Arity::Exactly(1),
        "0",
        Apply::WithoutEffect(Value::Size, "works on FreeBSD only, in nginx too"),
        "Least free space of a socket before writing.",
    ),
];

fn keepalive_timeout(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let timeout = resolver.read(statement, value::milliseconds)?;
    resolver.level.settings.connection.keepalive_timeout = Some(timeout);
    // As in nginx, the second value is inherited separately.
    if let Some(word) = statement.args().get(1) {
        let header = value::seconds(&word.bytes)
            .ok_or_else(|| resolver.refused_at(statement, word, "invalid value"))?;
        resolver.level.settings.connection.keepalive_header =
            Some(Some(header).filter(|h| !h.is_zero()));
    }
    Ok(())
}

fn keepalive_disable(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let mut set = KeepaliveDisable {
        msie6: false,
        safari: false,
    };
    for word in statement.args() {
        let field = match word.bytes.to_ascii_lowercase().as_slice() {
            b"none" => continue,
            b"msie6" => &mut set.msie6,
            b"safari" => &mut set.safari,
            _ => {
                let message = format!("invalid value \"{}\"", word.display());
                let mut error = resolver.emerg(statement, word, message);
                error.help = Some(String::from("one of: none, msie6, safari"));
                return Err(error);
            }
        };
        if std::mem::replace(field, true) {
            let message = format!("duplicate value \"{}\"", word.display());
            resolver.warn(statement, word, message);
        }
    }
    resolver.level.settings.connection.keepalive_disable = Some(set);
    Ok(())
}
