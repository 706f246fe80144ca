//! Which server answers a host name.

use std::sync::Arc;

use super::{Captures, Pattern, Server};
use crate::Text;

/// The servers behind one address.
#[derive(Debug)]
pub struct VirtualHosts {
    /// `default_server`, or the first one; serves hosts that match no name.
    pub default: Arc<Server>,
    /// The names of all of them.
    pub names: ServerNames<Arc<Server>>,
    /// `proxy_protocol` of the address: connections to it begin with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// `ssl` of the address: connections to it begin with a handshake of TLS.
    pub ssl: bool,
    /// HTTP/2 is spoken at the address, beside HTTP/1: by one of its servers, or by all.
    pub http2: bool,
    /// `http2` of `listen`: by all of them.
    pub http2_of_address: bool,
}

impl VirtualHosts {
    /// The server of a host (without port; any case; a dot at its end does not count).
    /// `captures` receives the captures when a regular expression decides.
    pub fn find(&self, host: &[u8], captures: &mut Captures) -> &Arc<Server> {
        self.names.find(host, captures).unwrap_or(&self.default)
    }

    /// Whether a client chooses among several servers by this name, and one of them has it.
    pub fn is_choice(&self, name: &[u8]) -> bool {
        let is_other = |server: &Arc<Server>| !Arc::ptr_eq(server, &self.default);
        self.names.values().any(is_other) && self.names.find(name, &mut Vec::new()).is_some()
    }
}

/// Host names with wildcards: exact, then the longest `*.name`, then the longest `name.*`, then
/// the regular expressions in order.
#[derive(Debug)]
pub struct ServerNames<T> {
    exact: Vec<(Text, T)>,
    /// Without `*.`.
    below: Vec<(Text, T)>,
    /// Without `.*`.
    prefixes: Vec<(Text, T)>,
    patterns: Vec<(Arc<Pattern>, T)>,
}

impl<T> Default for ServerNames<T> {
    fn default() -> Self {
        Self {
            exact: Vec::new(),
            below: Vec::new(),
            prefixes: Vec::new(),
            patterns: Vec::new(),
        }
    }
}

impl<T> ServerNames<T> {
    /// The values of all names; one that has several names comes several times.
    fn values(&self) -> impl Iterator<Item = &T> {
        let texts = [&self.exact, &self.below, &self.prefixes];
        let of_texts = texts.into_iter().flatten().map(|(_, value)| value);
        of_texts.chain(self.patterns.iter().map(|(_, value)| value))
    }

    /// The value of a host; `None` if no name matches. Does not allocate.
    pub fn find(&self, host: &[u8], captures: &mut Captures) -> Option<&T> {
        let host = host.strip_suffix(b".").unwrap_or(host);
        if let Some(value) = lookup(&self.exact, host) {
            return Some(value);
        }
        if !self.below.is_empty() {
            let mut rest = host;
            while let Some(dot) = rest.iter().position(|&byte| byte == b'.') {
                rest = rest.get(dot + 1..).unwrap_or_default();
                if let Some(value) = lookup(&self.below, rest) {
                    return Some(value);
                }
            }
        }
        if !self.prefixes.is_empty() {
            let mut rest = host;
            while let Some(dot) = rest.iter().rposition(|&byte| byte == b'.') {
                rest = rest.get(..dot).unwrap_or_default();
                if let Some(value) = lookup(&self.prefixes, rest) {
                    return Some(value);
                }
            }
        }
        let pattern = self.patterns.iter().find(|(pattern, _)| {
            if host.iter().any(u8::is_ascii_uppercase) {
                pattern.captures(&host.to_ascii_lowercase(), captures)
            } else {
                pattern.captures(host, captures)
            }
        });
        pattern.map(|(_, value)| value)
    }

    /// Adds an exact name (lower-cased); false when it is taken.
    pub(crate) fn insert_exact(&mut self, name: Text, value: T) -> bool {
        insert(&mut self.exact, name, value)
    }

    /// Adds `*.name`; false when it is taken.
    pub(crate) fn insert_below(&mut self, name: Text, value: T) -> bool {
        insert(&mut self.below, name, value)
    }

    /// Adds `name.*`; false when it is taken.
    pub(crate) fn insert_prefix(&mut self, name: Text, value: T) -> bool {
        insert(&mut self.prefixes, name, value)
    }

    /// Adds a regular expression after the present ones.
    pub(crate) fn push_pattern(&mut self, pattern: Arc<Pattern>, value: T) {
        self.patterns.push((pattern, value));
    }

    /// Whether an exact name is taken.
    pub(crate) fn has_exact(&self, name: &[u8]) -> bool {
        lookup(&self.exact, name).is_some()
    }

    /// Whether `*.name` is taken.
    pub(crate) fn has_below(&self, name: &[u8]) -> bool {
        lookup(&self.below, name).is_some()
    }
}

fn lookup<'a, T>(table: &'a [(Text, T)], name: &[u8]) -> Option<&'a T> {
    let order = |known: &Text| {
        known
            .iter()
            .copied()
            .cmp(name.iter().map(u8::to_ascii_lowercase))
    };
    let index = table.binary_search_by(|(known, _)| order(known)).ok()?;
    table.get(index).map(|(_, value)| value)
}

fn insert<T>(table: &mut Vec<(Text, T)>, name: Text, value: T) -> bool {
    match table.binary_search_by(|(known, _)| known.cmp(&name)) {
        Ok(_) => false,
        Err(index) => {
            table.insert(index, (name, value));
            true
        }
    }
}
