//! Connections that a server gave up after it had closed them.
//!
//! RFC 9293 3.8.3 lets a sender end a connection after so many timeouts in a row, and a server's application that has closed
//! it is told nothing. Nor is the peer, which waits for the rest of the answer: it may wait for ever, or is reset when it
//! speaks. On a bad wire this happens to a sender that does everything right, so a world expects it. But only of a talk whose
//! server closes, and only where the trace shows that the first unacknowledged segment, or the question for a window that is
//! closed, was sent by its timer as often as the settings say, at intervals that double, and that no acknowledgement of
//! more arrived meanwhile.
//!
//! The same comes of a Fast Open connection whose client has the SYN-ACK and a part of the answer, and whose
//! acknowledgements are all lost: to the server it is half open, and is given up after as many SYN-ACKs as the settings say
//! (RFC 7413 4.2.2), whatever its application has in mind.

use crate::plain_tcp::host::PlainHost;
use crate::plan::{Asking, Parting, PlainTalk, Plan, Talk};
use crate::talk::Client;
use mill_runtime::time::{Duration, Instant};
use mill_sim::packet::SentSegment;
use mill_sim::world::World;
use mill_tcp::config::Config;
use mill_wire::tcp::Flags;
use std::array::from_fn;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// The clients' ends of such connections.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    clients: BTreeSet<SocketAddr>,
    /// Of Fast Open connections that their servers never saw established.
    half_open: BTreeSet<SocketAddr>,
}

impl Orphans {
    pub(super) fn of(plan: &Plan, world: &World) -> Self {
        let segments = world.tcp_segments();
        let questions: [_; SERVERS] = from_fn(|server| world.neighbor_questions(server));
        let mut flows: BTreeMap<(SocketAddr, SocketAddr), Vec<&SentSegment>> = BTreeMap::new();
        for segment in &segments {
            let ends = if station_of(segment.from) < SERVERS {
                (segment.from, segment.to)
            } else {
                (segment.to, segment.from)
            };
            flows.entry(ends).or_default().push(segment);
        }
        let mut orphans = Self::default();
        for ((server, client), segments) in flows {
            let station = station_of(server);
            let Some((questions, it)) = questions.get(station).zip(plan.stations.get(station))
            else {
                continue;
            };
            if is_given_up(server, &segments, questions, &it.tcp) {
                orphans.clients.insert(client);
            }
            if is_given_up_half_open(server, &segments, questions, &it.tcp) {
                orphans.half_open.insert(client);
            }
        }
        orphans
    }

    /// Whether the last connection of a client's talk is one of them.
    pub(super) fn has_talk(&self, plan: &Plan, client: &Client, talk: usize) -> bool {
        let of_talk = &plan.talks[client.index][talk];
        let end = client.ends.borrow()[talk];
        let Some(end) = end.filter(|_| !of_talk.is_for_plain) else {
            return false;
        };
        let is_orphan = is_closed_by_server(&of_talk.what) && self.clients.contains(&end);
        is_orphan || self.half_open.contains(&end)
    }

    /// Whether the connection of a talk of the other TCP is.
    pub(super) fn has_plain_talk(&self, plan: &Plan, host: &PlainHost, talk: usize) -> bool {
        let talks = plan.plain.as_ref().map_or(&[][..], |plain| &plain.talks);
        talks.get(talk).is_some_and(is_plain_closed_by_server)
            && self.clients.contains(&host.end_of(talk))
    }
}

/// Whether the server closes the connection of a talk when it has said all.
const fn is_closed_by_server(talk: &Talk) -> bool {
    match talk {
        Talk::Get { how, .. } => matches!(how, Asking::Apart | Asking::HalfClosed),
        Talk::Hash { .. } | Talk::Echo { .. } => true,
        Talk::Post { .. } => false,
    }
}

const fn is_plain_closed_by_server(talk: &PlainTalk) -> bool {
    matches!(talk.what, Talk::Hash { .. } | Talk::Echo { .. })
        || matches!(
            talk.parting,
            Parting::Second | Parting::Crossing | Parting::AtOnce
        )
}

/// Whether the segments of the last connection between two ends show that the server gave it up as half open, although the
/// client's SYN brought data. `questions` is when its host asked for neighbours.
fn is_given_up_half_open(
    server: SocketAddr,
    segments: &[&SentSegment],
    questions: &[Instant],
    config: &Config,
) -> bool {
    let is_syn = |it: &&SentSegment| it.to == server && it.flags.has(Flags::SYN);
    // It is repeated without its data.
    let Some(begins) = segments.iter().rposition(|it| is_syn(it) && it.len > 0) else {
        return false;
    };
    let segments = &segments[begins..];
    let mut syns = segments.iter().filter(|it| is_syn(it));
    let is_last = syns.all(|it| it.seq == segments[0].seq);
    let is_syn_ack = |it: &&&SentSegment| it.from == server && it.flags.has(Flags::SYN);
    let Some(syn_ack) = segments.iter().find(is_syn_ack) else {
        return false;
    };
    let sent = segments.iter().filter(is_syn_ack);
    let times: Vec<_> = sent.map(|it| it.at).collect();
    // The first one and its repetitions.
    let count_max = usize::from(config.syn_ack_retries_max) + 1;
    let mut ends = (0..times.len()).filter_map(|first| retries(&times[first..], questions, config));
    let is_unheard = |end: Instant| {
        acks(server, segments).all(|(ack, at)| !is_before(syn_ack.seq, ack) || at >= end)
    };
    is_last && ends.any(|(count, end)| count == count_max && is_unheard(end))
}

/// Whether the segments of the last connection between two ends show that the server gave it up. `questions` is when its
/// host asked for neighbours.
fn is_given_up(
    server: SocketAddr,
    segments: &[&SentSegment],
    questions: &[Instant],
    config: &Config,
) -> bool {
    let begins = segments
        .iter()
        .rposition(|it| it.to == server && it.flags.has(Flags::SYN));
    let segments = &segments[begins.unwrap_or(0)..];
    let is_data = |it: &&SentSegment| it.from == server && !it.flags.has(Flags::RST);
    let last = segments.iter().rposition(is_data).unwrap_or(0);
    let Some(edge) = acks(server, &segments[..last]).reduce(max) else {
        return false;
    };
    // What is asked for again and again, since this was acknowledged: the byte behind it, or the window.
    let asks = |it: &SentSegment| {
        let is_question = it.len == 0 && it.seq.wrapping_add(1) == edge.0;
        !it.flags.has(Flags::SYN) && (is_question || edge.0.wrapping_sub(it.seq) < it.len)
    };
    // A reset is all that a client hears afterwards.
    let sent = segments.iter().filter(|it| is_data(it));
    let times = sent.map(|it| asks(it).then_some(it.at));
    let mut times: Vec<_> = times.rev().map_while(|it| it).collect();
    times.retain(|at| *at >= edge.1);
    times.reverse();
    let retries_max = usize::from(config.orphan_retries_max);
    let ends = (0..times.len()).filter_map(|first| retries(&times[first..], questions, config));
    ends.filter(|(count, _)| *count == retries_max)
        .any(|(_, end)| {
            // What comes later finds no connection.
            acks(server, segments).all(|(ack, at)| !is_before(edge.0, ack) || at >= end)
        })
}

/// What was acknowledged and arrived, and when it was sent.
fn acks(server: SocketAddr, segments: &[&SentSegment]) -> impl Iterator<Item = (u32, Instant)> {
    let arrived = segments
        .iter()
        .filter(move |it| it.to == server && it.has_arrived && !it.flags.has(Flags::RST));
    arrived.filter_map(|it| Some((it.ack?, it.at)))
}

/// The acknowledgement of more, the first one.
const fn max(a: (u32, Instant), b: (u32, Instant)) -> (u32, Instant) {
    if is_before(a.0, b.0) { b } else { a }
}

/// How many retries there were, of which these are all that left, if they are a timer's; and when the next would have been
/// due. A retry for which the next hop's address was not known any more has left no segment, but questions: it left when
/// they were answered, or never.
fn retries(times: &[Instant], questions: &[Instant], config: &Config) -> Option<(usize, Instant)> {
    let [first, second, later @ ..] = times else {
        return None;
    };
    let mut interval = second.since(*first);
    if interval < config.rto_min * 2 {
        return None;
    }
    let (mut last, mut count) = (*second, times.len());
    let mut later = later.iter();
    loop {
        interval = (interval * 2).min(config.rto_max);
        let due = last + interval;
        let is_near = |at: &Instant| at.since(due).max(due.since(*at)) <= TICKS;
        let asks = questions.iter().any(is_near);
        match later.next() {
            Some(at) if is_near(at) => {
                // Milliseconds that were rounded off double as well.
                interval = at.since(last);
                last = *at;
            }
            Some(at) if asks && *at > due && at.since(due) <= ASKING + TICKS => last = *at,
            Some(_) => return None,
            None if asks => {
                last = due + ASKING;
                count += 1;
            }
            None => return Some((count, due)),
        }
    }
}

const fn is_before(a: u32, b: u32) -> bool {
    b.wrapping_sub(a).cast_signed() > 0
}

/// The number of a station by its address, as `build` gives them.
fn station_of(address: SocketAddr) -> usize {
    let last = match address {
        SocketAddr::V4(v4) => v4.ip().octets()[3],
        SocketAddr::V6(v6) => v6.ip().octets()[15],
    };
    usize::from(last).saturating_sub(1)
}

/// Stations that serve come first.
const SERVERS: usize = 2;

/// Timers count in milliseconds, and are late by a turn.
const TICKS: Duration = Duration::from_millis(10);

/// So long a neighbour is asked for before those that wait learn that there is no answer (RFC 4861 10).
const ASKING: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests;
