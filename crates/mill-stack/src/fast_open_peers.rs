//! Servers that take data in a SYN (RFC 7413 4.1.3).

use alloc::collections::BTreeMap;
use core::net::IpAddr;
use mill_tcp::time::{Duration, Instant};
use mill_wire::tcp_option::FastOpenCookie;

/// Cookies by the addresses that they are good for, ours and the server's, with a limit on how many.
#[derive(Debug)]
pub(crate) struct FastOpenPeers {
    known: BTreeMap<Ends, Peer>,
    count_max: usize,
}

/// Our address and the server's.
pub(crate) type Ends = (IpAddr, IpAddr);

#[derive(Clone, Copy, Debug)]
struct Peer {
    cookie: FastOpenCookie,
    /// What the server announced, bytes.
    mss: u16,
    /// SYNs in a row that had to be repeated without their text.
    losses: u8,
    /// When its last answer came.
    at: Instant,
}

/// What a SYN to a server may carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    /// `None` to send none, an empty one to ask for one.
    pub(crate) cookie: Option<FastOpenCookie>,
    /// Bytes of the largest segment that the server takes; 0 where that is not known, or there may be no text.
    pub(crate) mss: u16,
}

/// What a server's SYN-ACK says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) cookie: Option<FastOpenCookie>,
    /// What it announces, bytes.
    pub(crate) mss: u16,
    /// It acknowledges the text of the SYN.
    pub(crate) is_text_taken: bool,
}

impl FastOpenPeers {
    pub(crate) const fn new(count_max: u32) -> Self {
        Self {
            known: BTreeMap::new(),
            count_max: count_max as usize,
        }
    }

    pub(crate) fn offer(&self, ends: Ends, now: Instant) -> Offer {
        let Some(peer) = self.known.get(&ends) else {
            return Offer {
                cookie: Some(FastOpenCookie::default()),
                mss: 0,
            };
        };
        if peer.losses > 1 && now.since(peer.at) < pause_after(peer.losses) {
            return Offer::default();
        }
        Offer {
            cookie: Some(peer.cookie),
            mss: peer.mss,
        }
    }

    /// A server has answered the SYN.
    pub(crate) fn heard(&mut self, ends: Ends, answer: Answer, now: Instant) {
        let before = self.known.get(&ends).map(|peer| peer.cookie);
        let given = answer.cookie.filter(|cookie| !cookie.as_slice().is_empty());
        let needs_none = answer.is_text_taken.then_some(FastOpenCookie::EMPTY);
        // One that gives none and has given none before is not worth the memory.
        if let Some(cookie) = given.or(before).or(needs_none) {
            let peer = Peer {
                cookie,
                mss: answer.mss,
                losses: 0,
                at: now,
            };
            self.keep(ends, peer);
        }
    }

    /// A SYN got through only when it was repeated without its data: a middlebox drops it. From the second time on
    /// data is not sent in SYNs to the server for a while, longer each time.
    pub(crate) fn lost(&mut self, ends: Ends, now: Instant) {
        if let Some(peer) = self.known.get_mut(&ends) {
            peer.losses = peer.losses.saturating_add(1);
            peer.at = now;
        }
    }

    fn keep(&mut self, ends: Ends, peer: Peer) {
        if self.count_max == 0 {
            return;
        }
        if self.known.len() >= self.count_max && !self.known.contains_key(&ends) {
            let oldest = self.known.iter().min_by_key(|(_, peer)| peer.at);
            if let Some(oldest) = oldest.map(|(ends, _)| *ends) {
                self.known.remove(&oldest);
            }
        }
        self.known.insert(ends, peer);
        debug_assert!(self.known.len() <= self.count_max);
    }
}

/// A minute after the second loss, twice as long after each further one, 17 hours at most.
fn pause_after(losses: u8) -> Duration {
    let doublings = u32::from(losses.saturating_sub(2).min(10));
    Duration::from_secs(60 << doublings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    fn ends(server: u8) -> Ends {
        let address = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        (address(1), address(server))
    }

    fn at_secs(secs: u64) -> Instant {
        Instant::from_nanos(secs * 1_000_000_000)
    }

    fn cookie(byte: u8) -> FastOpenCookie {
        FastOpenCookie::new(&[byte; 8]).expect("eight bytes")
    }

    const fn answer(cookie: Option<FastOpenCookie>, mss: u16) -> Answer {
        Answer {
            cookie,
            mss,
            is_text_taken: false,
        }
    }

    const ASKS: Offer = Offer {
        cookie: Some(FastOpenCookie::EMPTY),
        mss: 0,
    };

    #[test]
    fn a_cookie_is_asked_for_once_and_then_used_with_the_servers_mss() {
        let mut peers = FastOpenPeers::new(10);
        let now = at_secs(1);
        assert_eq!(peers.offer(ends(2), now), ASKS);
        peers.heard(ends(2), answer(None, 1_000), now);
        assert_eq!(peers.offer(ends(2), now), ASKS, "it gave none");
        for (given, mss, expected) in [
            (Some(cookie(1)), 1_000, cookie(1)),
            (None, 900, cookie(1)),
            (Some(cookie(2)), 1_460, cookie(2)),
        ] {
            peers.heard(ends(2), answer(given, mss), now);
            let offer = Offer {
                cookie: Some(expected),
                mss,
            };
            assert_eq!(peers.offer(ends(2), now), offer);
        }
        assert_eq!(peers.offer(ends(3), now), ASKS);
    }

    #[test]
    fn of_a_server_that_takes_text_without_a_cookie_the_mss_is_known() {
        let mut peers = FastOpenPeers::new(10);
        let taken = Answer {
            is_text_taken: true,
            ..answer(None, 900)
        };
        peers.heard(ends(2), taken, at_secs(1));
        let offer = peers.offer(ends(2), at_secs(1));
        assert_eq!(offer, Offer { mss: 900, ..ASKS });
        peers.heard(ends(2), answer(Some(cookie(1)), 900), at_secs(1));
        peers.heard(ends(2), taken, at_secs(1));
        let offer = peers.offer(ends(2), at_secs(1));
        assert_eq!(offer.cookie, Some(cookie(1)), "it is not forgotten");
    }

    #[test]
    fn a_way_that_drops_text_is_left_alone_for_longer_and_longer() {
        let mut peers = FastOpenPeers::new(10);
        peers.heard(ends(2), answer(Some(cookie(1)), 1_000), at_secs(0));
        let is_offered = |peers: &FastOpenPeers, secs| peers.offer(ends(2), at_secs(secs)).mss > 0;
        peers.lost(ends(2), at_secs(0));
        assert!(is_offered(&peers, 0), "one may be chance");
        peers.lost(ends(2), at_secs(0));
        assert!(!is_offered(&peers, 59));
        assert!(is_offered(&peers, 60));
        peers.lost(ends(2), at_secs(60));
        assert!(!is_offered(&peers, 179));
        assert!(is_offered(&peers, 180));
        peers.heard(ends(2), answer(None, 1_000), at_secs(180));
        peers.lost(ends(2), at_secs(180));
        assert!(is_offered(&peers, 180), "an answer wipes the slate");
        for _ in 0..300 {
            peers.lost(ends(2), at_secs(180));
        }
        assert!(is_offered(&peers, 180 + 62_000));
    }

    #[test]
    fn the_one_not_heard_of_for_longest_is_forgotten_when_there_are_too_many() {
        let mut peers = FastOpenPeers::new(2);
        for (server, secs) in [(2, 1), (3, 2), (2, 3), (4, 4)] {
            peers.heard(
                ends(server),
                answer(Some(cookie(server)), 1_000),
                at_secs(secs),
            );
        }
        let knows = |server| peers.offer(ends(server), at_secs(5)).mss > 0;
        assert_eq!((knows(2), knows(3), knows(4)), (true, false, true));
        let mut none = FastOpenPeers::new(0);
        none.heard(ends(2), answer(Some(cookie(1)), 1_000), at_secs(0));
        assert_eq!(none.offer(ends(2), at_secs(0)), ASKS);
    }
}
