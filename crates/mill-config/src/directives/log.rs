//! `error_log`, `access_log`, `log_format`, and related directives.

/// Rows of a table.
mod clickhouse;

use std::time::Duration;

use crate::Text;
use crate::config::log::{ErrorLogTarget, LogBuffer, LogEscape, LogPath};
use crate::config::settings::group;
use crate::config::{AccessLog, ErrorLog, LogFormat, LogLevel, Part, Template, Variable};
use crate::directive::{
    ALL_LEVELS, ANY_LEVEL, ANY_LEVEL_AND_IF, Apply, Arity, Contexts, Directive, HTTP_AND_STREAM,
    MAIN, Notice, STREAM_LEVELS, many, once,
};
use crate::lexer::{Statement, Word};
use crate::resolve::unsupported::Feature;
use crate::resolve::{Applied, Resolver, templates};
use crate::value;

group! {
    /// Access and error logs.
    LogSettings {
        /// `access_log`; empty is off.
        access_logs: Vec<AccessLog> = Vec::new(),
        /// `open_log_file_cache`, for access logs with variables in their path.
        open_log_file_cache: Option<OpenLogFileCache> = None,
        /// `error_log`; never empty.
        error_logs: Vec<ErrorLog> = Vec::new(),
        /// `log_not_found`: log missing files in the error log.
        not_found: bool = true,
        /// `log_subrequest`.
        subrequest: bool = false,
    }
}

/// `open_log_file_cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenLogFileCache {
    /// `max=` descriptors.
    pub max: u64,
    /// `inactive=`.
    pub inactive: Duration,
    /// `min_uses=`.
    pub min_uses: u64,
    /// `valid=`.
    pub valid: Duration,
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "error_log",
        MAIN.and(ALL_LEVELS),
        Arity::AtLeast(1),
        Apply::With(error_log),
        "File, or stderr, and level of messages.",
    ),
    many(
        "access_log",
        ANY_LEVEL_AND_IF
            .and(Contexts::LIMIT_EXCEPT)
            .and(STREAM_LEVELS),
        Arity::AtLeast(1),
        Apply::With(access_log),
        "File, format, buffer and condition of a line per request, or off; or a table of ClickHouse.",
    ),
    many(
        "log_format",
        HTTP_AND_STREAM,
        Arity::AtLeast(2),
        Apply::With(log_format),
        "Names a format of lines.",
    ),
    once(
        "open_log_file_cache",
        ALL_LEVELS,
        Arity::Between(1, 4),
        "off",
        Apply::With(open_log_file_cache),
        "Keeps access logs with variables in their path open.",
    ),
    once(
        "log_not_found",
        ANY_LEVEL,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.log.not_found),
        "Missing files are written to the error log.",
    ),
    once(
        "log_subrequest",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.log.subrequest),
        "Subrequests are written to the access log.",
    )
    .unread("there are no subrequests", Notice::Spared),
];

fn error_log(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let target = match word.bytes.as_slice() {
        b"stderr" => ErrorLogTarget::Stderr,
        text if text.starts_with(b"syslog:") || text.starts_with(b"memory:") => {
            not_yet(resolver, statement, word);
            return Ok(());
        }
        text => ErrorLogTarget::File(resolver.full_name(text)),
    };
    let level = match statement.args() {
        [_] => LogLevel::Error,
        [_, level] if !level.bytes.starts_with(b"debug_") => {
            let found = LogLevel::ALL
                .into_iter()
                .find(|known| known.name().as_bytes() == level.bytes);
            found.ok_or_else(|| {
                let message = format!("invalid log level \"{}\"", level.display());
                let mut error = resolver.emerg(statement, level, message);
                let names = LogLevel::ALL.into_iter().map(LogLevel::name);
                error.help = Some(format!("one of: {}", names.collect::<Vec<_>>().join(", ")));
                error
            })?
        }
        // nginx's debug_core, debug_http and so on, each a part of debug.
        [_, levels @ ..] => {
            const PARTS: [&str; 7] = [
                "debug_core",
                "debug_alloc",
                "debug_mutex",
                "debug_event",
                "debug_http",
                "debug_mail",
                "debug_stream",
            ];
            for level in levels {
                if !PARTS.iter().any(|part| part.as_bytes() == level.bytes) {
                    let message = format!("invalid log level \"{}\"", level.display());
                    return Err(resolver.emerg(statement, level, message));
                }
            }
            LogLevel::Debug
        }
        [] => LogLevel::Error,
    };
    let log = ErrorLog { target, level };
    if resolver.context == Contexts::MAIN {
        resolver.main.error_log.push(log);
    } else {
        resolver
            .level
            .settings
            .log
            .error_logs
            .get_or_insert_default()
            .push(log);
    }
    Ok(())
}

fn not_yet(resolver: &mut Resolver<'_>, statement: &Statement, word: &Word) {
    let kind = word
        .display()
        .split(':')
        .next()
        .unwrap_or_default()
        .to_owned();
    let feature = Feature {
        label: format!("{} {kind}:", statement.name().display()),
        subject: format!("log target \"{}\" is", word.display()),
        note: String::from("logs to other places than files"),
        help: String::from("write to a file or to stderr"),
    };
    resolver.not_yet(feature, statement, word);
}

fn access_log(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let logs = resolver
        .level
        .settings
        .log
        .access_logs
        .get_or_insert_default();
    if word.bytes == b"off" {
        // As in nginx, `off` overrides the other logs of the same block.
        logs.clear();
        resolver.level.access_log_off = true;
        if let Some(extra) = statement.args().get(1) {
            let message = format!("invalid parameter \"{}\"", extra.display());
            return Err(resolver.emerg(statement, extra, message));
        }
        return Ok(());
    }
    if word.bytes.starts_with(b"syslog:") {
        not_yet(resolver, statement, word);
        return Ok(());
    }
    if let Some(target) = word.bytes.strip_prefix(clickhouse::PREFIX) {
        let log = clickhouse::log(resolver, statement, target)?;
        push(resolver, log);
        return Ok(());
    }
    let path = if templates::has_variables(&word.bytes) {
        let full = resolver.full_name(&word.bytes);
        LogPath::Evaluated(resolver.template(&full, statement, word)?)
    } else {
        LogPath::File(resolver.full_name(&word.bytes))
    };
    let format = format_index(resolver, statement)?;
    let mut log = AccessLog {
        path,
        format,
        buffer: None,
        condition: None,
    };
    access_log_options(resolver, statement, &mut log)?;
    check_same_file(resolver, statement, &log)?;
    push(resolver, log);
    Ok(())
}

/// Adds a log to those of the block, unless one of them is `off`.
fn push(resolver: &mut Resolver<'_>, log: AccessLog) {
    if !resolver.level.access_log_off {
        let logs = &mut resolver.level.settings.log.access_logs;
        logs.get_or_insert_default().push(log);
    }
}

fn format_index(resolver: &Resolver<'_>, statement: &Statement) -> Applied<usize> {
    let Some(word) = statement.args().get(1) else {
        if resolver.is_in_stream() {
            return Err(resolver.emerg(statement, statement.arg(1), "log format is not specified"));
        }
        return Ok(COMBINED_INDEX);
    };
    let formats = resolver
        .http
        .as_ref()
        .map_or(&[][..], |http| http.log_formats.as_slice());
    let found = formats.iter().position(|format| {
        format.escape != LogEscape::Row && format.name.eq_ignore_ascii_case(&word.bytes)
    });
    found.ok_or_else(|| {
        let message = format!("unknown log format \"{}\"", word.display());
        let mut error = resolver.emerg(statement, word, message);
        let names: Vec<_> = formats.iter().map(|format| format.name.display()).collect();
        let nearest = crate::suggest::nearest(&word.bytes, names.iter().map(|name| &**name));
        error.help = nearest.map(|nearest| format!("did you mean \"{nearest}\"?"));
        error
    })
}

/// `combined` comes first in the table of formats.
const COMBINED_INDEX: usize = 0;

fn access_log_options(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    log: &mut AccessLog,
) -> Applied {
    let mut size_bytes = 0;
    let mut flush = None;
    for word in statement.args().iter().skip(2) {
        let text = word.bytes.as_slice();
        let fail = |what: &str, text: &[u8]| {
            let message = format!("{what} \"{}\"", String::from_utf8_lossy(text));
            resolver.emerg(statement, word, message)
        };
        if let Some(size) = text.strip_prefix(b"buffer=") {
            size_bytes = value::size(size)
                .filter(|&size| size > 0)
                .ok_or_else(|| fail("invalid buffer size", size))?;
        } else if let Some(time) = text.strip_prefix(b"flush=") {
            let time = value::milliseconds(time)
                .filter(|time| !time.is_zero())
                .ok_or_else(|| fail("invalid flush time", time))?;
            flush = Some(time);
        } else if let Some(condition) = text.strip_prefix(b"if=") {
            log.condition = Some(resolver.template(condition, statement, word)?);
        } else if text == b"gzip" || text.starts_with(b"gzip=") {
            let feature = Feature {
                label: String::from("access_log … gzip"),
                subject: String::from("compressed logs are"),
                note: String::from("compressed logs"),
                help: String::from(
                    "remove the parameter; \"buffer=\" keeps writes few, logrotate compresses old logs",
                ),
            };
            resolver.not_yet(feature, statement, word);
        } else {
            return Err(fail("invalid parameter", text));
        }
    }
    let path = statement.arg(1);
    if flush.is_some() && size_bytes == 0 {
        let message = format!("no buffer is defined for access_log \"{}\"", path.display());
        return Err(resolver.emerg(statement, path, message));
    }
    if size_bytes > 0 {
        if matches!(log.path, LogPath::Evaluated(_)) {
            let message = "buffered logs cannot have variables in name";
            return Err(resolver.emerg(statement, path, message));
        }
        log.buffer = Some(LogBuffer { size_bytes, flush });
    }
    Ok(())
}

/// One file has one buffer.
fn check_same_file(resolver: &mut Resolver<'_>, statement: &Statement, log: &AccessLog) -> Applied {
    let (LogPath::File(path), Some(buffer)) = (&log.path, log.buffer) else {
        return Ok(());
    };
    let Some(http) = &mut resolver.http else {
        return Ok(());
    };
    match http.log_buffers.iter().find(|(known, _)| known == path) {
        None => http.log_buffers.push((path.clone(), buffer)),
        Some((_, known)) if *known == buffer => {}
        Some(_) => {
            let word = statement.arg(1);
            let message = format!(
                "access_log \"{}\" already defined with conflicting parameters",
                word.display()
            );
            return Err(resolver.emerg(statement, word, message));
        }
    }
    Ok(())
}

fn log_format(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let name = statement.arg(1);
    let formats = resolver
        .http
        .as_ref()
        .map_or(&[][..], |http| http.log_formats.as_slice());
    if formats.iter().any(|format| *format.name == *name.bytes) {
        let message = format!("duplicate \"log_format\" name \"{}\"", name.display());
        return Err(resolver.emerg(statement, name, message));
    }
    let mut words = statement.args().get(1..).unwrap_or_default();
    let mut escape = LogEscape::Default;
    if let Some((first, rest)) = words.split_first()
        && let Some(kind) = first.bytes.strip_prefix(b"escape=")
    {
        escape = match kind {
            b"default" => LogEscape::Default,
            b"json" => LogEscape::Json,
            b"none" => LogEscape::None,
            _ => {
                let shown = String::from_utf8_lossy(kind);
                let message = format!("unknown log format escaping \"{shown}\"");
                return Err(resolver.emerg(statement, first, message));
            }
        };
        words = rest;
    }
    let mut parts = Vec::new();
    for word in words {
        let template = resolver.log_template(&word.bytes, statement, word)?;
        parts.extend(template.parts().iter().cloned());
    }
    let name = Text::from(name.bytes.as_slice());
    let template = Template::from_parts(parts);
    if let Some(http) = &mut resolver.http {
        http.log_formats.push(LogFormat {
            name,
            escape,
            template,
        });
    }
    Ok(())
}

/// The built-in format.
pub(crate) fn combined() -> LogFormat {
    let text = |text: &str| Part::Literal(Text::from(text));
    let parts = [
        Part::Variable(Variable::RemoteAddr),
        text(" - "),
        Part::Variable(Variable::RemoteUser),
        text(" ["),
        Part::Variable(Variable::TimeLocal),
        text("] \""),
        Part::Variable(Variable::Request),
        text("\" "),
        Part::Variable(Variable::Status),
        text(" "),
        Part::Variable(Variable::BodyBytesSent),
        text(" \""),
        Part::Variable(Variable::Http(Text::from("referer"))),
        text("\" \""),
        Part::Variable(Variable::Http(Text::from("user_agent"))),
        text("\""),
    ];
    LogFormat {
        name: Text::from("combined"),
        escape: LogEscape::Default,
        template: Template::from_parts(parts),
    }
}

fn open_log_file_cache(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let mut cache = OpenLogFileCache {
        max: 0,
        inactive: Duration::from_secs(10),
        min_uses: 1,
        valid: Duration::from_secs(60),
    };
    let mut off = false;
    for word in statement.args() {
        let text = word.bytes.as_slice();
        let read = if let Some(text) = text.strip_prefix(b"max=") {
            value::number(text).map(|max| cache.max = max)
        } else if let Some(text) = text.strip_prefix(b"inactive=") {
            value::seconds(text).map(|time| cache.inactive = time)
        } else if let Some(text) = text.strip_prefix(b"min_uses=") {
            value::number(text).map(|uses| cache.min_uses = uses)
        } else if let Some(text) = text.strip_prefix(b"valid=") {
            value::seconds(text).map(|time| cache.valid = time)
        } else {
            (text == b"off").then(|| off = true)
        };
        read.ok_or_else(|| {
            let message = format!(
                "invalid \"open_log_file_cache\" parameter \"{}\"",
                word.display()
            );
            resolver.emerg(statement, word, message)
        })?;
    }
    if !off && cache.max == 0 {
        let message = "\"open_log_file_cache\" must have \"max\" parameter";
        return Err(resolver.emerg(statement, statement.name(), message));
    }
    resolver.level.settings.log.open_log_file_cache = Some((!off).then_some(cache));
    Ok(())
}
