//! `match`.

use std::sync::Arc;

use crate::Text;
use crate::config::health_check::{
    BodyTest, Checksum, HeaderCondition, HeaderTest, Match, StatusTest,
};
use crate::config::template::Part;
use crate::config::{Template, Variable};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver};
use crate::value;

pub(super) fn match_block(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let name = statement.arg(1);
    let is_known = resolver.http.as_ref().is_some_and(|http| {
        let mut known = http.matches.iter();
        known.any(|known| *known.name == *name.bytes)
    });
    if is_known {
        let message = format!("duplicate match \"{}\"", name.display());
        return Err(resolver.emerg(statement, name, message));
    }
    resolver.open_match = Some(Match {
        name: Text::from(name.bytes.as_slice()),
        status: None,
        headers: Vec::new(),
        body: None,
        checksum: None,
        require: Vec::new(),
    });
    resolver.entries(statement, entry)?;
    if let (Some(http), Some(done)) = (&mut resolver.http, resolver.open_match.take()) {
        http.matches.push(Arc::new(done));
    }
    Ok(())
}

fn entry(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let name = statement.name();
    match name.bytes.as_slice() {
        b"status" => {
            let status = status(resolver, statement)?;
            set(resolver, statement, |open| {
                open.status.replace(status).is_some()
            })
        }
        b"header" => {
            let test = header(resolver, statement)?;
            set(resolver, statement, |open| {
                open.headers.push(test);
                false
            })
        }
        b"body" => {
            let body = body(resolver, statement)?;
            set(resolver, statement, |open| {
                open.body.replace(body).is_some()
            })
        }
        b"crc32" => {
            let checksum = checksum(resolver, statement)?;
            set(resolver, statement, |open| {
                open.checksum.replace(checksum).is_some()
            })
        }
        b"require" => {
            let variables = require(resolver, statement)?;
            set(resolver, statement, |open| {
                open.require.extend(variables);
                false
            })
        }
        _ => {
            let message = format!("unknown directive \"{}\"", name.display());
            let mut error = resolver.emerg(statement, name, message);
            error.help = Some(String::from("one of: status, header, body, crc32, require"));
            Err(error)
        }
    }
}

/// Adds to the open block; `add` says whether it was there before.
fn set(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    add: impl FnOnce(&mut Match) -> bool,
) -> Applied {
    if resolver.open_match.as_mut().is_some_and(add) {
        return Err(resolver.refused(statement, "is duplicate"));
    }
    Ok(())
}

/// A status has three digits.
const STATUSES: std::ops::RangeInclusive<u64> = 100..=999;

fn status(resolver: &Resolver<'_>, statement: &Statement) -> Applied<StatusTest> {
    let (negated, words) = match statement.args() {
        [first, rest @ ..] if first.bytes == b"!" => (true, rest),
        words => (false, words),
    };
    if words.is_empty() {
        return Err(arguments(resolver, statement));
    }
    let code = |text: &[u8]| {
        let code = value::number(text).filter(|code| STATUSES.contains(code))?;
        u16::try_from(code).ok()
    };
    let ranges = words.iter().map(|word| {
        let range = match word.bytes.iter().position(|&byte| byte == b'-') {
            Some(at) => {
                let (first, last) = word.bytes.split_at(at);
                code(first).zip(code(last.get(1..).unwrap_or_default()))
            }
            None => code(&word.bytes).map(|code| (code, code)),
        };
        range
            .filter(|(first, last)| first <= last)
            .ok_or_else(|| invalid(resolver, statement, word))
    });
    Ok(StatusTest {
        negated,
        ranges: ranges.collect::<Applied<_>>()?,
    })
}

fn header(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<HeaderTest> {
    let (name, condition) = match statement.args() {
        [name] => (name, HeaderCondition::Present),
        [not, name] if not.bytes == b"!" => (name, HeaderCondition::Absent),
        [name, operator, text] => {
            let condition = match operator.bytes.as_slice() {
                b"=" => HeaderCondition::Equal(template(resolver, statement, text)?),
                b"!=" => HeaderCondition::Unequal(template(resolver, statement, text)?),
                b"~" => HeaderCondition::Matches(resolver.shared_pattern(
                    &text.bytes,
                    false,
                    statement,
                    text,
                )?),
                b"!~" => HeaderCondition::Differs(resolver.shared_pattern(
                    &text.bytes,
                    false,
                    statement,
                    text,
                )?),
                _ => return Err(invalid(resolver, statement, operator)),
            };
            (name, condition)
        }
        _ => return Err(arguments(resolver, statement)),
    };
    Ok(HeaderTest {
        name: Text::from(name.bytes.as_slice()),
        condition,
    })
}

fn template(resolver: &mut Resolver<'_>, statement: &Statement, word: &Word) -> Applied<Template> {
    let template = resolver.template(&word.bytes, statement, word)?;
    let is_of_client = |part: &Part| match part {
        Part::Variable(variable) => is_of_client(variable),
        Part::Literal(_) | Part::Capture(_) => false,
    };
    if template.parts().iter().any(is_of_client) {
        return Err(without_client(resolver, statement, word));
    }
    Ok(template)
}

fn body(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<BodyTest> {
    let [operator, source] = statement.args() else {
        return Err(arguments(resolver, statement));
    };
    let negated = match operator.bytes.as_slice() {
        b"~" => false,
        b"!~" => true,
        _ => return Err(invalid(resolver, statement, operator)),
    };
    let pattern = resolver.shared_pattern(&source.bytes, false, statement, source)?;
    Ok(BodyTest { pattern, negated })
}

/// `crc32 HEX` and `crc32 auto`: not in NGINX Plus.
fn checksum(resolver: &Resolver<'_>, statement: &Statement) -> Applied<Checksum> {
    let [word] = statement.args() else {
        return Err(arguments(resolver, statement));
    };
    if word.bytes == b"auto" {
        return Ok(Checksum::OfFirst);
    }
    let digits = std::str::from_utf8(&word.bytes).unwrap_or_default();
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let sum = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex);
    sum.map(Checksum::Is)
        .ok_or_else(|| invalid(resolver, statement, word))
}

fn require(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<Vec<Variable>> {
    if statement.args().is_empty() {
        return Err(arguments(resolver, statement));
    }
    let variables = statement.args().iter().map(|word| {
        match word
            .bytes
            .strip_prefix(b"$")
            .filter(|name| !name.is_empty())
        {
            Some(name) => match resolver.variable(name, statement, word) {
                variable if is_of_client(&variable) => {
                    Err(without_client(resolver, statement, word))
                }
                variable => Ok(variable),
            },
            None => {
                let message = format!("invalid variable name \"{}\"", word.display());
                Err(resolver.emerg(statement, word, message))
            }
        }
    });
    variables.collect()
}

/// Whether a probe, which no client has asked for, leaves the variable without a value of use. Those that the
/// configuration defines may depend on the server's answer.
fn is_of_client(variable: &Variable) -> bool {
    !matches!(
        variable,
        Variable::User(_)
            | Variable::Absent(_)
            | Variable::UpstreamHttp(_)
            | Variable::UpstreamTrailer(_)
            | Variable::UpstreamCookie(_)
            | Variable::UpstreamAddr
            | Variable::UpstreamStatus
            | Variable::UpstreamConnectTime
            | Variable::UpstreamHeaderTime
            | Variable::UpstreamResponseTime
            | Variable::UpstreamResponseLength
            | Variable::UpstreamBytesReceived
            | Variable::UpstreamBytesSent
            | Variable::UpstreamQueueTime
            | Variable::UpstreamLastServerName
            | Variable::UpstreamCacheAge
            | Variable::UpstreamCacheEtag
            | Variable::UpstreamCacheKey
            | Variable::UpstreamCacheLastModified
            | Variable::UpstreamCacheStatus
            | Variable::CacheDecision
            | Variable::SliceRange
            | Variable::ProxyHost
            | Variable::ProxyPort
            | Variable::ServerName
            | Variable::Hostname
            | Variable::Pid
            | Variable::NginxVersion
            | Variable::DateGmt
            | Variable::DateLocal
            | Variable::Msec
            | Variable::TimeIso8601
            | Variable::TimeLocal
            | Variable::ConnectionsActive
            | Variable::ConnectionsReading
            | Variable::ConnectionsWriting
            | Variable::ConnectionsWaiting
    )
}

fn without_client(resolver: &Resolver<'_>, statement: &Statement, word: &Word) -> Box<Diagnostic> {
    let message = format!(
        "\"{}\" depends on a client, which a health check does not have",
        word.display()
    );
    let mut error = resolver.emerg(statement, word, message);
    error.help = Some(String::from(
        "variables of the server's answer have a value here, such as \"$upstream_http_NAME\"",
    ));
    error
}

fn arguments(resolver: &Resolver<'_>, statement: &Statement) -> Box<Diagnostic> {
    let name = statement.name();
    let message = format!(
        "invalid number of arguments in \"{}\" directive",
        name.display()
    );
    resolver.emerg(statement, name, message)
}

fn invalid(resolver: &Resolver<'_>, statement: &Statement, word: &Word) -> Box<Diagnostic> {
    let message = format!("invalid parameter \"{}\"", word.display());
    resolver.emerg(statement, word, message)
}
