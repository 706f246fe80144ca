//! The sockets that a configuration listens at, whatever is spoken there.

use super::{Config, ListenAddress, ListenOptions};
use crate::diagnostic::Spot;

/// A listener of `http` or `stream`, as far as it is a socket.
#[derive(Debug, Clone, Copy)]
pub struct ListeningSocket<'a> {
    pub address: &'a ListenAddress,
    pub options: &'a ListenOptions,
    /// Where it first occurs.
    pub spot: &'a Spot,
    /// `tcp_nodelay` of its default server.
    pub tcp_nodelay: bool,
    /// Connections to it, at one of its addresses at least, begin with a handshake of TLS.
    pub ssl: bool,
}

impl Config {
    /// All of them: those of `http`, then those of `stream`. Their places in this order are numbers of listeners for
    /// those that open sockets and hand them out; [`Config::stream_listener`] undoes it.
    pub fn sockets(&self) -> impl Iterator<Item = ListeningSocket<'_>> {
        let http = self.http.iter().flat_map(|http| &http.listeners);
        let http = http.map(|listener| ListeningSocket {
            address: &listener.address,
            options: &listener.options,
            spot: &listener.spot,
            tcp_nodelay: listener.hosts.default.location.connection.tcp_nodelay,
            ssl: listener.hosts.ssl || listener.specific.iter().any(|(_, hosts)| hosts.ssl),
        });
        let stream = self.stream.iter().flat_map(|stream| &stream.listeners);
        http.chain(stream.map(|listener| ListeningSocket {
            address: &listener.address,
            options: &listener.options,
            spot: &listener.spot,
            tcp_nodelay: listener.host.server.settings.connection.tcp_nodelay,
            ssl: listener.host.ssl || listener.specific.iter().any(|(_, host)| host.ssl),
        }))
    }

    /// The index into the listeners of `stream` of a place among all sockets; `None` if it is one of `http`.
    pub fn stream_listener(&self, place: usize) -> Option<usize> {
        let http = self.http.as_ref().map_or(0, |http| http.listeners.len());
        place.checked_sub(http)
    }
}
