//! The course of one question: which server is asked next, until when, and what counts as its reply. No I/O: sockets,
//! time and random numbers are the caller's.

use super::counters::Counted;
use super::message::{Mismatch, Question, Reply};
use mill_runtime::time::{Duration, Instant};
use std::net::SocketAddr;

/// A question on its way through the servers. Order of calls: [`Query::next_step`] again and again; for each
/// [`Step::Ask`] an [`Attempt`].
#[derive(Debug)]
pub(super) struct Query<'a> {
    servers: &'a [SocketAddr],
    next: usize,
    /// Servers asked in this period; each has its turn once.
    asked: usize,
    period_ends: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Ask this server, and wait until then for its reply.
    Ask { server: SocketAddr, until: Instant },
    /// All servers have refused: begin again then.
    Wait { until: Instant },
}

/// One question to one server, from a port of its own.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) id: u16,
    server: SocketAddr,
    mismatches: u32,
}

/// What to do after a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Replied(Reply),
    /// Not the reply; wait for it.
    Ignore(Counted),
    /// So many wrong replies came that one may be guessed rightly soon: ask again, from another port.
    GiveUp(Counted),
}

impl<'a> Query<'a> {
    /// `first` is the number of the server that is asked first.
    pub(super) const fn new(servers: &'a [SocketAddr], first: usize) -> Self {
        Self {
            servers,
            next: first,
            asked: 0,
            period_ends: Instant::from_nanos(0),
        }
    }

    /// What to do at `now`: the last server did not reply in its time, or it failed earlier.
    pub(super) fn next_step(&mut self, now: Instant) -> Step {
        if now >= self.period_ends {
            self.period_ends = now + RESEND_AFTER;
            self.asked = 0;
        }
        let until = self.period_ends;
        if self.asked == self.servers.len() {
            return Step::Wait { until };
        }
        let server = self.servers[self.next % self.servers.len()];
        self.next = (self.next + 1) % self.servers.len();
        self.asked += 1;
        Step::Ask { server, until }
    }
}

impl Attempt {
    pub(super) const fn new(server: SocketAddr, id: u16) -> Self {
        Self {
            id,
            server,
            mismatches: 0,
        }
    }

    /// A datagram has come to the attempt's port.
    pub(super) fn on_datagram(
        &mut self,
        question: &Question,
        remote: SocketAddr,
        bytes: &[u8],
    ) -> Verdict {
        let parsed = if remote == self.server {
            question.parse(self.id, bytes)
        } else {
            Err(Mismatch::WrongId)
        };
        let event = match parsed {
            Ok(reply) => return Verdict::Replied(reply),
            Err(Mismatch::UnknownCode) => Counted::UnknownCode,
            Err(_) => Counted::Mismatch,
        };
        self.mismatches += 1;
        if self.mismatches >= MISMATCHES_MAX {
            return Verdict::GiveUp(event);
        }
        Verdict::Ignore(event)
    }
}

/// nginx's `resend_timeout`: then the next server is asked.
pub(super) const RESEND_AFTER: Duration = Duration::from_secs(5);

/// Wrong replies at one port. RFC 5452 9.1: an attacker that floods a port gets one chance in a thousand at most.
const MISMATCHES_MAX: u32 = 64;

#[cfg(test)]
mod tests {
    use super::super::host_name::HostName;
    use super::super::message::RecordKind;
    use super::*;

    fn servers(count: u8) -> Vec<SocketAddr> {
        let server = |last| SocketAddr::from(([10, 0, 0, last], 53));
        (1..=count).map(server).collect()
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(1) + Duration::from_secs(seconds)
    }

    fn ask(server: SocketAddr, until: u64) -> Step {
        let until = at(until);
        Step::Ask { server, until }
    }

    #[test]
    fn a_server_that_does_not_reply_is_followed_by_the_next_one_after_five_seconds() {
        let servers = servers(2);
        let mut query = Query::new(&servers, 1);
        assert_eq!(query.next_step(at(0)), ask(servers[1], 5));
        assert_eq!(query.next_step(at(5)), ask(servers[0], 10));
        assert_eq!(query.next_step(at(10)), ask(servers[1], 15));
    }

    #[test]
    fn a_server_that_refuses_is_followed_at_once_but_only_once_in_five_seconds() {
        let servers = servers(2);
        let mut query = Query::new(&servers, 0);
        assert_eq!(query.next_step(at(0)), ask(servers[0], 5));
        assert_eq!(query.next_step(at(1)), ask(servers[1], 5));
        assert_eq!(query.next_step(at(1)), Step::Wait { until: at(5) });
        assert_eq!(query.next_step(at(5)), ask(servers[0], 10));
        let mut alone = Query::new(&servers[..1], 7);
        assert_eq!(alone.next_step(at(0)), ask(servers[0], 5));
        assert_eq!(alone.next_step(at(0)), Step::Wait { until: at(5) });
    }

    #[test]
    fn too_many_wrong_replies_end_an_attempt() {
        let question = Question {
            name: HostName::parse(b"a.b").unwrap(),
            kind: RecordKind::A,
        };
        let server = servers(1)[0];
        let mut attempt = Attempt::new(server, 7);
        for _ in 1..MISMATCHES_MAX {
            let verdict = attempt.on_datagram(&question, server, b"no message");
            assert_eq!(verdict, Verdict::Ignore(Counted::Mismatch));
        }
        let verdict = attempt.on_datagram(&question, server, b"no message");
        assert_eq!(verdict, Verdict::GiveUp(Counted::Mismatch));
    }

    #[test]
    fn a_reply_from_another_address_or_port_does_not_count() {
        let question = Question {
            name: HostName::parse(b"a.b").unwrap(),
            kind: RecordKind::A,
        };
        let server = servers(1)[0];
        let mut reply = question.emit(7);
        // The flag of a reply (RFC 1035 4.1.1).
        reply[2] |= 0x80;
        let check = |remote: &str, counts: bool| {
            let remote = remote.parse().unwrap();
            let verdict = Attempt::new(server, 7).on_datagram(&question, remote, &reply);
            assert_eq!(matches!(verdict, Verdict::Replied(_)), counts, "{remote}");
        };
        check("10.0.0.1:53", true);
        check("10.0.0.2:53", false);
        check("10.0.0.1:5353", false);
    }
}
