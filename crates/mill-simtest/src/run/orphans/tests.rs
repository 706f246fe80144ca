//! What is taken for a connection that was given up, and what is not.

use super::*;
use crate::plan::{Change, Leave, TalkPlan, WireChange};
use crate::run::{Failure, run};
use mill_runtime::time::Instant;
use mill_sim::packet::wire::Wire;
use std::net::{IpAddr, Ipv4Addr};

const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 80);
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3)), 5000);

/// The server has sent 100 bytes from 1 on, and `FIN` behind them.
fn from_server(at_ms: u64, seq: u32, len: u32) -> SentSegment {
    SentSegment {
        at: Instant::from_nanos(at_ms * 1_000_000),
        from: SERVER,
        to: CLIENT,
        flags: Flags::ACK,
        seq,
        ack: Some(61),
        len,
        has_arrived: false,
    }
}

fn from_client(at_ms: u64, ack: u32) -> SentSegment {
    SentSegment {
        from: CLIENT,
        to: SERVER,
        ack: Some(ack),
        has_arrived: true,
        ..from_server(at_ms, 61, 0)
    }
}

/// `sent` after the client's request; three retries are all.
fn check(sent: &[SentSegment], expected: bool) {
    check_with(sent, &[], expected);
}

fn check_with(sent: &[SentSegment], questions_ms: &[u64], expected: bool) {
    let mut segments = vec![from_client(0, 1)];
    segments.extend(sent);
    let segments: Vec<_> = segments.iter().collect();
    let config = Config {
        orphan_retries_max: 3,
        rto_max: Duration::from_secs(1),
        ..Config::default()
    };
    let questions = questions_ms
        .iter()
        .map(|at| Instant::from_nanos(at * 1_000_000));
    let questions: Vec<_> = questions.collect();
    let is = is_given_up(SERVER, &segments, &questions, &config);
    assert_eq!(is, expected, "{sent:#?}, {questions_ms:?}");
}

/// The SYN-ACKs of a Fast Open connection, and acknowledgements that arrived; three repetitions are all.
fn check_half_open(syn_bytes: u32, syn_acks_ms: &[u64], acks: &[(u64, u32)], expected: bool) {
    let syn = SentSegment {
        flags: Flags::SYN,
        ack: None,
        ..from_client(0, 0)
    };
    let syn = SentSegment {
        len: syn_bytes,
        ..syn
    };
    let mut segments = vec![syn, SentSegment { len: 0, ..syn }];
    for at_ms in syn_acks_ms {
        segments.push(SentSegment {
            flags: Flags::SYN | Flags::ACK,
            ..from_server(*at_ms, 0, 0)
        });
        segments.push(from_server(*at_ms, 1, 100));
    }
    segments.extend(acks.iter().map(|(at_ms, ack)| from_client(*at_ms, *ack)));
    segments.sort_by_key(|it| it.at);
    let segments: Vec<_> = segments.iter().collect();
    let config = Config {
        syn_ack_retries_max: 3,
        ..Config::default()
    };
    let is = is_given_up_half_open(SERVER, &segments, &[], &config);
    assert_eq!(is, expected, "{syn_bytes} {syn_acks_ms:?} {acks:?}");
}

#[test]
fn a_fast_open_connection_is_given_up_after_so_many_unacknowledged_syn_acks() {
    let times = [10, 1010, 3010, 7010];
    check_half_open(59, &times, &[], true);
    check_half_open(59, &[10, 1010, 2010, 4010, 8010], &[], true);
    // An acknowledgement of the SYN-ACK came in time, or too late.
    check_half_open(59, &times, &[(2000, 1)], false);
    check_half_open(59, &times, &[(14_900, 101)], false);
    check_half_open(59, &times, &[(15_100, 101)], true);
    // It was no Fast Open; not often enough; not doubling.
    check_half_open(0, &times, &[], false);
    check_half_open(59, &times[..3], &[], false);
    check_half_open(59, &[10, 1010, 2010, 3010], &[], false);
}

#[test]
fn as_many_doubling_intervals_as_the_settings_say_are_needed() {
    let check = |times_ms: &[u64], expected: bool| {
        let data = times_ms.iter().map(|at| from_server(*at, 1, 100));
        check(&data.collect::<Vec<_>>(), expected);
    };
    check(&[10, 210, 610, 1410], true);
    // Each a millisecond late.
    check(&[10, 211, 613, 1416], true);
    // Up to the longest timeout.
    check(&[10, 410, 1210, 2210], true);
    // A loss probe before the timer, and a first segment that left late.
    check(&[10, 50, 260, 680, 1520], true);
    check(&[100, 210, 610, 1410], true);
    // Once less; not doubling; sooner than any timeout.
    check(&[10, 210], false);
    check(&[10, 210, 610, 1210], false);
    check(&[10, 110, 310, 710], false);
    check(&[], false);
}

#[test]
fn smaller_pieces_of_it_and_questions_for_a_window_count_as_well() {
    let pieces = [(10, 100), (210, 100), (610, 50), (1410, 20)];
    check(&pieces.map(|(at, len)| from_server(at, 1, len)), true);
    check(&[210, 610, 1410].map(|at| from_server(at, 0, 0)), true);
    // An acknowledgement asks for nothing, nor does what lies behind the first byte.
    check(&[210, 610, 1410].map(|at| from_server(at, 1, 0)), false);
    check(&[210, 610, 1410].map(|at| from_server(at, 2, 99)), false);
}

#[test]
fn a_retry_that_waits_for_a_neighbour_counts_as_well() {
    let check = |times_ms: &[u64], questions_ms: &[u64], expected: bool| {
        let data = times_ms.iter().map(|at| from_server(*at, 1, 100));
        check_with(&data.collect::<Vec<_>>(), questions_ms, expected);
    };
    check(&[10, 210, 610], &[], false);
    check(&[10, 210, 610], &[1410], true);
    check(&[10, 210, 610], &[1510], false);
    // Answered at once, at last, and too late.
    check(&[10, 210, 610, 1510], &[1410], true);
    check(&[10, 210, 610, 4410], &[1410, 2410, 3410], true);
    check(&[10, 210, 610, 4430], &[1410, 2410, 3410], false);
}

#[test]
fn progress_is_no_end() {
    let retries = [10, 210, 610, 1410].map(|at| from_server(at, 1, 100));
    check(&retries, true);
    let with = |more: SentSegment| [&retries[..], &[more]].concat();
    check(&with(from_client(1500, 51)), false);
    check(&with(from_client(1500, 1)), true);
    let lost = SentSegment {
        has_arrived: false,
        ..from_client(1500, 51)
    };
    check(&with(lost), true);
    // It has ended by then.
    check(&with(from_client(2410, 51)), true);
    // It goes on, or answers with a reset.
    check(&with(from_server(1500, 51, 50)), false);
    let reset = SentSegment {
        flags: Flags::RST,
        ..from_server(1500, 51, 0)
    };
    check(&with(reset), true);
}

/// One client asks for a file whose beginning it gets, then the wire is cut for so long. The rest is in the server's
/// smallest send buffer: so it has closed.
fn cut_world(cut: Duration) -> Plan {
    let mut plan = Plan::new(1);
    plan.load = None;
    plan.plain = None;
    plan.flood = None;
    plan.talks.truncate(1);
    plan.stations.truncate(3);
    plan.talks[0] = vec![TalkPlan {
        at: Duration::from_secs(1),
        what: Talk::Get {
            files: vec![(1, 15_000)],
            how: Asking::Apart,
        },
        leaves: Leave::Whole,
        pause: Duration::ZERO,
        is_for_plain: false,
    }];
    plan.stations[0].tcp.initial_window_segments = 2;
    let station = &mut plan.stations[2];
    station.outward = Wire::delayed(Duration::from_millis(100));
    station.inward = station.outward;
    let at = Duration::from_millis(1_650);
    let (outward, inward) = (true, true);
    let change = |at, what| Change {
        at,
        station: 2,
        what,
    };
    plan.changes = vec![
        change(at, WireChange::Cut { outward, inward }),
        change(at + cut, WireChange::Heal),
    ];
    plan
}

/// Eight timeouts end it; before that the answer goes on, and nothing has to be excused.
#[test]
fn a_world_expects_an_orphan_to_end_after_its_retries_and_not_sooner() {
    for cut_secs in [20, 1_000] {
        let outcome = run(&cut_world(Duration::from_secs(cut_secs)), false);
        assert_eq!(
            outcome.failures,
            Vec::<Failure>::new(),
            "{cut_secs}: {}",
            outcome.segments
        );
        assert_eq!(outcome.talks, usize::from(cut_secs == 20), "{cut_secs}");
    }
}
