//! Access and error logs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Template;
use crate::Text;

/// One `access_log`. A location's list is empty for `access_log off`.
#[derive(Debug, Clone)]
pub struct AccessLog {
    /// Where the lines go.
    pub path: LogPath,
    /// Index into [`super::Http::log_formats`].
    pub format: usize,
    /// `buffer=`, `flush=`, `gzip=`; `None` writes each line at once.
    pub buffer: Option<LogBuffer>,
    /// `if=`: no line when this evaluates to "" or "0".
    pub condition: Option<Template>,
}

/// The file of an access log.
#[derive(Debug, Clone)]
pub enum LogPath {
    /// Opened at start: an absolute path.
    File(Text),
    /// With variables: evaluated, joined to the prefix and opened per request
    /// (kept by `open_log_file_cache`).
    Evaluated(Template),
    /// Rows of a table.
    Table(Arc<RowTable>),
}

/// A table of ClickHouse, and how rows get into it.
#[derive(Clone, PartialEq, Eq)]
pub struct RowTable {
    /// Its HTTP interface.
    pub host: Text,
    pub port: u16,
    /// Letters, digits and `_`, as the table.
    pub database: Text,
    pub table: Text,
    /// Without control characters, as the password; both empty without an account.
    pub user: Text,
    pub password: Text,
    /// So many rows are inserted at once, before `max_wait` is over.
    pub max_events: u64,
    /// Longest time that a row waits for others.
    pub max_wait: Duration,
}

/// As it is written in a configuration, without its account.
impl fmt::Display for RowTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, database, table) = (&self.host, &self.database, &self.table);
        let port = self.port;
        let (host, database) = (host.display(), database.display());
        write!(f, "clickhouse:{host}:{port}/{database}.{}", table.display())
    }
}

/// Without its password.
impl fmt::Debug for RowTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowTable({self})")
    }
}

/// Buffering of an access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBuffer {
    /// Bytes buffered before they are written.
    pub size_bytes: u64,
    /// Longest time that a line is buffered; `None` waits until the buffer is full.
    pub flush: Option<Duration>,
}

/// One `log_format`.
#[derive(Debug, Clone)]
pub struct LogFormat {
    /// Its name; `combined` is always at index 0.
    pub name: Text,
    /// How variables are escaped.
    pub escape: LogEscape,
    /// The line, without its line end.
    pub template: Template,
}

/// `escape=` of `log_format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogEscape {
    /// `"`, `\`, and bytes below 32 or above 126 as `\xXX`; an absent value is `-`.
    #[default]
    Default,
    /// As a JSON string's inside; an absent value is empty.
    Json,
    /// As they are; an absent value is empty.
    None,
    /// As columns of a [`RowTable`]: texts by ClickHouse's TabSeparated, an absent value empty; addresses, methods, versions,
    /// durations and fingerprints as Tempesta FW's logger has them.
    Row,
}

/// One `error_log`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorLog {
    /// Where the lines go.
    pub target: ErrorLogTarget,
    /// The least severe level that is written.
    pub level: LogLevel,
}

/// The destination of an error log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorLogTarget {
    /// An absolute path.
    File(Text),
    /// `stderr`.
    Stderr,
}

/// Levels of `error_log`, the most severe first (so `level <= log.level` is written).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// The server cannot run.
    Emerg,
    /// Action is needed at once.
    Alert,
    /// Critical.
    Crit,
    /// A request or an operation failed.
    Error,
    /// Something is unusual.
    Warn,
    /// Normal but notable: start, reload, stop.
    Notice,
    /// Client errors, and the like.
    Info,
    /// Everything.
    Debug,
}

impl LogLevel {
    /// All levels, the most severe first.
    pub const ALL: [Self; 8] = [
        Self::Emerg,
        Self::Alert,
        Self::Crit,
        Self::Error,
        Self::Warn,
        Self::Notice,
        Self::Info,
        Self::Debug,
    ];

    /// The name in configurations and log lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Emerg => "emerg",
            Self::Alert => "alert",
            Self::Crit => "crit",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Notice => "notice",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}
