//! `access_log clickhouse:…`: rows of a table in the place of lines of a file.

/// The file of Tempesta FW's logger.
mod logger_config;

use std::sync::Arc;
use std::time::Duration;

use crate::Text;
use crate::config::log::{LogBuffer, RowTable};
use crate::config::template::Part;
use crate::config::{AccessLog, LogEscape, LogFormat, LogPath, Template, Variable};
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver};
use crate::value;

/// What a target begins with.
pub(super) const PREFIX: &[u8] = b"clickhouse:";

/// `access_log clickhouse:HOST[:PORT]/DATABASE.TABLE …`, or with the path of a file of Tempesta FW's logger.
pub(super) fn log(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    target: &[u8],
) -> Applied<AccessLog> {
    if resolver.is_in_stream() {
        let message = "rows are of requests: they are not for \"stream\"";
        return Err(resolver.emerg(statement, statement.arg(1), message));
    }
    let mut table = match target {
        [b'/', ..] => logger_config::read(resolver, statement, target)?,
        _ => parse_target(target).ok_or_else(|| invalid_target(resolver, statement))?,
    };
    let mut vhost = Template::from_parts(vec![Part::Variable(Variable::ServerName)]);
    let mut condition = None;
    for word in statement.args().iter().skip(1) {
        let (name, text) = split(&word.bytes);
        match name {
            b"vhost=" => vhost = resolver.template(text, statement, word)?,
            b"if=" => condition = Some(resolver.template(text, statement, word)?),
            _ => {
                option(&mut table, name, text).ok_or_else(|| invalid(resolver, statement, word))?
            }
        }
    }
    let flush = Some(table.max_wait);
    Ok(AccessLog {
        path: LogPath::Table(Arc::new(table)),
        format: format_index(resolver, &vhost),
        buffer: Some(LogBuffer {
            size_bytes: u64::MAX,
            flush,
        }),
        condition,
    })
}

/// One of the options that the file of Tempesta FW's logger has, too.
fn option(table: &mut RowTable, name: &[u8], text: &[u8]) -> Option<()> {
    match name {
        b"user=" => table.user = account(text)?,
        b"password=" => table.password = account(text)?,
        b"max_events=" => table.max_events = events(value::number(text)?)?,
        b"max_wait=" => table.max_wait = wait(value::milliseconds(text)?)?,
        _ => return None,
    }
    Some(())
}

/// It goes into a field of a request.
fn account(text: &[u8]) -> Option<Text> {
    let is_field = !text.iter().any(u8::is_ascii_control);
    is_field.then(|| Text::from(text))
}

fn events(number: u64) -> Option<u64> {
    (1..=EVENTS_MAX).contains(&number).then_some(number)
}

fn wait(time: Duration) -> Option<Duration> {
    (!time.is_zero() && time <= WAIT_MAX).then_some(time)
}

/// Letters, digits and `_`, up to 128 of them, as Tempesta FW's logger takes it.
fn name(text: &[u8]) -> Option<Text> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let fits = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.iter().all(is_name);
    fits.then(|| Text::from(text))
}

fn host(text: &[u8]) -> Option<Text> {
    let is_host = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_:".contains(byte);
    let fits = !text.is_empty() && text.iter().all(is_host);
    fits.then(|| Text::from(text))
}

/// `HOST[:PORT]/DATABASE.TABLE`; an address of IPv6 in brackets.
fn parse_target(text: &[u8]) -> Option<RowTable> {
    let slash = text.iter().position(|&byte| byte == b'/')?;
    let (authority, rest) = text.split_at(slash);
    let rest = rest.get(1..)?;
    let dot = rest.iter().position(|&byte| byte == b'.')?;
    let (address, port) = match authority.strip_prefix(b"[") {
        Some(inner) => {
            let end = inner.iter().position(|&byte| byte == b']')?;
            (inner.get(..end)?, inner.get(end + 1..)?)
        }
        None => {
            let colon = authority.iter().position(|&byte| byte == b':');
            authority.split_at(colon.unwrap_or(authority.len()))
        }
    };
    let port = match port {
        b"" => Some(HTTP_PORT),
        _ => u16::try_from(value::number(port.strip_prefix(b":")?)?).ok(),
    };
    Some(RowTable {
        host: host(address)?,
        port: port.filter(|&port| port > 0)?,
        database: name(rest.get(..dot)?)?,
        table: name(rest.get(dot + 1..)?)?,
        ..default_table()
    })
}

fn default_table() -> RowTable {
    RowTable {
        host: Text::from("localhost"),
        port: HTTP_PORT,
        database: Text::from("default"),
        table: Text::from("access_log"),
        user: Text::default(),
        password: Text::default(),
        max_events: EVENTS,
        max_wait: WAIT,
    }
}

/// The name of an option with its `=`, and its value.
fn split(word: &[u8]) -> (&[u8], &[u8]) {
    match word.iter().position(|&byte| byte == b'=') {
        Some(at) => word.split_at(at + 1),
        None => (word, &[]),
    }
}

fn invalid(
    resolver: &Resolver<'_>,
    statement: &Statement,
    word: &Word,
) -> Box<crate::diagnostic::Diagnostic> {
    let message = format!("invalid parameter \"{}\"", word.display());
    let mut error = resolver.emerg(statement, word, message);
    error.help = Some(format!(
        "there are user=, password=, max_events= up to {EVENTS_MAX}, max_wait= up to {} s, vhost= and if=",
        WAIT_MAX.as_secs()
    ));
    error
}

fn invalid_target(
    resolver: &Resolver<'_>,
    statement: &Statement,
) -> Box<crate::diagnostic::Diagnostic> {
    let word = statement.arg(1);
    let message = format!("invalid table \"{}\"", word.display());
    let mut error = resolver.emerg(statement, word, message);
    error.help = Some(format!(
        "it is clickhouse:HOST[:PORT]/DATABASE.TABLE, or clickhouse:FILE with the absolute path of a file of \
         Tempesta FW's logger; the port is that of HTTP, {HTTP_PORT} by default"
    ));
    error
}

/// The format of rows with this host, which is made once.
fn format_index(resolver: &mut Resolver<'_>, vhost: &Template) -> usize {
    let formats = &mut resolver.http.get_or_insert_default().log_formats;
    let template = columns(vhost);
    let same = |format: &LogFormat| format.escape == LogEscape::Row && format.template == template;
    if let Some(index) = formats.iter().position(same) {
        return index;
    }
    formats.push(LogFormat {
        // No configuration can name it.
        name: Text::default(),
        escape: LogEscape::Row,
        template,
    });
    formats.len() - 1
}

/// The columns of Tempesta FW's logger but for the last one, `dropped_events`, which what inserts them adds.
fn columns(vhost: &Template) -> Template {
    let before = [
        Variable::Msec,
        Variable::RemoteAddr,
        Variable::RequestMethod,
        Variable::ServerProtocol,
        Variable::Status,
        Variable::BodyBytesSent,
        Variable::RequestTime,
    ];
    let behind = [
        Variable::RequestUri,
        Variable::Http(Text::from("referer")),
        Variable::Http(Text::from("user_agent")),
        Variable::TlsFingerprint,
        Variable::HttpFingerprint,
    ];
    let tab = || Part::Literal(Text::from("\t"));
    let mut parts = Vec::new();
    for variable in before {
        parts.extend([Part::Variable(variable), tab()]);
    }
    for part in vhost.parts() {
        parts.push(match part {
            Part::Literal(text) => Part::Literal(escaped(text)),
            part => part.clone(),
        });
    }
    for variable in behind {
        parts.extend([tab(), Part::Variable(variable)]);
    }
    Template::from_parts(parts)
}

/// What would end a column or a row.
fn escaped(text: &[u8]) -> Text {
    let mut escaped = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'\\' => escaped.extend_from_slice(b"\\\\"),
            b'\t' => escaped.extend_from_slice(b"\\t"),
            b'\n' => escaped.extend_from_slice(b"\\n"),
            _ => escaped.push(byte),
        }
    }
    Text::from(&*escaped)
}

/// Of ClickHouse's HTTP interface.
const HTTP_PORT: u16 = 8123;

/// As Tempesta FW's logger has them.
const EVENTS: u64 = 1000;
const WAIT: Duration = Duration::from_millis(100);
const NAME_BYTES_MAX: usize = 128;

/// More rows than fit into what waits are never inserted at once.
const EVENTS_MAX: u64 = 100_000;

/// Longer than this, rows in memory would be lost by too many faults.
const WAIT_MAX: Duration = Duration::from_secs(60);
