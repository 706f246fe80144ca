//! What one client has done.

use super::limit::{Exceeded, FrangLimit};
use super::window::{Counted, Window};
use mill_config::config::frang::{FrangLimits, RateLimit, StatusLimit};
use mill_runtime::time::Instant;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A client: held by each of its connections, and by the table while it has a place there.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) address: IpAddr,
    account: Mutex<Account>,
    /// It has been looked up since the table last looked for a place.
    pub(super) was_used: AtomicBool,
}

/// Its counts.
#[derive(Debug, Default)]
struct Account {
    /// Connections that are open.
    connections: u32,
    connected: Window,
    requests: Window,
    handshakes: Window,
    incomplete: Window,
    /// Answers by the number of their `http_resp_code_block`, with its time frame: as many as the configuration has.
    answers: Vec<(u32, u16, Window)>,
    blocked_until: Option<Instant>,
    /// The second in which violations were last logged, and of which limits.
    told_second: u64,
    told: u32,
}

/// Why a client's request is not counted: it is blocked, or it has exceeded a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    Blocked,
    Exceeded(Exceeded),
}

impl Client {
    pub(super) fn new(address: IpAddr) -> Self {
        Self {
            address,
            account: Mutex::default(),
            was_used: AtomicBool::new(true),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has open connections.
    pub(super) fn is_connected(&self) -> bool {
        self.lock().connections > 0
    }

    pub(super) fn mark_used(&self) {
        if !self.was_used.load(Ordering::Relaxed) {
            self.was_used.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn block_until(&self, until: Option<Instant>) {
        self.lock().blocked_until = until;
    }

    /// Counts a connection until [`Client::leave`]. One that is refused counts as new, but not as open.
    pub(crate) fn connect(
        &self,
        limits: &FrangLimits,
        now: Instant,
        is_tls: bool,
    ) -> Result<(), Exceeded> {
        let account = &mut *self.lock();
        let counted = account.connected.add(now, limits.connections.frame_s);
        let open = account.connections.saturating_add(1);
        let most = limits.connections_max;
        let incomplete = account.incomplete.look(now, 1).total;
        let exceeded = if most > 0 && open > most {
            Some((FrangLimit::Connections, open, most))
        } else if is_tls && is_over(incomplete, limits.incomplete_handshakes) {
            Some((
                FrangLimit::IncompleteHandshakes,
                incomplete,
                limits.incomplete_handshakes,
            ))
        } else {
            let names = (FrangLimit::ConnectionRate, FrangLimit::ConnectionBurst);
            over(counted, &limits.connections, names)
        };
        match exceeded {
            Some(exceeded) => Err(account.exceed(exceeded, now)),
            None => {
                account.connections = open;
                Ok(())
            }
        }
    }

    /// A connection is over.
    pub(crate) fn leave(&self) {
        let account = &mut *self.lock();
        account.connections = account.connections.saturating_sub(1);
    }

    /// Counts a request.
    pub(crate) fn request(&self, limits: &FrangLimits, now: Instant) -> Result<(), Denied> {
        let account = &mut *self.lock();
        match account.blocked_until {
            Some(until) if now < until => return Err(Denied::Blocked),
            Some(_) => account.blocked_until = None,
            None => {}
        }
        if !limits.requests.is_limited() {
            return Ok(());
        }
        let counted = account.requests.add(now, limits.requests.frame_s);
        let names = (FrangLimit::RequestRate, FrangLimit::RequestBurst);
        match over(counted, &limits.requests, names) {
            None => Ok(()),
            Some(exceeded) => Err(Denied::Exceeded(account.exceed(exceeded, now))),
        }
    }

    /// Counts a handshake that is complete and has not resumed a session.
    pub(crate) fn handshake(&self, limits: &FrangLimits, now: Instant) -> Result<(), Exceeded> {
        if !limits.handshakes.is_limited() {
            return Ok(());
        }
        let account = &mut *self.lock();
        let counted = account.handshakes.add(now, limits.handshakes.frame_s);
        let names = (FrangLimit::HandshakeRate, FrangLimit::HandshakeBurst);
        match over(counted, &limits.handshakes, names) {
            None => Ok(()),
            Some(exceeded) => Err(account.exceed(exceeded, now)),
        }
    }

    /// Counts a connection that has ended before its handshake.
    pub(crate) fn break_off(&self, limits: &FrangLimits, now: Instant) -> Result<(), Exceeded> {
        let most = limits.incomplete_handshakes;
        if most == 0 {
            return Ok(());
        }
        let account = &mut *self.lock();
        let total = account.incomplete.add(now, 1).total;
        match is_over(total, most) {
            false => Ok(()),
            true => {
                let exceeded = (FrangLimit::IncompleteHandshakes, total, most);
                Err(account.exceed(exceeded, now))
            }
        }
    }

    /// Counts an answer whose status `limit` contains.
    pub(crate) fn answer(&self, limit: &StatusLimit, now: Instant) -> Result<(), Exceeded> {
        let account = &mut *self.lock();
        let answers = &mut account.answers;
        // A reload may have given the number to another one: one with another time frame begins anew.
        answers.retain(|(index, frame_s, _)| *index != limit.index || *frame_s == limit.frame_s);
        let known = answers.iter().position(|(index, ..)| *index == limit.index);
        let place = known.unwrap_or_else(|| {
            answers.push((limit.index, limit.frame_s, Window::default()));
            answers.len() - 1
        });
        let Some((_, frame_s, window)) = answers.get_mut(place) else {
            return Ok(());
        };
        let total = window.add(now, *frame_s).total;
        let most = u32::from(limit.most);
        match is_over(total, most) {
            false => Ok(()),
            true => Err(account.exceed((FrangLimit::Statuses, total, most), now)),
        }
    }

    /// Whether another violation of this limit is logged now.
    pub(crate) fn is_told(&self, limit: FrangLimit, now: Instant) -> bool {
        self.lock().is_told(limit, now)
    }
}

impl Account {
    fn exceed(&mut self, (limit, value, most): (FrangLimit, u32, u32), now: Instant) -> Exceeded {
        Exceeded {
            limit,
            value: value.into(),
            most: most.into(),
            is_told: self.is_told(limit, now),
        }
    }

    /// Whether the limit is logged: once a second.
    fn is_told(&mut self, limit: FrangLimit, now: Instant) -> bool {
        let second = now.as_nanos() / 1_000_000_000 + 1;
        if self.told_second != second {
            (self.told_second, self.told) = (second, 0);
        }
        let bit = 1 << (limit as u32);
        let is_first = self.told & bit == 0;
        self.told |= bit;
        is_first
    }
}

/// Which part of a limit is exceeded, the count, and the most.
fn over(
    counted: Counted,
    limit: &RateLimit,
    (rate, burst): (FrangLimit, FrangLimit),
) -> Option<(FrangLimit, u32, u32)> {
    if is_over(counted.burst, limit.burst) {
        return Some((burst, counted.burst, limit.burst));
    }
    is_over(counted.total, limit.rate).then_some((rate, counted.total, limit.rate))
}

/// 0 is no limit.
const fn is_over(count: u32, most: u32) -> bool {
    most > 0 && count > most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn client() -> Client {
        Client::new("192.0.2.1".parse().unwrap())
    }

    fn rate(rate: u32, burst: u32) -> RateLimit {
        RateLimit {
            rate,
            burst,
            frame_s: 1,
        }
    }

    #[test]
    fn a_burst_ends_with_its_eighth_and_a_rate_with_its_second() {
        let limits = FrangLimits {
            requests: rate(3, 2),
            ..FrangLimits::default()
        };
        let client = client();
        let check = |ms: u64, expected: Option<(FrangLimit, u64)>| {
            let found = match client.request(&limits, at(ms)) {
                Ok(()) => None,
                Err(Denied::Exceeded(exceeded)) => Some((exceeded.limit, exceeded.value)),
                Err(Denied::Blocked) => panic!("it is not blocked"),
            };
            assert_eq!(found, expected, "{ms} ms");
        };
        check(5000, None);
        check(5001, None);
        check(5002, Some((FrangLimit::RequestBurst, 3)));
        check(5125, Some((FrangLimit::RequestRate, 4)));
        check(6000, None);
        check(7000, None);
    }

    #[test]
    fn only_so_many_connections_are_open_and_refused_ones_count_as_new() {
        let limits = FrangLimits {
            connections: rate(4, 0),
            connections_max: 2,
            ..FrangLimits::default()
        };
        let client = client();
        let connect = |ms: u64| {
            client
                .connect(&limits, at(ms), false)
                .err()
                .map(|found| found.limit)
        };
        assert_eq!(connect(1000), None);
        assert_eq!(connect(1000), None);
        assert_eq!(connect(1000), Some(FrangLimit::Connections));
        client.leave();
        assert_eq!(connect(1000), None);
        client.leave();
        assert_eq!(connect(1000), Some(FrangLimit::ConnectionRate));
        assert_eq!(connect(2000), None);
        assert_eq!(connect(2000), Some(FrangLimit::Connections));
    }

    #[test]
    fn a_client_that_breaks_off_handshakes_begins_none_for_a_second() {
        let limits = FrangLimits {
            incomplete_handshakes: 1,
            handshakes: rate(1, 0),
            ..FrangLimits::default()
        };
        let client = client();
        assert_eq!(client.break_off(&limits, at(1000)), Ok(()));
        assert!(client.connect(&limits, at(1000), true).is_ok());
        let exceeded = client.break_off(&limits, at(1100)).unwrap_err();
        assert_eq!(exceeded.limit, FrangLimit::IncompleteHandshakes);
        assert!(client.connect(&limits, at(1200), true).is_err());
        assert!(
            client.connect(&limits, at(1200), false).is_ok(),
            "without TLS"
        );
        assert!(client.connect(&limits, at(2000), true).is_ok());
        assert_eq!(client.handshake(&limits, at(2000)), Ok(()));
        let exceeded = client.handshake(&limits, at(2001)).unwrap_err();
        assert_eq!(exceeded.limit, FrangLimit::HandshakeRate);
    }

    #[test]
    fn answers_are_counted_by_each_limit_for_itself() {
        let limit = |index, most, frame_s| StatusLimit {
            statuses: vec![(404, 404)],
            most,
            frame_s,
            index,
        };
        let client = client();
        let (one, two) = (limit(0, 1, 1), limit(1, 2, 8));
        assert!(client.answer(&one, at(1000)).is_ok());
        assert!(client.answer(&two, at(1000)).is_ok());
        assert!(client.answer(&one, at(1000)).is_err());
        assert!(client.answer(&one, at(2000)).is_ok());
        assert!(client.answer(&two, at(2000)).is_ok());
        assert!(client.answer(&two, at(2000)).is_err());
        assert!(
            client.answer(&limit(1, 2, 2), at(2000)).is_ok(),
            "another one since a reload"
        );
    }

    #[test]
    fn a_violation_is_told_once_a_second() {
        let client = client();
        assert!(client.is_told(FrangLimit::Methods, at(0)));
        assert!(!client.is_told(FrangLimit::Methods, at(999)));
        assert!(client.is_told(FrangLimit::UriLen, at(999)));
        assert!(client.is_told(FrangLimit::Methods, at(1000)));
    }
}
