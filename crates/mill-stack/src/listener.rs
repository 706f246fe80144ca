//! Listeners: who takes a SYN, and what waits to be accepted.

use crate::socket::{ListenError, ListenOptions, ListenerId};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

/// All listeners of a host.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    all: BTreeMap<u32, Listener>,
    by_port: BTreeMap<u16, Vec<u32>>,
    next: Option<u32>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    pub(crate) options: ListenOptions,
    /// Number of the configuration of its connections.
    pub(crate) config: u16,
    /// Slots of established connections, the oldest first.
    pub(crate) waiting: VecDeque<u32>,
    /// Its entries in the SYN cache.
    pub(crate) half_open: u32,
    /// Connections that a Fast Open cookie has opened and whose handshake is not complete.
    pub(crate) fast_open_waiting: u32,
    /// Until when acknowledgements may hold cookies, in milliseconds; 0 if none was ever sent.
    pub(crate) cookies_until_ms: u64,
    /// The owner was told that there is something to accept.
    pub(crate) is_reported: bool,
}

impl Listener {
    /// As Linux counts: a backlog of 0 takes one connection.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() > self.options.backlog as usize
    }

    /// Handshakes that this listener may have in the SYN cache; the others get cookies.
    pub(crate) fn half_open_max(&self) -> u32 {
        self.options.backlog.max(HALF_OPEN_MIN)
    }
}

/// As many handshakes as a listener may always have open, however short its backlog (the least `max_syn_backlog` of
/// Linux is 8).
const HALF_OPEN_MIN: u32 = 8;

impl Listeners {
    /// Adds a listener. `config` is the number of its configuration.
    pub(crate) fn insert(
        &mut self,
        address: SocketAddr,
        options: &ListenOptions,
        config: u16,
    ) -> Result<ListenerId, ListenError> {
        if !self.is_vacant(address, options.share) {
            return Err(ListenError::InUse);
        }
        let number = self.next.unwrap_or(0);
        // The last number stands for no listener.
        if number == u32::MAX {
            return Err(ListenError::TooMany);
        }
        self.next = Some(number + 1);
        let listener = Listener {
            address,
            options: options.clone(),
            config,
            waiting: VecDeque::new(),
            half_open: 0,
            fast_open_waiting: 0,
            cookies_until_ms: 0,
            is_reported: false,
        };
        self.all.insert(number, listener);
        self.by_port.entry(address.port()).or_default().push(number);
        Ok(ListenerId(number))
    }

    pub(crate) fn remove(&mut self, id: ListenerId) -> Option<Listener> {
        let listener = self.all.remove(&id.0)?;
        let port = listener.address.port();
        if let Some(numbers) = self.by_port.get_mut(&port) {
            numbers.retain(|number| *number != id.0);
            if numbers.is_empty() {
                self.by_port.remove(&port);
            }
        }
        Some(listener)
    }

    pub(crate) fn at(&self, id: ListenerId) -> Option<&Listener> {
        self.all.get(&id.0)
    }

    pub(crate) fn at_mut(&mut self, id: ListenerId) -> Option<&mut Listener> {
        self.all.get_mut(&id.0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Listener> {
        self.all.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether somebody listens at this port, whatever the address.
    pub(crate) fn has_port(&self, port: u16) -> bool {
        self.by_port.contains_key(&port)
    }

    /// The listener for a SYN to `local`: one of its very address, else of all addresses of its family, else of all
    /// addresses; among those that share it, the one that the flow's hash falls on.
    pub(crate) fn find(&self, local: SocketAddr, flow_hash: u64) -> Option<ListenerId> {
        let numbers = self.by_port.get(&local.port())?;
        let rank_of = |number: &u32| {
            let listener = self.all.get(number);
            listener.map_or(0, |listener| rank(listener, local.ip()))
        };
        let best = numbers.iter().map(rank_of).max().filter(|rank| *rank > 0)?;
        let sharing = numbers
            .iter()
            .filter(|number| rank_of(number) == best)
            .count();
        // Multiplying the hash's upper half spreads it over the group without a division.
        let chosen = ((flow_hash >> 32) * sharing as u64) >> 32;
        numbers
            .iter()
            .filter(|number| rank_of(number) == best)
            .nth(usize::try_from(chosen).unwrap_or(0))
            .map(|number| ListenerId(*number))
    }

    /// Appends the listeners that have something to accept and were not reported yet.
    pub(crate) fn take_acceptable(&mut self, into: &mut Vec<ListenerId>) {
        for (number, listener) in &mut self.all {
            if !listener.waiting.is_empty() && !listener.is_reported {
                listener.is_reported = true;
                into.push(ListenerId(*number));
            }
        }
    }

    /// Whether nobody listens at this very address, or all who do share it.
    fn is_vacant(&self, address: SocketAddr, share: bool) -> bool {
        let numbers = self.by_port.get(&address.port());
        numbers.into_iter().flatten().all(|number| {
            self.all.get(number).is_none_or(|other| {
                other.address.ip() != address.ip() || (share && other.options.share)
            })
        })
    }
}

/// How well a listener fits an address; 0 if not at all.
fn rank(listener: &Listener, local: IpAddr) -> u8 {
    match (listener.address.ip(), local) {
        (own, local) if own == local => 3,
        (IpAddr::V4(own), IpAddr::V4(_)) if own.is_unspecified() => 2,
        (IpAddr::V6(own), IpAddr::V6(_)) if own.is_unspecified() => 2,
        (IpAddr::V6(own), IpAddr::V4(_)) if own.is_unspecified() && listener.options.dual_stack => {
            1
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(listeners: &mut Listeners, address: &str, share: bool) -> Result<u32, ListenError> {
        let options = ListenOptions {
            share,
            dual_stack: true,
            ..ListenOptions::default()
        };
        let address = address.parse().unwrap();
        listeners.insert(address, &options, 0).map(|id| id.0)
    }

    fn check(listeners: &Listeners, local: &str, expected: Option<u32>) {
        let found = listeners.find(local.parse().unwrap(), 0);
        assert_eq!(found.map(|id| id.0), expected, "{local}");
    }

    #[test]
    fn the_exact_address_comes_before_the_wildcard_and_that_before_the_dual_stack() {
        let mut listeners = Listeners::default();
        assert_eq!(listen(&mut listeners, "[::]:80", false), Ok(0));
        check(&listeners, "10.0.0.1:80", Some(0));
        assert_eq!(listen(&mut listeners, "0.0.0.0:80", false), Ok(1));
        assert_eq!(listen(&mut listeners, "10.0.0.1:80", false), Ok(2));
        check(&listeners, "10.0.0.1:80", Some(2));
        check(&listeners, "10.0.0.2:80", Some(1));
        check(&listeners, "[fe80::1]:80", Some(0));
        check(&listeners, "10.0.0.1:81", None);
        assert!(listeners.remove(ListenerId(1)).is_some());
        check(&listeners, "10.0.0.2:80", Some(0));
        assert!(listeners.remove(ListenerId(1)).is_none());
        assert!(listeners.has_port(80) && !listeners.has_port(81));
    }

    #[test]
    fn an_address_is_taken_twice_only_if_both_share_it() {
        let mut listeners = Listeners::default();
        assert_eq!(listen(&mut listeners, "10.0.0.1:80", true), Ok(0));
        assert_eq!(
            listen(&mut listeners, "10.0.0.1:80", false),
            Err(ListenError::InUse)
        );
        assert_eq!(listen(&mut listeners, "10.0.0.1:80", true), Ok(1));
        assert_eq!(listen(&mut listeners, "10.0.0.1:81", false), Ok(2));
        assert_eq!(
            listen(&mut listeners, "10.0.0.1:81", true),
            Err(ListenError::InUse)
        );
    }

    #[test]
    fn a_group_shares_its_connections_by_the_flows_hash() {
        let mut listeners = Listeners::default();
        for expected in 0..3 {
            assert_eq!(listen(&mut listeners, "10.0.0.1:80", true), Ok(expected));
        }
        let mut taken = [0; 3];
        for step in 0..300u64 {
            let hash = step.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let found = listeners
                .find("10.0.0.1:80".parse().unwrap(), hash)
                .unwrap();
            taken[found.0 as usize] += 1;
        }
        assert!(
            taken.iter().all(|count| (80..120).contains(count)),
            "{taken:?}"
        );
    }
}
