//! Larger segments: when they are tried, and what comes of it.

use crate::config::Config;
use crate::pair::{CLIENT, Pair, SERVER, pattern};
use crate::path_mtu::PathNews;
use crate::recovery::Phase;
use crate::time::Duration;
use alloc::vec::Vec;

/// A server whose path carries segments of `carries` bytes with their options, and whose MSS is `mss` at first.
fn behind(carries: u16, mss: u16, config: &Config) -> Pair {
    let mut pair = Pair::established(config);
    pair.wire.carries = carries;
    pair.command(SERVER, |connection, env| {
        connection.on_path(mss, 1448, env);
    });
    pair
}

fn news(pair: &mut Pair) -> Option<PathNews> {
    pair.command(SERVER, |connection, env| connection.take_path_news(env))
}

/// Asks for a probe.
fn want(pair: &mut Pair, mss: u16) -> bool {
    let queued = pair.sides[SERVER].queue.len() as u64;
    pair.command(SERVER, |connection, env| {
        connection.want_larger(mss, 1448, queued, env)
    })
}

/// Writes a lot, asks for a probe of `wanted` bytes as soon as that may be, and says what came of it.
fn probe(pair: &mut Pair, wanted: u16) -> Option<PathNews> {
    let text = pattern(1_000_000);
    let before = pair.sides[CLIENT].received.len();
    pair.write(SERVER, &text);
    let mut found = None;
    let mut is_wanted = false;
    let end = pair.now + Duration::from_secs(20);
    while pair.sides[CLIENT].received.len() < before + text.len() {
        assert!(pair.step(end), "{}", pair.ladder(30));
        is_wanted = is_wanted || want(pair, wanted);
        found = found.or(news(pair));
    }
    assert!(is_wanted);
    assert!(pair.sides[CLIENT].received[before..] == text);
    found
}

#[test]
fn a_larger_segment_that_arrives_makes_all_larger() {
    let mut pair = behind(1460, 1220, &Config::default());
    assert_eq!(pair.connection(SERVER).mss(), 1208);
    assert_eq!(probe(&mut pair, 1400), Some(PathNews::Arrived(1400)));
    assert_eq!(pair.connection(SERVER).mss(), 1388);
    assert_eq!(probe(&mut pair, 1460), Some(PathNews::Arrived(1460)));
    assert_eq!(pair.connection(SERVER).mss(), 1448);
    let counters = &pair.sides[SERVER].shared.counters;
    assert_eq!((counters.path_probes, counters.path_probes_arrived), (2, 2));
}

/// RFC 4821 7.6.1: neither a timeout nor a smaller window.
#[test]
fn a_larger_segment_that_does_not_arrive_costs_a_retransmission_and_nothing_else() {
    for sack in [true, false] {
        let config = Config::with(|config| config.sack = sack);
        let mut pair = behind(1360, 1220, &config);
        assert_eq!(probe(&mut pair, 1460), Some(PathNews::Lost(1460)), "{sack}");
        assert_eq!(pair.connection(SERVER).mss(), 1208);
        let counters = &pair.sides[SERVER].shared.counters;
        assert_eq!((counters.path_probes, counters.path_probes_lost), (1, 1));
        assert_eq!((counters.timeouts, counters.recoveries), (0, 0), "{sack}");
        assert_eq!(counters.retransmitted, 2, "the probe, in two segments");
        assert_eq!(
            pair.connection(SERVER).congestion.ssthresh(),
            u32::MAX,
            "{sack}"
        );
    }
}

#[test]
fn a_probe_leaves_only_before_data_that_makes_its_loss_known() {
    let check = |bytes: usize, expected: bool| {
        let mut pair = behind(1460, 1220, &Config::default());
        // Something is in flight.
        pair.write(SERVER, &pattern(1208));
        pair.flush();
        let from = pair.log.len();
        pair.write(SERVER, &pattern(bytes));
        assert_eq!(want(&mut pair, 1460), expected);
        pair.flush();
        let sent: Vec<u32> = pair
            .sent_since(from, SERVER)
            .iter()
            .map(|segment| segment.len)
            .collect();
        assert_eq!(sent.contains(&1448), expected, "{sent:?}");
    };
    check(1448 + 3 * 1208, true);
    check(1448 + 3 * 1208 - 1, false);
}

#[test]
fn nothing_is_probed_without_leave_or_for_no_gain() {
    let check = |mtu_probing: bool, mss: u16, expected: bool| {
        let config = Config::with(|config| config.mtu_probing = mtu_probing);
        let mut pair = behind(1460, 1220, &config);
        assert!(!want(&mut pair, mss));
        pair.write(SERVER, &pattern(5 * 1208));
        assert_eq!(want(&mut pair, mss), expected, "{mss}");
        // One at a time.
        assert!(!want(&mut pair, mss));
    };
    check(true, 1460, true);
    check(true, 1221, true);
    check(true, 1220, false);
    check(false, 1460, false);
}

/// RFC 1191, RFC 8201: a router that speaks after all.
#[test]
fn a_router_may_refuse_a_probe() {
    let mut pair = behind(1460, 1220, &Config::default());
    pair.wire.lost = 1000;
    pair.write(SERVER, &pattern(1208));
    pair.flush();
    let probe = pair.connection(SERVER).snd.nxt();
    pair.write(SERVER, &pattern(9 * 1208));
    assert!(want(&mut pair, 1460));
    pair.flush();
    let mut told = |seq, mss| {
        pair.command(SERVER, |connection, env| {
            connection.on_packet_too_big(seq, mss, env)
        })
    };
    assert!(!told(probe - 1, 1400));
    assert!(!told(probe, 1460));
    assert!(told(probe, 1400));
    assert!(!told(probe, 1400), "it is not out any more");
    assert_eq!(pair.connection(SERVER).mss(), 1208);
    assert_eq!(news(&mut pair), Some(PathNews::Lost(1460)));
    pair.flush();
    let sent = pair.sent_since(0, SERVER);
    let again = sent.iter().rfind(|segment| segment.seq == probe).unwrap();
    assert!(again.is_retransmission && again.len <= 1208, "{again:?}");
}

#[test]
fn a_silent_path_is_found_out_and_said_once_smaller_segments_arrive() {
    let mut pair = Pair::established(&Config::default());
    pair.wire.carries = 1360;
    let text = pattern(200_000);
    pair.write(SERVER, &text);
    pair.run_for(Duration::from_millis(600));
    assert_eq!(news(&mut pair), None);
    pair.run_for(Duration::from_millis(300));
    let expected = PathNews::BlackHole {
        arrived: 1220,
        lost: 1460,
    };
    assert_eq!(news(&mut pair), Some(expected));
    assert_eq!(news(&mut pair), None);
    pair.run_for(Duration::from_secs(2));
    assert!(pair.sides[CLIENT].received == text);
}

/// The path was not smaller: two timeouts had another reason. The first probe is as large as segments were before.
#[test]
fn a_wrong_suspicion_is_taken_back_by_one_probe() {
    let mut pair = Pair::established(&Config::default());
    pair.wire.lost = 1000;
    pair.write(SERVER, &pattern(50_000));
    let end = pair.now + Duration::from_secs(2);
    while pair.connection(SERVER).mss() == 1448 {
        assert!(pair.step(end));
    }
    pair.wire.lost = 0;
    assert_eq!(pair.connection(SERVER).mss(), 1208);
    pair.run_until(Duration::from_secs(9), |pair| {
        pair.sides[CLIENT].received.len() == 50_000
    });
    pair.run_for(Duration::from_millis(50));
    assert!(matches!(
        news(&mut pair),
        Some(PathNews::BlackHole { lost: 1460, .. })
    ));
    assert_eq!(probe(&mut pair, 1460), Some(PathNews::Arrived(1460)));
    assert_eq!(pair.connection(SERVER).mss(), 1448);
    let phase = pair.connection(SERVER).cold.as_ref();
    assert!(phase.is_none_or(|cold| cold.recovery.phase() == Phase::Open));
}

#[test]
fn segments_follow_what_is_known_of_the_path_both_ways() {
    let mut pair = Pair::established(&Config::default());
    for (mss, expected) in [
        (1360, 1348),
        (1400, 1388),
        (1460, 1448),
        (9000, 1448),
        (512, 500),
    ] {
        pair.command(SERVER, |connection, env| {
            connection.on_path(mss, 1448, env);
        });
        assert_eq!(pair.connection(SERVER).mss(), expected, "{mss}");
    }
}

#[test]
fn a_window_of_one_segment_grows_with_the_segments() {
    let mut pair = behind(1460, 1220, &Config::default());
    pair.connection(SERVER).congestion.on_timeout(0, 1_208);
    pair.command(SERVER, |connection, env| {
        connection.on_path(1460, 1448, env);
    });
    assert_eq!(pair.connection(SERVER).mss(), 1448);
    pair.write(SERVER, &pattern(5000));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.sides[CLIENT].received.len(), 5000);
}

/// RFC 9293 3.7.1: whatever the path carries.
#[test]
fn no_probe_is_longer_than_what_the_peer_takes() {
    let mut pair = behind(1460, 512, &Config::default());
    pair.write(SERVER, &pattern(20_000));
    let queued = pair.sides[SERVER].queue.len() as u64;
    let want = |pair: &mut Pair, agreed| {
        pair.command(SERVER, |connection, env| {
            connection.want_larger(1220, agreed, queued, env)
        })
    };
    assert!(!want(&mut pair, 500));
    assert!(want(&mut pair, 1100));
    let from = pair.log.len();
    pair.run_for(Duration::from_secs(1));
    let sent = pair.sent_since(from, SERVER);
    let longest = sent.iter().map(|segment| segment.len).max();
    assert_eq!(longest, Some(1100));
}
