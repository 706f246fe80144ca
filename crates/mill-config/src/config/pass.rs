//! `proxy_pass` and its like: which group of servers a location passes its requests to, and in which protocol.

use std::sync::Arc;

use super::settings::{CacheSettings, PassSettings, Settings};
use super::{Template, Upstream, Variable};
use crate::Text;

/// `proxy_pass`, `fastcgi_pass`, `uwsgi_pass`, `scgi_pass` or `memcached_pass` of a location.
#[derive(Debug)]
pub struct Pass {
    /// By which directive.
    pub protocol: PassProtocol,
    /// Connections are under TLS; not known where the target has variables.
    pub tls: bool,
    /// By `grpc_pass`.
    pub is_grpc: bool,
    /// To which servers.
    pub target: PassTarget,
    /// The URI behind the address, which replaces the first `replaced` bytes of the request's path; `None` passes the
    /// request's own target. It may be a `?` and arguments.
    pub uri: Option<Text>,
    /// Length of the location's name.
    pub replaced: usize,
    /// `$proxy_host`: the host, with its port unless that is the default one; empty if the target has variables.
    pub host: Text,
    /// `$proxy_port`; empty for a UNIX-domain socket, or if the target has variables.
    pub port: Text,
    /// The argument as it is written, its scheme included.
    pub text: Text,
    /// `$memcached_key`, for `memcached_pass` alone.
    pub memcached_key: Option<Variable>,
}

/// What is spoken with the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassProtocol {
    /// `proxy_pass`: HTTP/1.
    Http,
    /// `fastcgi_pass`.
    Fastcgi,
    /// `uwsgi_pass`.
    Uwsgi,
    /// `scgi_pass`.
    Scgi,
    /// `memcached_pass`.
    Memcached,
}

/// The argument of `proxy_pass` and its like.
#[derive(Debug, Clone)]
pub enum PassTarget {
    /// Known from the configuration.
    Group(Arc<Upstream>),
    /// Evaluated for each request: [`crate::url::Url`] parses it (for `proxy_pass` behind `http://`), and
    /// [`super::Http::upstream`] finds a group of that name.
    Evaluated(Template),
}

impl Settings {
    /// The settings of a protocol.
    pub fn pass_settings(&self, protocol: PassProtocol) -> &PassSettings {
        match protocol {
            PassProtocol::Http => &self.proxy,
            PassProtocol::Fastcgi => &self.fastcgi,
            PassProtocol::Uwsgi => &self.uwsgi,
            PassProtocol::Scgi => &self.scgi,
            PassProtocol::Memcached => &self.memcached,
        }
    }

    /// How answers of a protocol are cached; `memcached_pass` has no cache.
    pub fn cache_settings(&self, protocol: PassProtocol) -> Option<&Arc<CacheSettings>> {
        match protocol {
            PassProtocol::Http => Some(&self.proxy_cache),
            PassProtocol::Fastcgi => Some(&self.fastcgi_cache),
            PassProtocol::Uwsgi => Some(&self.uwsgi_cache),
            PassProtocol::Scgi => Some(&self.scgi_cache),
            PassProtocol::Memcached => None,
        }
    }
}

impl PassProtocol {
    /// The beginning of its directives' names, without underscore.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Http => "proxy",
            Self::Fastcgi => "fastcgi",
            Self::Uwsgi => "uwsgi",
            Self::Scgi => "scgi",
            Self::Memcached => "memcached",
        }
    }

    /// Fields of an answer that are not passed on unless `…_pass_header` names them.
    pub(crate) fn hidden_fields(self) -> &'static [&'static str] {
        const ACCEL: [&str; 5] = [
            "X-Accel-Expires",
            "X-Accel-Redirect",
            "X-Accel-Limit-Rate",
            "X-Accel-Buffering",
            "X-Accel-Charset",
        ];
        const ACCEL_AND_STATUS: [&str; 6] =
            ["Status", ACCEL[0], ACCEL[1], ACCEL[2], ACCEL[3], ACCEL[4]];
        const HTTP: [&str; 8] = [
            "Date", "Server", "X-Pad", ACCEL[0], ACCEL[1], ACCEL[2], ACCEL[3], ACCEL[4],
        ];
        match self {
            Self::Http => &HTTP,
            Self::Fastcgi | Self::Scgi => &ACCEL_AND_STATUS,
            Self::Uwsgi => &ACCEL,
            Self::Memcached => &[],
        }
    }
}
