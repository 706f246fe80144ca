//! Tickets of TLS 1.3 for clients that open many connections at once.
//!
//! A ticket serves one connection (RFC 8446 C.4), and rustls' own memory keeps eight of them for each server: more
//! connections at once would shake hands in full.

use rustls::NamedGroup;
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sessions of a client context, shared by all threads. The newest ticket is taken first: it is good for longest.
pub(crate) struct ManyTickets {
    /// What is no ticket of TLS 1.3.
    others: ClientSessionMemoryCache,
    servers: Mutex<Vec<Server>>,
}

/// The tickets of one server.
struct Server {
    name: ServerName<'static>,
    tickets: Vec<Tls13ClientSessionValue>,
}

impl ManyTickets {
    /// With rustls' own memory for so many other sessions.
    pub(crate) fn new(others: usize) -> Self {
        Self {
            others: ClientSessionMemoryCache::new(others),
            servers: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Server>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for ManyTickets {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.others.set_kx_hint(name, group);
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.others.kx_hint(name)
    }

    fn set_tls12_session(&self, name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.others.set_tls12_session(name, value);
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.others.tls12_session(name)
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.others.remove_tls12_session(name);
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut servers = self.lock();
        let place = servers.iter().position(|server| server.name == name);
        let place = place.unwrap_or_else(|| {
            if servers.len() >= SERVERS_MAX {
                servers.remove(0);
            }
            servers.push(Server {
                name,
                tickets: Vec::new(),
            });
            servers.len() - 1
        });
        if let Some(server) = servers.get_mut(place)
            && server.tickets.len() < TICKETS_MAX
        {
            server.tickets.push(value);
        }
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut servers = self.lock();
        let server = servers.iter_mut().find(|server| server.name == *name)?;
        server.tickets.pop()
    }
}

impl fmt::Debug for ManyTickets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tickets: usize = self.lock().iter().map(|server| server.tickets.len()).sum();
        write!(formatter, "ManyTickets({tickets})")
    }
}

/// A load generator has one; they are searched one after the other.
const SERVERS_MAX: usize = 64;

/// Tickets of a server; each is about a kilobyte. Further ones are dropped: those that are there are still good.
const TICKETS_MAX: usize = 16 * 1024;
