//! Listeners: which one takes a SYN, and the connections that wait to be accepted.

use crate::process_group::Load;
use crate::socket::{ListenError, ListenOptions, ListenerId};
use crate::syn_cookie;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use mill_tcp::time::Instant;

/// All listeners of a host.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    all: BTreeMap<u32, Listener>,
    by_port: BTreeMap<u16, Vec<u32>>,
    next: Option<u32>,
    /// A connection has begun to wait since listeners were reported last.
    has_news: bool,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    pub(crate) options: ListenOptions,
    /// Number of the configuration of its connections.
    pub(crate) config: u16,
    /// Slots of established connections, the oldest first.
    waiting: VecDeque<u32>,
    /// Its entries in the SYN cache.
    half_open: u32,
    /// Connections that a Fast Open cookie has opened and whose handshake is not complete.
    fast_open_waiting: u32,
    /// Until when acknowledgements may hold cookies, in milliseconds; 0 if none was ever sent.
    cookies_until_ms: u64,
    /// What other processes were told last.
    told: Option<Load>,
    /// It is in the group of its address ([`crate::process_group`]).
    pub(crate) is_in_group: bool,
    /// Its program lets connections wait without a look.
    pub(crate) is_neglected: bool,
    /// It is about to be closed: no handshake begins, those that are under way may complete.
    pub(crate) is_draining: bool,
    /// The owner was told that connections wait.
    is_reported: bool,
}

impl Listener {
    /// As Linux counts: a backlog of 0 takes one connection.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() > self.options.backlog as usize
    }

    /// The connection that has waited for longest; without one, the next one will be reported to the owner.
    pub(crate) fn take_waiting(&mut self) -> Option<u32> {
        let index = self.waiting.pop_front();
        self.is_reported &= index.is_some();
        index
    }

    /// Connections that wait to be accepted.
    pub(crate) const fn waiting(&self) -> &VecDeque<u32> {
        &self.waiting
    }

    /// Handshakes that this listener may have in the SYN cache; the others get cookies.
    pub(crate) fn half_open_max(&self) -> u32 {
        self.options.backlog.max(HALF_OPEN_MIN)
    }

    pub(crate) const fn half_open(&self) -> u32 {
        self.half_open
    }

    /// Whether the next handshake gets a cookie.
    pub(crate) fn is_half_open_full(&self) -> bool {
        self.half_open >= self.half_open_max()
    }

    /// One more handshake of it is in the SYN cache.
    pub(crate) const fn on_half_open(&mut self) {
        self.half_open += 1;
    }

    /// … and one less.
    pub(crate) const fn on_half_open_over(&mut self) {
        debug_assert!(self.half_open > 0);
        self.half_open = self.half_open.saturating_sub(1);
    }

    /// Whether one more connection may be opened by a Fast Open cookie alone; `None` if none ever may.
    pub(crate) fn may_open_fast(&self) -> Option<bool> {
        let waiting_max = self.options.fast_open?;
        Some(self.fast_open_waiting < waiting_max)
    }

    /// One more is.
    pub(crate) const fn on_fast_open(&mut self) {
        self.fast_open_waiting += 1;
    }

    /// … and one less.
    pub(crate) const fn on_fast_open_over(&mut self) {
        debug_assert!(self.fast_open_waiting > 0);
        self.fast_open_waiting = self.fast_open_waiting.saturating_sub(1);
    }

    /// A SYN cookie leaves, which comes back in time or not at all.
    pub(crate) const fn on_cookie_sent(&mut self, now: Instant) {
        self.cookies_until_ms = now.as_millis() + syn_cookie::VALID_MS;
    }

    /// Whether an acknowledgement may hold a SYN cookie.
    pub(crate) const fn takes_cookies(&self, now: Instant) -> bool {
        self.cookies_until_ms > 0 && self.cookies_until_ms >= now.as_millis()
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
            is_in_group: false,
            is_neglected: false,
            is_draining: false,
            is_reported: false,
            told: None,
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

    /// Of those that are in a group: the address, what this host has there, also at other listeners of the same address, and what other
    /// processes were told. What the program has accepted is the caller's to say.
    pub(crate) fn each_load(&mut self, mut tell: impl FnMut(SocketAddr, Load, &mut Option<Load>)) {
        let of = |listener: &Listener| Load {
            accepted: 0,
            waiting: u32::try_from(listener.waiting.len()).unwrap_or(u32::MAX),
            half_open: listener.half_open,
            is_neglected: listener.is_neglected,
        };
        let sharing = self
            .all
            .values()
            .filter(|it| it.is_in_group && it.options.share);
        let sharing: Vec<(SocketAddr, Load)> = sharing.map(|it| (it.address, of(it))).collect();
        for listener in self.all.values_mut().filter(|it| it.is_in_group) {
            let at_address = sharing.iter().filter(|(it, _)| *it == listener.address);
            let load = match listener.options.share {
                true => at_address
                    .map(|(_, load)| *load)
                    .reduce(Load::plus)
                    .unwrap_or_default(),
                false => of(listener),
            };
            tell(listener.address, load, &mut listener.told);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether a listener has this port, at any address.
    pub(crate) fn has_port(&self, port: u16) -> bool {
        self.by_port.contains_key(&port)
    }

    /// The listener for a SYN to `local`: one of its very address, else of all addresses of its family, else of all
    /// addresses; among those that share it, the one that the flow's hash falls on.
    pub(crate) fn find(&self, local: SocketAddr, flow_hash: u64) -> Option<ListenerId> {
        self.find_where(local, flow_hash, |_| true)
    }

    /// The same among those that take new connections.
    pub(crate) fn find_open(&self, local: SocketAddr, flow_hash: u64) -> Option<ListenerId> {
        self.find_where(local, flow_hash, |listener| !listener.is_draining)
    }

    fn find_where(
        &self,
        local: SocketAddr,
        flow_hash: u64,
        is_meant: impl Fn(&Listener) -> bool,
    ) -> Option<ListenerId> {
        let numbers = self.by_port.get(&local.port())?;
        let rank_of = |number: &u32| {
            let listener = self.all.get(number).filter(|listener| is_meant(listener));
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

    /// A connection waits to be accepted.
    pub(crate) fn add_waiting(&mut self, id: ListenerId, index: u32) {
        if let Some(listener) = self.at_mut(id) {
            listener.waiting.push_back(index);
            self.has_news = true;
        }
    }

    /// Appends the listeners at which connections wait and that were not reported yet.
    #[inline]
    pub(crate) fn take_acceptable(&mut self, into: &mut Vec<ListenerId>) {
        if core::mem::take(&mut self.has_news) {
            self.find_acceptable(into);
        }
    }

    fn find_acceptable(&mut self, into: &mut Vec<ListenerId>) {
        for (number, listener) in &mut self.all {
            if !listener.waiting.is_empty() && !listener.is_reported {
                listener.is_reported = true;
                into.push(ListenerId(*number));
            }
        }
    }

    /// Whether this very address is free, or all its listeners share it.
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

    /// RFC 4987 3.6.
    #[test]
    fn acknowledgements_are_looked_at_for_cookies_only_while_one_may_come_back() {
        let mut listeners = Listeners::default();
        assert_eq!(listen(&mut listeners, "10.0.0.1:80", false), Ok(0));
        let listener = listeners.at_mut(ListenerId(0)).unwrap();
        let at_ms = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        assert!(!listener.takes_cookies(at_ms(0)));
        listener.on_cookie_sent(at_ms(5));
        let last_ms = 5 + syn_cookie::VALID_MS;
        assert!(listener.takes_cookies(at_ms(last_ms)));
        assert!(!listener.takes_cookies(at_ms(last_ms + 1)));
    }

    #[test]
    fn a_listener_is_reported_again_once_it_was_found_empty() {
        let mut listeners = Listeners::default();
        assert_eq!(listen(&mut listeners, "10.0.0.1:80", false), Ok(0));
        let reported = |listeners: &mut Listeners| {
            let mut into = Vec::new();
            listeners.take_acceptable(&mut into);
            into.len()
        };
        let id = ListenerId(0);
        listeners.add_waiting(id, 7);
        assert_eq!(reported(&mut listeners), 1);
        assert_eq!(reported(&mut listeners), 0);
        assert_eq!(listeners.at_mut(id).unwrap().take_waiting(), Some(7));
        listeners.add_waiting(id, 8);
        assert_eq!(reported(&mut listeners), 0);
        assert_eq!(listeners.at_mut(id).unwrap().take_waiting(), Some(8));
        assert_eq!(listeners.at_mut(id).unwrap().take_waiting(), None);
        listeners.add_waiting(id, 9);
        assert_eq!(reported(&mut listeners), 1);
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
