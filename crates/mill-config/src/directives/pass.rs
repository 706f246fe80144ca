//! What `proxy_pass`, `fastcgi_pass`, `uwsgi_pass`, `scgi_pass` and `memcached_pass` have in common: the same directives
//! under five prefixes, and a group of settings for each.

pub(crate) mod cache;
pub(crate) mod cache_path;
pub(crate) mod table;
pub(crate) mod target;
pub(crate) mod tls;
pub(crate) mod value;

use std::net::SocketAddr;
use std::time::Duration;

use crate::Text;
use crate::config::settings::{Amount, group};
use crate::config::{PassProtocol, TempPath, Template};

/// A page of memory: the default size of a buffer.
const PAGE_BYTES: u64 = 4096;

group! {
    /// How requests are passed on in one protocol.
    PassSettings {
        /// `…_connect_timeout`.
        connect_timeout: Duration = Duration::from_secs(60),
        /// `…_send_timeout`, between two writes.
        send_timeout: Duration = Duration::from_secs(60),
        /// `…_read_timeout`, between two reads.
        read_timeout: Duration = Duration::from_secs(60),
        /// `proxy_tunnel_timeout`, without a byte after 101; `None` is `proxy_read_timeout`.
        tunnel_timeout: Option<Duration> = None,
        /// `…_buffering`: the answer is read ahead of the client.
        buffering: bool = true,
        /// `…_request_buffering`: the request's content is read as a whole before a server is chosen.
        request_buffering: bool = true,
        /// `…_ignore_client_abort`: go on when the client has gone.
        ignore_client_abort: bool = false,
        /// `…_buffer_size`: most bytes of an answer's head.
        buffer_size: u64 = PAGE_BYTES,
        /// `…_buffers`.
        buffers: PassBuffers = PassBuffers { count: 8, size: PAGE_BYTES },
        /// `…_busy_buffers_size` as written; see [`PassSettings::busy_buffers_size`].
        busy_buffers: Option<u64> = None,
        /// `…_max_temp_file_size` in bytes; 0 writes no temporary files.
        max_temp_file_size: u64 = 1 << 30,
        /// `…_temp_file_write_size` as written; see [`PassSettings::temp_file_write_size`].
        temp_file_write: Option<u64> = None,
        /// `…_temp_path`.
        temp_path: TempPath = TempPath::default(),
        /// `…_next_upstream`.
        next_upstream: NextUpstream = NextUpstream::DEFAULT,
        /// `…_next_upstream_tries`; 0 is no limit.
        next_upstream_tries: u64 = 0,
        /// `…_next_upstream_timeout`; zero is no limit.
        next_upstream_timeout: Duration = Duration::ZERO,
        /// `…_intercept_errors`: `error_page` holds for answers with a status of 300 or more.
        intercept_errors: bool = false,
        /// `…_limit_rate`: bytes a second that are read from a server; 0 is no limit.
        limit_rate: Amount = Amount::Fixed(0),
        /// `…_force_ranges`: answer ranges whatever Accept-Ranges says.
        force_ranges: bool = false,
        /// `…_bind`: the local address of connections.
        bind: Option<PassBind> = None,
        /// `…_socket_keepalive`: SO_KEEPALIVE.
        socket_keepalive: bool = false,
        /// `…_socket_rcvbuf`: SO_RCVBUF in bytes.
        socket_rcvbuf: Option<u64> = None,
        /// `…_socket_sndbuf`: SO_SNDBUF in bytes.
        socket_sndbuf: Option<u64> = None,
        /// `…_store`: keep a copy of answers as files.
        store: PassStore = PassStore::Off,
        /// `…_store_access`: permissions of these files.
        store_access: u32 = 0o600,
        /// `…_hide_header`; see [`PassSettings::hides`].
        hide_header: Vec<Text> = Vec::new(),
        /// `…_pass_header`; see [`PassSettings::hides`].
        pass_header: Vec<Text> = Vec::new(),
        /// `…_ignore_headers`.
        ignore_headers: IgnoredFields = IgnoredFields::NONE,
        /// `…_pass_request_headers`.
        pass_request_headers: bool = true,
        /// `…_pass_request_body`.
        pass_request_body: bool = true,
        /// `proxy_pass_trailers`: pass on what follows the answer's content.
        pass_trailers: bool = false,
    }
}

impl PassSettings {
    /// `…_busy_buffers_size`: most bytes that are being sent to the client while more is read.
    pub fn busy_buffers_size(&self) -> u64 {
        self.busy_buffers
            .unwrap_or(self.largest_buffer().saturating_mul(2))
    }

    /// `…_temp_file_write_size`: most bytes of one write to a temporary file.
    pub fn temp_file_write_size(&self) -> u64 {
        self.temp_file_write
            .unwrap_or(self.largest_buffer().saturating_mul(2))
    }

    /// Whether a field of an answer is kept from the client.
    pub fn hides(&self, protocol: PassProtocol, name: &[u8]) -> bool {
        let is_in = |list: &[Text]| list.iter().any(|known| known.eq_ignore_ascii_case(name));
        let by_default = protocol.hidden_fields().iter();
        let mut by_default = by_default.map(|known| known.as_bytes());
        (by_default.any(|known| known.eq_ignore_ascii_case(name)) || is_in(&self.hide_header))
            && !is_in(&self.pass_header)
    }

    pub(crate) fn largest_buffer(&self) -> u64 {
        self.buffer_size.max(self.buffers.size)
    }
}

/// `…_buffers NUMBER SIZE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassBuffers {
    /// How many.
    pub count: u64,
    /// Bytes of each.
    pub size: u64,
}

/// `fastcgi_param`, `uwsgi_param`, `scgi_param`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassParam {
    /// Its name. `HTTP_` and the name of a field takes the place of that field of the request; with an empty value the
    /// field is left out.
    pub name: Text,
    /// Its value.
    pub value: Template,
    /// `if_not_empty`: left out if it has no value.
    pub if_not_empty: bool,
}

/// `…_bind ADDRESS [transparent]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassBind {
    /// The local address.
    pub address: BindAddress,
    /// Even if it is no address of this machine (IP_TRANSPARENT).
    pub transparent: bool,
}

/// The address of `…_bind`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindAddress {
    /// Known at start; port 0 leaves the port to the system.
    Fixed(SocketAddr),
    /// Evaluate, then [`BindAddress::parse`]; nothing binds to nothing.
    Evaluated(Template),
}

impl BindAddress {
    /// An IP address, with or without a port; an IPv6 address with a port stands in brackets.
    pub fn parse(text: &[u8]) -> Option<SocketAddr> {
        value::address_and_port(text)
    }
}

/// `…_store`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PassStore {
    /// Keep nothing.
    Off,
    /// `on`: at the path of the request in `root` or `alias`.
    On,
    /// At this path.
    Path(Template),
}

/// `…_next_upstream`: after which failures another server is tried; `…_cache_use_stale`: in which a stale answer serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextUpstream(pub(crate) u16);

impl NextUpstream {
    /// An error while connecting, sending the request or reading the head.
    pub const ERROR: Self = Self(1);
    /// A timeout in these.
    pub const TIMEOUT: Self = Self(1 << 1);
    /// An empty or malformed answer.
    pub const INVALID_HEADER: Self = Self(1 << 2);
    /// Also requests whose method is not idempotent, once they were sent.
    pub const NON_IDEMPOTENT: Self = Self(1 << 3);
    /// None of them, whatever else is written.
    pub const OFF: Self = Self(1 << 4);
    /// The answer is being asked for already; it means nothing to `…_next_upstream`.
    pub const UPDATING: Self = Self(1 << 5);
    /// Answers with these statuses, from bit 6.
    const STATUSES: [u16; 7] = [500, 502, 503, 504, 403, 404, 429];
    const DEFAULT: Self = Self(Self::ERROR.0 | Self::TIMEOUT.0);

    /// The set of answers with a status; empty for most statuses.
    pub const fn status(status: u16) -> Self {
        let mut index = 0;
        while index < Self::STATUSES.len() {
            if Self::STATUSES[index] == status {
                return Self(1 << (6 + index));
            }
            index += 1;
        }
        Self(0)
    }

    /// Whether all of `failures` are in the set, and it is not empty or off.
    pub fn contains(self, failures: Self) -> bool {
        failures.0 != 0 && self.0 & failures.0 == failures.0 && self.0 & Self::OFF.0 == 0
    }
}

/// `…_ignore_headers`: fields of an answer without their effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IgnoredFields(pub(crate) u16);

impl IgnoredFields {
    /// None.
    pub const NONE: Self = Self(0);
    /// `X-Accel-Redirect`.
    pub const ACCEL_REDIRECT: Self = Self(1);
    /// `X-Accel-Expires`.
    pub const ACCEL_EXPIRES: Self = Self(1 << 1);
    /// `X-Accel-Limit-Rate`.
    pub const ACCEL_LIMIT_RATE: Self = Self(1 << 2);
    /// `X-Accel-Buffering`.
    pub const ACCEL_BUFFERING: Self = Self(1 << 3);
    /// `X-Accel-Charset`.
    pub const ACCEL_CHARSET: Self = Self(1 << 4);
    /// `Expires`.
    pub const EXPIRES: Self = Self(1 << 5);
    /// `Cache-Control`.
    pub const CACHE_CONTROL: Self = Self(1 << 6);
    /// `Set-Cookie`.
    pub const SET_COOKIE: Self = Self(1 << 7);
    /// `Vary`.
    pub const VARY: Self = Self(1 << 8);
    /// Of `Cache-Control` these directives alone.
    pub const NO_CACHE: Self = Self(1 << 9);
    pub const NO_STORE: Self = Self(1 << 10);
    pub const PRIVATE: Self = Self(1 << 11);
    pub const MAX_AGE: Self = Self(1 << 12);
    pub const S_MAXAGE: Self = Self(1 << 13);

    /// Whether the field is ignored.
    pub fn contains(self, field: Self) -> bool {
        self.0 & field.0 != 0
    }
}
