//! Connections and contents of requests: `keepalive_*`, `lingering_*`, `client_*`, `send_timeout`,
//! `tcp_*`, `limit_rate`.

use crate::config::location::{Amount, ClientBodyFile, ClientBodyTemp};
use crate::config::settings::{KeepaliveDisable, LingeringClose};
use crate::directive::{
    ANY_LEVEL, ANY_LEVEL_AND_IF, Apply, Arity, Contexts, Directive, Notice, SERVER_LOCATION, Value,
    many, once,
};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver, templates};
use crate::value;

const LEVELS_AND_UPSTREAM: Contexts = ANY_LEVEL.and(Contexts::UPSTREAM);

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "keepalive_timeout",
        LEVELS_AND_UPSTREAM,
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
        Apply::Milliseconds(|s| &mut s.keepalive_min_timeout),
        "An idle connection is not closed earlier when others need its place.",
    )
    .unread(
        "idle connections are closed when their worker ends, and only then early",
        Notice::Given,
    ),
    once(
        "keepalive_requests",
        LEVELS_AND_UPSTREAM,
        Arity::Exactly(1),
        "1000",
        Apply::Number(|s| &mut s.keepalive_requests),
        "Most requests on a connection.",
    ),
    once(
        "keepalive_time",
        LEVELS_AND_UPSTREAM,
        Arity::Exactly(1),
        "1h",
        Apply::Milliseconds(|s| &mut s.keepalive_time),
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
            r.level.settings.lingering_close = Some(r.choice(s, s.arg(1), &choices)?);
            Ok(())
        }),
        "Read on before closing, so that the answer arrives.",
    ),
    once(
        "lingering_time",
        ANY_LEVEL,
        Arity::Exactly(1),
        "30s",
        Apply::Milliseconds(|s| &mut s.lingering_time),
        "Longest time of reading on.",
    ),
    once(
        "lingering_timeout",
        ANY_LEVEL,
        Arity::Exactly(1),
        "5s",
        Apply::Milliseconds(|s| &mut s.lingering_timeout),
        "Longest silence while reading on.",
    ),
    once(
        "send_timeout",
        ANY_LEVEL,
        Arity::Exactly(1),
        "60s",
        Apply::Milliseconds(|s| &mut s.send_timeout),
        "Longest time between two successful writes.",
    ),
    once(
        "reset_timedout_connection",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.reset_timedout_connection),
        "Reset connections that timed out.",
    ),
    once(
        "tcp_nopush",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.tcp_nopush),
        "Send head and file in full packets (TCP_CORK).",
    )
    .unread(
        "a head and the file behind it always leave in full packets",
        Notice::Spared,
    ),
    once(
        "tcp_nodelay",
        ANY_LEVEL,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.tcp_nodelay),
        "Send small packets at once (TCP_NODELAY).",
    ),
    once(
        "client_max_body_size",
        ANY_LEVEL,
        Arity::Exactly(1),
        "1m",
        Apply::Offset(|s| &mut s.client_max_body_size),
        "Longest content of a request; then 413. 0 is no limit.",
    ),
    once(
        "client_body_buffer_size",
        ANY_LEVEL,
        Arity::Exactly(1),
        "16k",
        Apply::Size(|s| &mut s.client_body_buffer_size),
        "Content that stays in memory.",
    )
    .unread(
        "the content of requests is read past, never kept, until something here wants it",
        Notice::Spared,
    ),
    once(
        "client_body_timeout",
        ANY_LEVEL,
        Arity::Exactly(1),
        "60s",
        Apply::Milliseconds(|s| &mut s.client_body_timeout),
        "Longest time between two reads of content; then 408.",
    ),
    once(
        "client_body_in_single_buffer",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.client_body_in_single_buffer),
        "Keep content in one piece.",
    )
    .unread(
        "the content of requests is read past, never kept, until something here wants it",
        Notice::Spared,
    ),
    once(
        "client_body_in_file_only",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::With(|r, s| {
            let choices = [
                ("off", ClientBodyFile::Off),
                ("on", ClientBodyFile::On),
                ("clean", ClientBodyFile::Clean),
            ];
            r.level.settings.client_body_in_file_only = Some(r.choice(s, s.arg(1), &choices)?);
            Ok(())
        }),
        "Keep content in files.",
    )
    .unread(
        "the content of requests is read past, never kept, until something here wants it",
        Notice::Given,
    ),
    once(
        "client_body_temp_path",
        ANY_LEVEL,
        Arity::Between(1, 4),
        "client_body_temp",
        Apply::With(client_body_temp_path),
        "Directory for contents of requests, and digits of its subdirectories.",
    )
    .unread(
        "the content of requests is read past, never kept, until something here wants it",
        Notice::Spared,
    ),
    once(
        "limit_rate",
        ANY_LEVEL_AND_IF,
        Arity::Exactly(1),
        "0",
        Apply::With(|r, s| {
            r.level.settings.limit_rate = Some(amount(r, s)?);
            Ok(())
        }),
        "Bytes per second of one answer. 0 is no limit.",
    ),
    once(
        "limit_rate_after",
        ANY_LEVEL_AND_IF,
        Arity::Exactly(1),
        "0",
        Apply::With(|r, s| {
            r.level.settings.limit_rate_after = Some(amount(r, s)?);
            Ok(())
        }),
        "Bytes of an answer before limit_rate holds.",
    ),
    many(
        "stub_status",
        SERVER_LOCATION,
        Arity::Between(0, 1),
        Apply::With(|r, _| {
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
            r.level.metrics = true;
            Ok(())
        }),
        "Millstream's own: answers with all counters of all workers, in the text format of Prometheus.",
    ),
    once(
        "resolver",
        LEVELS_AND_UPSTREAM,
        Arity::AtLeast(1),
        "",
        Apply::WithoutEffect(Value::Text, "nothing here looks names up while it serves"),
        "Name servers for upstreams and certificates.",
    ),
    once(
        "resolver_timeout",
        LEVELS_AND_UPSTREAM,
        Arity::Exactly(1),
        "30s",
        Apply::WithoutEffect(Value::Time, "nothing here looks names up while it serves"),
        "Longest look-up of a name.",
    ),
    once(
        "send_lowat",
        ANY_LEVEL,
        Arity::Exactly(1),
        "0",
        Apply::WithoutEffect(Value::Size, "works on FreeBSD only, in nginx too"),
        "Least free space of a socket before writing.",
    ),
    once(
        "msie_padding",
        ANY_LEVEL,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.msie_padding),
        "Comments after error pages for Internet Explorer and Chrome, which would not show short ones.",
    ),
    once(
        "msie_refresh",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.msie_refresh),
        "Pages that lead on, in the place of redirects for Internet Explorer.",
    ),
];

fn keepalive_timeout(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let timeout = resolver.read(statement, value::milliseconds)?;
    resolver.level.settings.keepalive_timeout = Some(timeout);
    // As in nginx, the second value is inherited by itself.
    if let Some(word) = statement.args().get(1) {
        let header = value::seconds(&word.bytes)
            .ok_or_else(|| resolver.refused_at(statement, word, "invalid value"))?;
        resolver.level.settings.keepalive_header = Some(Some(header).filter(|h| !h.is_zero()));
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
    resolver.level.settings.keepalive_disable = Some(set);
    Ok(())
}

/// All digits of the names of subdirectories: those of a file's number.
const LEVEL_DIGITS_MAX: u8 = 10;

fn client_body_temp_path(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let path = resolver.full_name(&statement.arg(1).bytes);
    let mut levels = [0_u8; 3];
    let mut left = LEVEL_DIGITS_MAX;
    for (word, place) in statement.args().iter().skip(1).zip(&mut levels) {
        let digits = value::number(&word.bytes)
            .and_then(|digits| u8::try_from(digits).ok())
            .filter(|digits| (1..=left).contains(digits))
            .ok_or_else(|| resolver.refused_at(statement, word, "invalid value"))?;
        left -= digits;
        *place = digits;
    }
    resolver.level.settings.client_body_temp_path = Some(ClientBodyTemp { path, levels });
    Ok(())
}

fn amount(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<Amount> {
    let word = statement.arg(1);
    if templates::has_variables(&word.bytes) {
        return Ok(Amount::Evaluated(resolver.template(
            &word.bytes,
            statement,
            word,
        )?));
    }
    Ok(Amount::Fixed(resolver.read(statement, value::size)?))
}
