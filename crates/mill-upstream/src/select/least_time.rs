//! `least_time`: the peer with the least average time and fewest connections for its weight; among equal ones, round robin.

use super::Turn;
use super::least_conn::pick_least;
use crate::peer::Peer;
use mill_config::config::upstream::ResponseTime;
use mill_runtime::time::Instant;
use std::cmp::Ordering;

pub(super) fn pick(turn: &mut Turn<'_>, time: ResponseTime, inflight: bool) -> Option<usize> {
    pick_least(turn, |a, b, now| compare(a, b, time, inflight, now))
}

/// Time and connections for the weight. A peer which never answered counts as fast, so that its time becomes known.
pub(super) fn compare(
    a: &Peer,
    b: &Peer,
    time: ResponseTime,
    inflight: bool,
    now: Instant,
) -> Ordering {
    let cost = |peer: &Peer| cost(peer, time, inflight, now);
    let weight = |peer: &Peer| u128::from(peer.weight(now));
    (cost(a) * weight(b)).cmp(&(cost(b) * weight(a)))
}

/// The time that one more request would take: the average, or what unanswered requests have waited if that is longer.
fn cost(peer: &Peer, time: ResponseTime, inflight: bool, now: Instant) -> u128 {
    let load = peer.load();
    let mut expected = load.response_time(time);
    if inflight {
        expected = expected.max(load.waited(now));
    }
    expected.as_micros().max(1) * u128::from(load.active() + 1)
}
