//! `health_check` and `match`.

mod matching;

use std::time::Duration;

use crate::Text;
use crate::config::health_check::GrpcHealth;
use crate::config::{Failover, HealthCheck, HealthCheckKind};
use crate::directive::{Apply, Arity, Directive, HTTP, LOCATION, many};
use crate::lexer::{Statement, Word};
use crate::resolve::draft::Origin;
use crate::resolve::{Applied, Resolver};
use crate::value;

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "health_check",
        LOCATION,
        Arity::AtLeast(0),
        Apply::With(health_check),
        "Probes the servers that the location passes requests to: interval=, jitter=, fails=, passes=, uri=, method=, match=, port=, mandatory, persistent, type=tcp|grpc, grpc_service=, grpc_status=, keepalive_time=, failover=STATUS:ANSWERS:TIME.",
    ),
    many(
        "match",
        HTTP,
        Arity::Exactly(1),
        Apply::Block(matching::match_block),
        "What a server must answer to a probe: status, header, body, require.",
    ),
];

/// A `health_check` whose `match` may follow later.
pub(crate) struct HealthCheckDraft {
    pub(crate) check: HealthCheck,
    /// Name of the `match` block.
    pub(crate) matching: Option<Text>,
    pub(crate) origin: Origin,
}

fn health_check(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let mut draft = HealthCheckDraft {
        check: HealthCheck {
            interval: Duration::from_secs(5),
            jitter: Duration::ZERO,
            fails: 1,
            passes: 1,
            uri: Text::from("/"),
            method: Text::from(GET),
            matching: None,
            port: None,
            mandatory: false,
            persistent: false,
            kind: HealthCheckKind::Request,
            grpc: GrpcHealth::default(),
            failovers: Vec::new(),
            keepalive_time: None,
        },
        matching: None,
        origin: Origin::of(statement, statement.name()),
    };
    for word in statement.args() {
        parameter(resolver, statement, word, &mut draft)?;
    }
    if draft.check.persistent && !draft.check.mandatory {
        let message = "\"persistent\" requires \"mandatory\"";
        return Err(resolver.emerg(statement, statement.name(), message));
    }
    if let Err(message) = check_kind(&draft) {
        return Err(resolver.emerg(statement, statement.name(), message));
    }
    resolver.level.health_checks.push(draft);
    Ok(())
}

fn parameter(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    word: &Word,
    draft: &mut HealthCheckDraft,
) -> Applied {
    let (name, text) = match word.bytes.iter().position(|&byte| byte == b'=') {
        Some(at) => word.bytes.split_at(at + 1),
        None => (word.bytes.as_slice(), &[][..]),
    };
    let invalid = || {
        let message = format!("invalid parameter \"{}\"", word.display());
        resolver.emerg(statement, word, message)
    };
    let count = || {
        let number = value::number(text).and_then(|number| u32::try_from(number).ok());
        number.filter(|&number| number > 0)
    };
    let check = &mut draft.check;
    match name {
        b"interval=" => {
            let interval = value::milliseconds(text).filter(|time| !time.is_zero());
            check.interval = interval.ok_or_else(invalid)?;
        }
        b"jitter=" => check.jitter = value::milliseconds(text).ok_or_else(invalid)?,
        b"fails=" => check.fails = count().ok_or_else(invalid)?,
        b"passes=" => check.passes = count().ok_or_else(invalid)?,
        b"uri=" if text.starts_with(b"/") => check.uri = Text::from(text),
        b"method=" if is_method(text) => check.method = Text::from(text),
        b"match=" if !text.is_empty() => draft.matching = Some(Text::from(text)),
        b"port=" => {
            let port = count().and_then(|port| u16::try_from(port).ok());
            check.port = Some(port.ok_or_else(invalid)?);
        }
        b"keepalive_time=" => {
            check.keepalive_time = Some(value::milliseconds(text).ok_or_else(invalid)?);
        }
        b"failover=" => check.failovers.push(failover(text).ok_or_else(invalid)?),
        b"mandatory" => check.mandatory = true,
        b"persistent" => check.persistent = true,
        b"type=" if text == b"tcp" => check.kind = HealthCheckKind::Tcp,
        b"type=" if text == b"http" => check.kind = HealthCheckKind::Request,
        b"type=" if text == b"grpc" => check.kind = HealthCheckKind::Grpc,
        b"grpc_service=" if !text.is_empty() => check.grpc.service = Text::from(text),
        b"grpc_status=" => {
            let status = count().and_then(|status| u8::try_from(status).ok());
            let status = status.filter(|status| *status <= GRPC_STATUS_MAX);
            check.grpc.accepted_status = Some(status.ok_or_else(invalid)?);
        }
        _ => return Err(invalid()),
    }
    Ok(())
}

/// A token of capitals (RFC 9110 9.1), without one that asks for a tunnel.
fn is_method(text: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_uppercase() || b"-_".contains(byte);
    let fits = (1..=METHOD_BYTES_MAX).contains(&text.len());
    fits && text.iter().all(is_letter) && text != b"CONNECT"
}

/// `503:10:5s` or `500-599:10:5s`.
fn failover(text: &[u8]) -> Option<Failover> {
    let mut parts = text.split(|&byte| byte == b':');
    let (statuses, answers, period) = (parts.next()?, parts.next()?, parts.next()?);
    let status = |text: &[u8]| {
        let status = value::number(text).and_then(|status| u16::try_from(status).ok());
        status.filter(|status| (100..=599).contains(status))
    };
    let dash = statuses.iter().position(|&byte| byte == b'-');
    let (first, last) = match dash {
        Some(at) => (
            status(statuses.get(..at)?)?,
            status(statuses.get(at + 1..)?)?,
        ),
        None => (status(statuses)?, status(statuses)?),
    };
    let answers = value::number(answers).and_then(|answers| u32::try_from(answers).ok());
    let failover = Failover {
        statuses: first..=last,
        answers: answers.filter(|&answers| answers > 0)?,
        period: value::milliseconds(period).filter(|period| !period.is_zero())?,
    };
    (first <= last && parts.next().is_none()).then_some(failover)
}

/// The words that do not go together. A word of which there is a default counts where it differs.
fn check_kind(draft: &HealthCheckDraft) -> Result<(), &'static str> {
    let check = &draft.check;
    let is_grpc = check.kind == HealthCheckKind::Grpc;
    if !is_grpc && check.grpc != GrpcHealth::default() {
        return Err("\"grpc_service\" and \"grpc_status\" require \"type=grpc\"");
    }
    if is_grpc && (draft.matching.is_some() || check.uri != "/") {
        return Err("\"type=grpc\" does not go with \"uri\" and \"match\"");
    }
    if check.kind != HealthCheckKind::Request && check.method != GET {
        return Err(
            "\"method\" is of requests: it does not go with \"type=tcp\" and \"type=grpc\"",
        );
    }
    Ok(())
}

/// The method of a probe where none is said.
const GET: &str = "GET";

/// The longest registered one has 17 (UPDATEREDIRECTREF).
const METHOD_BYTES_MAX: usize = 32;

/// The last status that gRPC has: UNAUTHENTICATED.
const GRPC_STATUS_MAX: u8 = 16;
