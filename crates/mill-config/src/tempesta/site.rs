//! A configuration of Tempesta FW, typed and checked.

use std::net::SocketAddr;

use super::lexer::Term;
use crate::resolve::draft::Origin;

/// All of it.
pub(super) struct Site {
    /// The beginning of the text, for what stands nowhere in it.
    pub(super) origin: Origin,
    pub(super) listens: Vec<Listen>,
    pub(super) client: Client,
    pub(super) groups: Vec<Group>,
    pub(super) checks: Vec<HealthCheck>,
    /// `access_log dmesg`
    pub(super) logs_to_kernel: bool,
    /// `access_log mmap`: the word, and the file of the logger.
    pub(super) logger: Option<(Term, Vec<u8>)>,
    /// `server_failover_http`, as `failover=` of `health_check` has it.
    pub(super) failovers: Vec<String>,
    /// The first one is the default.
    pub(super) vhosts: Vec<Vhost>,
    pub(super) chains: Vec<Chain>,
    /// Which chain is the main one; without one all requests go to the default vhost.
    pub(super) main_chain: Option<usize>,
    pub(super) cache: Cache,
    pub(super) via: Option<Term>,
    /// Files in place of the pages of our own errors.
    pub(super) bodies: Vec<Body>,
    /// `block_action attack reply`
    pub(super) attack_replies: bool,
    /// `frang_limits` outside of vhosts.
    pub(super) limits: Limits,
    /// What else is an entry of `frang`: hashes of `tft` and `tfh`, sets of bytes, what becomes of malformed requests.
    pub(super) entries: Vec<Limit>,
    /// There is a `frang_limits` somewhere: Tempesta FW's defaults of it are in force.
    pub(super) has_limits: bool,
}

/// Entries of `frang_limits`, as `frang` of nginx's language has them.
#[derive(Default)]
pub(super) struct Limits(pub(super) Vec<Limit>);

/// One entry.
#[derive(Clone)]
pub(super) struct Limit {
    pub(super) name: &'static str,
    /// Its values.
    pub(super) words: Vec<Vec<u8>>,
    pub(super) origin: Origin,
}

impl Limits {
    /// Sets an entry, in the place of one of its name.
    pub(super) fn set(&mut self, limit: Limit) {
        self.0.retain(|known| known.name != limit.name);
        self.0.push(limit);
    }
}

/// The protocol of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protocol {
    Http,
    Https,
    /// HTTP/2, and HTTP/1.1 where a client asks for it.
    H2,
}

/// `listen`
pub(super) struct Listen {
    pub(super) term: Term,
    pub(super) address: SocketAddr,
    pub(super) protocol: Protocol,
}

/// A number and the word that gave it.
pub(super) struct Given {
    pub(super) value: u64,
    pub(super) origin: Origin,
}

/// What concerns connections and heads of clients.
#[derive(Default)]
pub(super) struct Client {
    /// Seconds.
    pub(super) keepalive_timeout: Option<Given>,
    pub(super) streams: Option<Given>,
    /// Bytes.
    pub(super) head: Option<Given>,
    /// Seconds.
    pub(super) head_timeout: Option<Given>,
    /// Seconds.
    pub(super) content_timeout: Option<Given>,
    /// `client_ws_timeout`, in seconds.
    pub(super) tunnel_timeout: Option<Given>,
    /// `client_lru_size`
    pub(super) known: Option<(Given, Term)>,
}

/// How a server of a group is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Balancing {
    Ratio,
    Dynamic,
    Predict,
    Hash,
}

/// `srv_group`
pub(super) struct Group {
    pub(super) name: Term,
    pub(super) servers: Vec<Server>,
    pub(super) options: GroupOptions,
}

/// What may also stand outside of groups, as defaults.
#[derive(Default, Clone)]
pub(super) struct GroupOptions {
    pub(super) balancing: Option<(Balancing, Origin)>,
    pub(super) queue: Option<u64>,
    /// Seconds.
    pub(super) forward_timeout: Option<u64>,
    pub(super) forward_retries: Option<u64>,
    pub(super) retries_nonidempotent: bool,
    pub(super) connect_retries: Option<u64>,
    pub(super) health: Option<Term>,
}

/// `server`
pub(super) struct Server {
    pub(super) term: Term,
    pub(super) address: SocketAddr,
    pub(super) connections: u64,
    pub(super) weight: Option<u64>,
}

/// `health_check`
pub(super) struct HealthCheck {
    pub(super) name: Term,
    /// Method of the probe, and its place.
    pub(super) method: Option<(Vec<u8>, Term)>,
    /// Path of the probe.
    pub(super) path: Vec<u8>,
    /// Fields of the probe.
    pub(super) fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// First and last of each range.
    pub(super) statuses: Vec<(u16, u16)>,
    /// `resp_crc32`, as `crc32` of `match` has it.
    pub(super) checksum: Option<String>,
    /// Seconds between probes.
    pub(super) interval: u64,
}

/// How a path is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    Any,
    Equal,
    Prefix,
    Suffix,
    Regex,
}

/// An operator and its text.
#[derive(Clone)]
pub(super) struct PathTest {
    pub(super) test: Test,
    pub(super) text: Term,
}

/// `req_hdr_add` and the like.
pub(super) struct FieldChange {
    pub(super) name: Term,
    /// `None` removes it.
    pub(super) value: Option<Term>,
    pub(super) appends: bool,
}

/// `cache_fulfill` and `cache_bypass`.
pub(super) struct CacheRule {
    pub(super) bypasses: bool,
    pub(super) path: PathTest,
}

/// `nonidempotent`
pub(super) struct Nonidempotent {
    /// `None` is any.
    pub(super) method: Option<Term>,
    pub(super) path: PathTest,
}

/// `proxy_pass`
pub(super) struct Pass {
    pub(super) origin: Origin,
    pub(super) group: usize,
    pub(super) backup: Option<usize>,
}

/// What a vhost and a location have in common.
#[derive(Default)]
pub(super) struct Policy {
    pub(super) pass: Option<Pass>,
    pub(super) cache: Vec<CacheRule>,
    /// `cache_resp_hdr_del`
    pub(super) hidden: Vec<Term>,
    /// What `cache_control_ignore` names of the directives that change what a cache does.
    pub(super) ignores: Option<(Origin, Vec<&'static str>)>,
    /// `cache_use_stale`
    pub(super) stale: Vec<Term>,
    pub(super) nonidempotent: Vec<Nonidempotent>,
    pub(super) request: Vec<FieldChange>,
    pub(super) response: Vec<FieldChange>,
    /// `frang_limits` of its own.
    pub(super) limits: Limits,
}

/// `location`
pub(super) struct Location {
    pub(super) path: PathTest,
    pub(super) policy: Policy,
}

/// `vhost`
pub(super) struct Vhost {
    pub(super) name: Term,
    pub(super) policy: Policy,
    pub(super) locations: Vec<Location>,
    pub(super) tls: Tls,
    pub(super) sticky: Option<Sticky>,
}

/// Certificates and tickets.
#[derive(Default)]
pub(super) struct Tls {
    /// With their keys.
    pub(super) certificates: Vec<(Term, Option<Term>)>,
    /// Whether there are tickets, and their lifetime in seconds.
    pub(super) tickets: Option<(bool, Option<u64>, Origin)>,
    /// `secret=`
    pub(super) ticket_secret: Option<Term>,
    pub(super) any_name: Option<bool>,
}

/// `sticky`
#[derive(Clone)]
pub(super) struct Sticky {
    /// Its name, and whether the server makes it.
    pub(super) cookie: Option<(Vec<u8>, bool, Origin)>,
    pub(super) options: Vec<(Term, Option<Term>)>,
    /// Seconds; 0 is no limit.
    pub(super) lifetime: u64,
    /// `sticky_sessions`
    pub(super) pins: bool,
    /// `secret`
    pub(super) secret: Option<Term>,
    /// `cookie enforce`, or a challenge: its requests without the cookie in a second.
    pub(super) misses: Option<u64>,
    pub(super) script: Option<Script>,
}

/// `js_challenge`
#[derive(Clone)]
pub(super) struct Script {
    pub(super) name: Term,
    pub(super) delay_min_ms: u64,
    pub(super) delay_range_ms: u64,
    pub(super) status: Option<u64>,
    pub(super) page: Option<Term>,
}

/// `http_chain`
pub(super) struct Chain {
    /// `None` is the main one.
    pub(super) name: Option<Term>,
    /// Those on marks come first, as Tempesta FW evaluates them.
    pub(super) rules: Vec<ChainRule>,
}

/// One rule.
pub(super) struct ChainRule {
    pub(super) condition: Condition,
    pub(super) negated: bool,
    pub(super) action: Action,
    pub(super) origin: Origin,
}

/// What a rule compares.
pub(super) enum Condition {
    Always,
    /// Whether the mark is this one; without a number whether there is any.
    Mark(Option<u32>),
    Field(Comparison),
}

/// A comparison with a field of the request.
pub(super) struct Comparison {
    pub(super) source: Source,
    pub(super) pattern: Pattern,
}

/// A part of the request, as a template of nginx's language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source(pub(super) Vec<u8>);

/// What it is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pattern {
    /// The whole text, without regard to case.
    Exact(Vec<u8>),
    /// A key of a `map` with its `~` or `~*`.
    Regex(Vec<u8>),
}

/// What a rule does.
pub(super) enum Action {
    Vhost(usize),
    Chain(usize),
    Mark(u32),
    Block,
    Redirect(u16, Term),
    CacheDisable(bool),
    CacheTtl(u32),
}

/// Caching outside of vhosts.
pub(super) struct Cache {
    /// Not `cache 0`.
    pub(super) is_on: bool,
    /// Where `cache` stands, or the first directive about it.
    pub(super) origin: Option<Origin>,
    /// Bytes.
    pub(super) size_bytes: u64,
    pub(super) methods: Vec<Term>,
    /// Seconds that an answer is fresh which does not say it.
    pub(super) ttl: u64,
    /// Where `cache_purge` stands.
    pub(super) purge: Option<Origin>,
    /// Addresses and prefixes.
    pub(super) purge_acl: Vec<(String, Term)>,
}

/// `response_body`
pub(super) struct Body {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) path: Term,
}
