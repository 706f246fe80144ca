//! Blocks before inheritance.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::Text;
use crate::config::acme::AcmeOrder;
use crate::config::frang::FrangLimits;
use crate::config::location::{LocationName, MethodSet, TryFiles};
use crate::config::log::LogBuffer;
use crate::config::settings::SettingsDraft;
use crate::config::{
    Api, Condition, ConnectionZone, CpuAffinity, EnvironmentVariable, ErrorLog, Events,
    Instruction, ListenAddress, ListenOptions, LogFormat, LogLevel, Map, Match, NetworkStack,
    RequestZone, ServerName, ThreadPool, User, WorkerCount,
};
use crate::diagnostic::{Diagnostic, SourcePosition, Spot};
use crate::directives::acme::issuer::IssuerDraft;
use crate::directives::acme::order::OrderDraft;
use crate::directives::health_check::HealthCheckDraft;
use crate::directives::limit_zone::LimitZonesDraft;
use crate::directives::map::Table;
use crate::directives::pass::cache_path::CacheDraft;
use crate::directives::pass::target::PassDraft;
use crate::directives::stream::StreamServerDraft;
use crate::directives::upstream::zone::ZoneDraft;
use crate::lexer::{SourceText, Statement, Word};
use crate::resolve::upstreams::UpstreamDraft;
use crate::resolve::{place, snippet};

/// The main context.
#[derive(Default)]
pub(crate) struct MainDraft {
    pub(crate) user: Option<User>,
    pub(crate) worker_processes: Option<WorkerCount>,
    pub(crate) worker_cpu_affinity: Option<CpuAffinity>,
    pub(crate) worker_rlimit_nofile: Option<u64>,
    pub(crate) worker_rlimit_core: Option<u64>,
    pub(crate) worker_priority: Option<i32>,
    pub(crate) worker_shutdown_timeout: Option<Duration>,
    pub(crate) pid: Option<Text>,
    pub(crate) lock_file: Option<Text>,
    pub(crate) daemon: Option<bool>,
    pub(crate) master_process: Option<bool>,
    pub(crate) working_directory: Option<Text>,
    pub(crate) timer_resolution: Option<Duration>,
    pub(crate) env: Vec<EnvironmentVariable>,
    /// By their names.
    pub(crate) thread_pools: BTreeMap<Text, ThreadPool>,
    pub(crate) network_stack: Option<NetworkStack>,
    pub(crate) error_log: Vec<ErrorLog>,
    pub(crate) events: Option<Events>,
    /// Paths of `load_module`.
    pub(crate) modules: Vec<Text>,
}

/// The http or the stream block, besides the settings that servers inherit.
#[derive(Default)]
pub(crate) struct HttpDraft {
    pub(crate) level: LocationDraft,
    pub(crate) servers: Vec<ServerDraft>,
    pub(crate) log_formats: Vec<LogFormat>,
    pub(crate) maps: Vec<Map>,
    pub(crate) matches: Vec<Arc<Match>>,
    /// `acme_issuer`s.
    pub(crate) acme_issuers: Vec<IssuerDraft>,
    /// Zones of shared memory.
    pub(crate) zones: Vec<ZoneDraft>,
    /// Caches, named or defined.
    pub(crate) caches: Vec<CacheDraft>,
    /// Directories of temporary files and of caches.
    pub(crate) paths: Vec<ClaimedPath>,
    /// Zones of `limit_req`.
    pub(crate) request_zones: LimitZonesDraft<RequestZone>,
    /// Zones of `limit_conn`.
    pub(crate) connection_zones: LimitZonesDraft<ConnectionZone>,
    /// Limits of clients.
    pub(crate) frang: FrangLimits,
    /// How many `http_resp_code_block`s there are.
    pub(crate) status_limits: u32,
    /// Names of `status_zone`s.
    pub(crate) status_zones: Vec<Text>,
    /// Groups of servers, in the order in which they are first named.
    pub(crate) upstreams: Vec<UpstreamDraft>,
    /// Keys of the map whose block is open.
    pub(crate) map_keys: BTreeSet<(Table, Text)>,
    /// Where the block ends.
    pub(crate) end: SourcePosition,
    /// Addresses in the order in which they first occur.
    pub(crate) addresses: Vec<AddressDraft>,
    /// Character sets in their first spelling, which is sent.
    pub(crate) charsets: Vec<Text>,
    /// Buffered access logs: one file cannot have two kinds of buffer.
    pub(crate) log_buffers: Vec<(Text, LogBuffer)>,
}

/// One server block.
#[derive(Default)]
pub(crate) struct ServerDraft {
    pub(crate) index: usize,
    pub(crate) level: LocationDraft,
    pub(crate) names: Vec<ServerName>,
    /// Names as written (lower-cased), for warnings; parallel to `names`.
    pub(crate) name_texts: Vec<Text>,
    /// Their places; parallel to `names`.
    pub(crate) name_origins: Vec<Option<Origin>>,
    pub(crate) has_listen: bool,
    /// What only servers of `stream` have.
    pub(crate) stream: StreamServerDraft,
    /// `acme_certificate`.
    pub(crate) acme: Option<OrderDraft>,
    /// The same with its names.
    pub(crate) acme_order: Option<Arc<AcmeOrder>>,
}

/// One address of `listen` and the servers behind it.
pub(crate) struct AddressDraft {
    pub(crate) address: ListenAddress,
    pub(crate) options: ListenOptions,
    pub(crate) spot: Spot,
    /// A socket option was given.
    pub(crate) options_set: bool,
    pub(crate) default_set: bool,
    pub(crate) default_server: usize,
    pub(crate) servers: Vec<usize>,
}

/// A location, an `if`, a `limit_except`, or a server's or http block's part for them.
#[derive(Default)]
pub(crate) struct LocationDraft {
    pub(crate) name: Option<LocationName>,
    /// Boxed: blocks are parsed by recursion.
    pub(crate) settings: Box<SettingsDraft>,
    pub(crate) steps: Vec<Step>,
    pub(crate) try_files: Option<TryFiles>,
    pub(crate) limit_except: Option<(MethodSet, Box<Self>)>,
    pub(crate) stub_status: bool,
    pub(crate) metrics: bool,
    pub(crate) api: Option<Api>,
    pub(crate) pass: Option<PassDraft>,
    /// `Some(None)` is `off`.
    pub(crate) status_zone: Option<Option<usize>>,
    pub(crate) health_checks: Vec<HealthCheckDraft>,
    pub(crate) locations: Vec<Self>,
    /// `access_log off` occurred in this block.
    pub(crate) access_log_off: bool,
    /// Names of directives that may occur once and have occurred.
    pub(crate) used: Vec<&'static str>,
}

impl LocationDraft {
    /// Makes place for a directive that answers requests: the last one of a block counts.
    pub(crate) fn become_handler(&mut self) {
        self.stub_status = false;
        self.metrics = false;
        self.api = None;
        self.pass = None;
    }

    /// Records the use of a directive; false if it was used before.
    pub(crate) fn note_use(&mut self, name: &'static str) -> bool {
        if self.used.contains(&name) {
            return false;
        }
        self.used.push(name);
        true
    }
}

/// A directory that a directive names.
pub(crate) struct ClaimedPath {
    pub(crate) path: Text,
    /// For a cache, which shares it with nothing.
    pub(crate) is_cache: bool,
    pub(crate) place: SourcePosition,
}

/// A rewrite instruction whose `if` is not merged yet.
pub(crate) enum Step {
    Ready(Instruction),
    If {
        condition: Condition,
        level: Box<LocationDraft>,
        in_server: bool,
    },
}

/// The place of a value, for errors that are found later.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) text: Arc<SourceText>,
    pub(crate) span: Range<usize>,
    pub(crate) line: u32,
}

impl Origin {
    pub(crate) fn of(statement: &Statement, word: &Word) -> Self {
        Self {
            text: Arc::clone(&statement.text),
            span: word.span.clone(),
            line: statement.line,
        }
    }

    pub(crate) fn place(&self) -> SourcePosition {
        place(&self.text, self.line)
    }

    /// An error about this place.
    pub(crate) fn error(&self, message: impl Into<String>) -> Box<Diagnostic> {
        let mut error = Diagnostic::new(LogLevel::Emerg, message, SourcePosition::None);
        self.show_in(&mut error);
        Box::new(error)
    }

    /// Adds the place to an error that was found later.
    pub(crate) fn show_in(&self, diagnostic: &mut Diagnostic) {
        diagnostic.place = place(&self.text, self.line);
        diagnostic.snippet = Some(snippet(&self.text, &self.span));
    }
}
