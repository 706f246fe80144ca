//! Idle connections of one worker to the servers of one group.

use crate::group::PeerSet;
use crate::peer::Peer;
use mill_config::config::Location;
use mill_config::config::upstream::UpstreamKeepalive;
use mill_runtime::stream::Stream;
use mill_runtime::time::Instant;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// Connections that wait for another request, the one that was used last in front.
///
/// A stream reports its last task when it changes, and needs none while it waits here: it is looked at when it is taken,
/// and by [`Self::expire`].
#[derive(Debug)]
pub struct IdleConnections<S> {
    limits: UpstreamKeepalive,
    kept: VecDeque<Idle<S>>,
}

#[derive(Debug)]
struct Idle<S> {
    peer: Arc<Peer>,
    stream: S,
    reuse: Reuse,
    since: Instant,
}

/// What a connection serves, and how much it has been used.
#[derive(Clone, Debug)]
pub struct Reuse {
    scope: Option<Rc<Scope>>,
    opened: Instant,
    requests: u64,
}

/// What a connection serves besides requests to its server; without a scope it serves all that have none either.
#[derive(Debug, Default)]
pub struct Scope {
    /// The header of the PROXY protocol that it began with; empty if none.
    pub header: Vec<u8>,
    /// Its local address: `proxy_bind` and its like.
    pub source: Option<SocketAddr>,
    /// Under TLS: with which settings, and to which name.
    pub secured: Option<(u64, Box<[u8]>)>,
    /// The location that has opened it: `keepalive N local`.
    pub location: Option<Arc<Location>>,
}

impl PartialEq for Scope {
    fn eq(&self, other: &Self) -> bool {
        let location = |scope: &Self| scope.location.as_ref().map(Arc::as_ptr);
        (&self.header, self.source, &self.secured) == (&other.header, other.source, &other.secured)
            && location(self) == location(other)
    }
}

impl Reuse {
    /// Of a new connection.
    pub const fn new(scope: Option<Rc<Scope>>, now: Instant) -> Self {
        Self {
            scope,
            opened: now,
            requests: 0,
        }
    }

    /// Of a connection that other requests use as well.
    pub const fn shared(is_begun: bool, now: Instant) -> Self {
        Self {
            scope: None,
            opened: now,
            requests: is_begun as u64,
        }
    }

    /// It has carried a request.
    pub const fn is_begun(&self) -> bool {
        self.requests > 0
    }
}

impl<S: Stream> IdleConnections<S> {
    pub fn new(limits: &UpstreamKeepalive) -> Self {
        Self {
            limits: limits.clone(),
            kept: VecDeque::new(),
        }
    }

    /// The connection of this scope to this server that was used last, if one is still open.
    pub fn take(
        &mut self,
        peer: &Arc<Peer>,
        scope: Option<&Scope>,
        now: Instant,
    ) -> Option<(S, Reuse)> {
        let serves = |idle: &Idle<S>| {
            idle.peer.shares_load_with(peer) && idle.reuse.scope.as_deref() == scope
        };
        loop {
            let found = self.kept.iter().position(serves)?;
            let idle = self.kept.remove(found)?;
            if self.is_usable(&idle, now) {
                return Some((idle.stream, idle.reuse));
            }
        }
    }

    /// Keeps a connection whose answer is whole, if the limits allow; the one that was not used for longest makes room.
    pub fn keep(&mut self, peer: &Arc<Peer>, stream: S, mut reuse: Reuse, now: Instant) {
        reuse.requests += 1;
        let room = usize::try_from(self.limits.connections.unwrap_or(0)).unwrap_or(usize::MAX);
        let is_worn =
            reuse.requests >= self.limits.requests || now.since(reuse.opened) >= self.limits.time;
        if room == 0 || is_worn {
            return;
        }
        self.kept.truncate(room - 1);
        self.kept.push_front(Idle {
            peer: Arc::clone(peer),
            stream,
            reuse,
            since: now,
        });
    }

    /// Closes connections that have waited too long, or that their servers have closed.
    pub fn expire(&mut self, now: Instant) {
        let limits = &self.limits;
        self.kept.retain(|idle| is_usable(idle, limits, now));
    }

    /// Closes connections to servers that the group no longer has.
    pub fn close_gone(&mut self, peers: &PeerSet) {
        self.kept.retain(|idle| peers.has(&idle.peer));
    }

    pub fn len(&self) -> usize {
        self.kept.len()
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    fn is_usable(&self, idle: &Idle<S>, now: Instant) -> bool {
        is_usable(idle, &self.limits, now)
    }
}

/// It has not waited too long, and the server has neither closed it nor sent bytes without a request.
fn is_usable<S: Stream>(idle: &Idle<S>, limits: &UpstreamKeepalive, now: Instant) -> bool {
    now.since(idle.since) < limits.timeout && matches!(idle.stream.poll_readable(1), Poll::Pending)
}

#[cfg(test)]
mod tests;
