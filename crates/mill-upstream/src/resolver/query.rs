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
    /// How long the next period lasts, and the next pause after all have refused.
    period: Duration,
    pause: Duration,
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
            period: PERIOD_FIRST,
            pause: PAUSE_FIRST,
        }
    }

    /// What to do at `now`: the last server did not reply in its time, or it failed earlier.
    pub(super) fn next_step(&mut self, now: Instant) -> Step {
        if now >= self.period_ends {
            self.period_ends = now + self.period;
            self.period = (self.period * 2).min(PERIOD_MAX);
            self.asked = 0;
        }
        if self.asked == self.servers.len() {
            self.period_ends = self.period_ends.min(now + self.pause);
            self.pause = (self.pause * 2).min(PERIOD_MAX);
            let until = self.period_ends;
            return Step::Wait { until };
        }
        let until = self.period_ends;
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

/// How long the reply to a first question is waited for before the next server is asked; twice as long each time after
/// that. A datagram that is lost, or a server that is about to start, costs no more than that: nginx waits 5 s.
const PERIOD_FIRST: Duration = Duration::from_secs(1);

/// The longest such time: nginx's `resend_timeout`.
pub(super) const PERIOD_MAX: Duration = Duration::from_secs(5);

/// After all servers have refused (nothing listens at their ports yet), they are asked again so soon; then twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(250);

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

    fn ask(server: SocketAddr, until: Instant) -> Step {
        Step::Ask { server, until }
    }

    #[test]
    fn a_server_that_does_not_reply_is_followed_by_the_next_one_after_one_two_four_and_five_seconds()
     {
        let servers = servers(2);
        let mut query = Query::new(&servers, 1);
        for (number, (now, until)) in [(0, 1), (1, 3), (3, 7), (7, 12), (12, 17)]
            .into_iter()
            .enumerate()
        {
            let server = servers[(number + 1) % 2];
            assert_eq!(query.next_step(at(now)), ask(server, at(until)));
        }
    }

    #[test]
    fn servers_that_refuse_are_followed_at_once_and_asked_again_after_growing_pauses() {
        let servers = servers(2);
        let mut query = Query::new(&servers, 0);
        let mut now = at(0);
        for (patience, pause_ms) in [
            (1, 250),
            (2, 500),
            (4, 1000),
            (5, 2000),
            (5, 4000),
            (5, 5000),
        ] {
            let until = now + Duration::from_secs(patience);
            assert_eq!(query.next_step(now), ask(servers[0], until));
            assert_eq!(query.next_step(now), ask(servers[1], until));
            let until = now + Duration::from_millis(pause_ms);
            assert_eq!(query.next_step(now), Step::Wait { until });
            now = until;
        }
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
