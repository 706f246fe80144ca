//! Timeouts, loss probes and spurious timeouts, of a connection whose peer is the test.

use super::*;
use crate::ack::sender::Sender;
use crate::config::Config;
use crate::pair::{Pair, SERVER};
use crate::state::State;
use crate::time::Duration;
use alloc::vec::Vec;
use mill_wire::tcp_option::Timestamps;

fn without_probes() -> Config {
    // Without SACK there are no loss probes.
    Config {
        sack: false,
        ..Config::default()
    }
}

/// When the first segment left, in milliseconds after the first time.
fn times_of_first(pair: &Pair) -> Vec<u64> {
    let start = pair
        .log
        .iter()
        .find(|entry| entry.1 == SERVER && entry.2.len > 0);
    let (start, seq) = start
        .map(|entry| (entry.0.as_millis(), entry.2.seq))
        .unwrap();
    let of_first = pair
        .log
        .iter()
        .filter(|entry| entry.1 == SERVER && entry.2.len > 0 && entry.2.seq == seq);
    of_first.map(|entry| entry.0.as_millis() - start).collect()
}

#[test]
fn an_unanswered_segment_is_sent_again_at_doubling_intervals_until_the_peer_is_given_up() {
    let config = Config {
        retries_max: 4,
        ..without_probes()
    };
    let mut sender = Sender::new(&config);
    sender.write(1);
    sender.wait_ms(60_000);
    // SRTT 20 ms, 4 RTTVAR 40 ms, hence the minimum of 200 ms.
    assert_eq!(times_of_first(&sender.pair), [0, 220, 660, 1_540, 3_300]);
    let events = sender.pair.sides[SERVER].events;
    assert!(events.has_any(Events::TIMED_OUT));
    assert_eq!(sender.pair.state(SERVER), State::Closed);
}

#[test]
fn an_orphan_is_given_up_earlier() {
    let config = Config {
        orphan_retries_max: 2,
        ..without_probes()
    };
    let mut sender = Sender::new(&config);
    sender.write(1);
    sender.pair.close(SERVER);
    sender.wait_ms(60_000);
    assert_eq!(times_of_first(&sender.pair).len(), 3);
    assert_eq!(sender.pair.state(SERVER), State::Closed);
}

#[test]
fn an_orphan_that_makes_progress_is_not_given_up_for_timeouts_before_it() {
    for timestamps in [false, true] {
        let mut sender = Sender::new(&Config {
            orphan_retries_max: 3,
            timestamps,
            ..without_probes()
        });
        sender.write(2);
        sender.pair.close(SERVER);
        // 220, 660 and 1540 ms: three timeouts, and an answer to the third retransmission.
        sender.wait_ms(1_550);
        assert_eq!(times_of_first(&sender.pair).len(), 4, "{timestamps}");
        sender.acked(1, &[]);
        // As many again for what follows, however long the timeout still is.
        let from = sender.pair.log.len();
        sender.wait_ms(120_000);
        let second = sender.left_since(from);
        assert_eq!(second, [(1, 1); 3], "{timestamps}");
        assert_eq!(sender.pair.state(SERVER), State::Closed);
    }
}

#[test]
fn the_round_trip_of_an_original_is_certain_only_before_its_retransmission_can_be_answered() {
    // When the acknowledgement comes, milliseconds after the timeout at 220; whether the timeout learns of it.
    let check = |after_ms: u64, sack: bool, learns: bool| {
        let mut sender = Sender::new(&Config {
            sack,
            ..Config::default()
        });
        sender.write(1);
        let original = sender.ack(1);
        let probe_ms = if sack { 100 } else { 220 };
        let mut resent = sender.wait_ms(probe_ms);
        while resent.is_empty() {
            resent = sender.wait_ms(1);
        }
        let before_us = sender.connection().rtt.srtt_us();
        sender.wait_ms(after_ms);
        let mut draft = sender.ack(1);
        let echo = original.options.timestamps.unwrap().echo;
        let now = draft.options.timestamps.unwrap();
        draft.options.timestamps = Some(Timestamps { echo, ..now });
        sender.give(&draft);
        let has_learnt = sender.connection().rtt.srtt_us() > before_us;
        assert_eq!(has_learnt, learns, "{after_ms} ms, sack {sack}");
    };
    // The path's round trip is 20 ms.
    for sack in [false, true] {
        check(5, sack, true);
        check(8, sack, true);
        check(11, sack, false);
        check(19, sack, false);
        check(100, sack, false);
    }
}

#[test]
fn lost_acknowledgements_do_not_lengthen_the_timeout_of_a_short_path() {
    let config = without_probes();
    let mut sender = Sender::new(&config);
    for round in 0..50 {
        sender.write(1);
        let echo = sender.ack(1).options.timestamps.unwrap().echo;
        // The acknowledgement is lost; the answer to the retransmission echoes the original.
        let mut resent = Vec::new();
        while resent.is_empty() {
            resent = sender.wait_ms(1);
        }
        sender.wait_ms(20);
        let mut draft = sender.ack(2 * round + 1);
        let now = draft.options.timestamps.unwrap();
        draft.options.timestamps = Some(Timestamps { echo, ..now });
        sender.give(&draft);
        // The next one is answered at once.
        sender.write(1);
        sender.wait_ms(20);
        sender.acked(2 * round + 2, &[]);
        let rto = Duration::from_micros(sender.connection().rto_base_us(&config));
        assert!(rto <= Duration::from_millis(280), "{round}: {rto:?}");
        assert_eq!(sender.connection().timer.backoff(), 0, "{round}");
    }
}

#[test]
fn answers_to_retransmissions_tell_how_short_the_path_has_become() {
    for is_measured in [false, true] {
        let mut sender = Sender::new(&without_probes());
        let mut sent = 0;
        let mut resend = |sender: &mut Sender, answered_after_ms: u64, echoes_original: bool| {
            sender.write(1);
            sent += 1;
            let original = sender.ack(sent).options.timestamps.unwrap().echo;
            while sender.wait_ms(1).is_empty() {}
            sender.wait_ms(answered_after_ms);
            let mut draft = sender.ack(sent);
            if echoes_original {
                let now = draft.options.timestamps.unwrap();
                let echo = original;
                draft.options.timestamps = Some(Timestamps { echo, ..now });
            }
            sender.give(&draft);
        };
        // The path had 20 ms. All originals are lost from now on, and it has 5.
        if is_measured {
            resend(&mut sender, 5, false);
        }
        let before_us = sender.connection().rtt.srtt_us();
        // An acknowledgement was lost: 8 ms after the retransmission are time for an answer to it now, though they were none.
        resend(&mut sender, 8, true);
        let has_learnt = sender.connection().rtt.srtt_us() > before_us;
        assert_eq!(has_learnt, !is_measured);
    }
}

#[test]
fn a_path_that_becomes_longer_than_the_timeout_is_learnt() {
    for sack in [false, true] {
        let mut sender = Sender::new(&Config {
            sack,
            ..Config::default()
        });
        let mut resent = 0;
        for round in 0..12 {
            sender.write(1);
            let mut draft = sender.ack(round + 1);
            let sent = sender.wait_ms(1_000);
            resent = sent.len();
            let now = sender.ack(0).options.timestamps.unwrap().value;
            let echo = draft.options.timestamps.unwrap().echo;
            draft.options.timestamps = Some(Timestamps { value: now, echo });
            sender.give(&draft);
        }
        assert_eq!(
            resent, 0,
            "sack {sack}: {resent} sent again after 12 round trips"
        );
    }
}

#[test]
fn a_timeout_sends_one_segment_and_slow_start_begins_anew() {
    let mut sender = Sender::new(&without_probes());
    sender.write(10);
    let sent = sender.wait_ms(230);
    assert_eq!(sent, [(0, 1)]);
    assert_eq!((sender.phase(), sender.cwnd()), (Phase::Loss, 1));
    assert_eq!(sender.connection().congestion.ssthresh() / sender.mss(), 7);
    // There is no new data to find out with (RFC 5682): the rest is sent again.
    assert_eq!(sender.acked(1, &[]), [(1, 1), (2, 1)]);
    assert_eq!(sender.acked(3, &[]), [(3, 1), (4, 1), (5, 1), (6, 1)]);
    assert_eq!(sender.acked(10, &[]), []);
    assert_eq!(sender.phase(), Phase::Open);
    // A second timeout of the same window would not have reduced the threshold again.
    assert_eq!(sender.connection().congestion.ssthresh() / sender.mss(), 7);
}

#[test]
fn repeated_timeouts_of_one_window_reduce_the_threshold_once() {
    let mut sender = Sender::new(&without_probes());
    sender.write(10);
    sender.wait_ms(1_000);
    assert!(sender.connection().timer.backoff() >= 2);
    assert_eq!(sender.connection().congestion.ssthresh() / sender.mss(), 7);
}

#[test]
fn the_backoff_ends_with_a_round_trip_that_is_certain() {
    let check = |timestamps: bool, expected: u8| {
        let mut sender = Sender::new(&Config {
            timestamps,
            ..without_probes()
        });
        sender.write(10);
        sender.wait_ms(1_000);
        assert_eq!(sender.connection().timer.backoff(), 2);
        // The first segment, which was sent three times (Karn); its echo tells which one this is of.
        sender.acked(1, &[]);
        assert_eq!(
            sender.connection().timer.backoff(),
            expected,
            "{timestamps}"
        );
    };
    check(true, 0);
    check(false, 2);
}

#[test]
fn the_backoff_ends_when_the_loss_proves_genuine() {
    let check = |second: u32, expected: u8| {
        let mut sender = Sender::new(&Config {
            timestamps: false,
            ..without_probes()
        });
        sender.write(30);
        sender.wait_ms(300);
        sender.acked(1, &[]);
        assert_eq!(sender.connection().timer.backoff(), 1);
        // What new data brings about (RFC 5682 2.1 step 3): a duplicate, or more of the originals.
        sender.acked(second, &[]);
        assert_eq!(sender.connection().timer.backoff(), expected, "{second}");
    };
    check(1, 0);
    // The measurement of an original.
    check(2, 0);
}

#[test]
fn new_data_after_a_timeout_finds_out_that_it_was_spurious() {
    let check = |sack: bool, second: u32, is_spurious: bool| {
        // Without timestamps, so that it is F-RTO that finds it.
        let mut sender = Sender::new(&Config {
            timestamps: false,
            sack,
            ..Config::default()
        });
        sender.write(30);
        let sent = sender.wait_ms(500);
        assert!(sent.contains(&(0, 1)), "{sent:?}");
        let new = (sender.connection().snd.nxt() - sender.start) / sender.mss();
        // RFC 5682 2.1 step 2 (b): two new segments.
        let sent = sender.acked(1, &[]);
        assert_eq!(sent, [(new, 1), (new + 1, 1)], "sack {sack}");
        let sent = if sack && !is_spurious {
            sender.acked(1, &[(new, new + 1)])
        } else {
            sender.acked(second, &[])
        };
        let counters = sender.pair.sides[SERVER].shared.counters;
        assert_eq!(
            counters.undone,
            u64::from(is_spurious),
            "sack {sack}, {second}"
        );
        if is_spurious {
            assert_eq!(sender.phase(), Phase::Open);
        } else {
            // Conventional recovery.
            assert_eq!(sent.first(), Some(&(1, 1)), "sack {sack}");
        }
    };
    check(false, 2, true);
    check(false, 1, false);
    check(true, 2, true);
    check(true, 1, false);
}

#[test]
fn a_loss_probe_leaves_after_two_round_trips() {
    let mut sender = Sender::new(&Config::default());
    sender.write(3);
    // 2 * 20 ms and two ticks.
    assert_eq!(sender.wait_ms(41), []);
    assert_eq!(sender.wait_ms(2), [(2, 1)]);
    assert_eq!(sender.pair.sides[SERVER].shared.counters.loss_probes, 1);
    // One probe only; the timeout follows.
    assert_eq!(sender.wait_ms(215), []);
    assert_eq!(sender.wait_ms(10), [(0, 1)]);
}

#[test]
fn a_loss_probe_of_one_segment_allows_for_a_delayed_acknowledgement() {
    let mut sender = Sender::new(&Config::default());
    sender.write(1);
    // The timeout, 220 ms after the segment, comes before 40 + 200 ms, and the probe in its place.
    assert_eq!(sender.wait_ms(219), []);
    assert_eq!(sender.wait_ms(2), [(0, 1)]);
    assert_eq!(sender.pair.sides[SERVER].shared.counters.loss_probes, 1);
    assert_eq!(sender.phase(), Phase::Open);
}

#[test]
fn a_loss_probe_is_new_data_if_there_is_some() {
    let mut sender = Sender::new(&Config::default());
    // The congestion window holds back the eleventh.
    sender.write(11);
    assert_eq!(sender.wait_ms(45), [(10, 1)]);
}

#[test]
fn a_loss_probe_that_repaired_a_loss_counts_as_one() {
    let check = |is_duplicate: bool, expected_recoveries: u64| {
        let mut sender = Sender::new(&Config::default());
        sender.write(3);
        sender.wait_ms(45);
        // RFC 8985 7.4.2: with a D-SACK both arrived.
        sender.acked(3, if is_duplicate { &[(2, 3)] } else { &[] });
        sender.write(2);
        sender.acked(5, &[]);
        let counters = sender.pair.sides[SERVER].shared.counters;
        assert_eq!(counters.loss_probe_recoveries, expected_recoveries);
        assert_eq!(sender.cwnd() < 10, expected_recoveries > 0);
    };
    check(false, 1);
    check(true, 0);
}

#[test]
fn a_loss_probe_turns_the_loss_of_an_end_into_fast_recovery() {
    let mut sender = Sender::new(&Config::default());
    sender.write(10);
    sender.wait_ms(20);
    sender.acked(5, &[]);
    // Segments 5 to 9 are lost: the last one is sent again, and its report shows the others.
    let sent = sender.wait_ms(60);
    assert_eq!(sent, [(9, 1)]);
    sender.acked(5, &[(9, 10)]);
    sender.wait_ms(10);
    assert_eq!(sender.phase(), Phase::Recovery);
    assert_eq!(sender.pair.sides[SERVER].shared.counters.timeouts, 0);
}

#[test]
fn a_peer_without_sack_gets_no_loss_probe() {
    let mut sender = Sender::new(&without_probes());
    sender.write(3);
    assert_eq!(sender.wait_ms(219), []);
    assert_eq!(sender.wait_ms(2), [(0, 1)]);
    assert_eq!(sender.pair.sides[SERVER].shared.counters.loss_probes, 0);
}

#[test]
fn losses_found_before_a_loss_probe_left_are_sent_again_at_once() {
    let mut sender = Sender::new(&Config::default());
    assert_eq!(sender.write(5).len(), 5);
    sender.wait_ms(20);
    // Its timer has expired, and the device had no room.
    if let Some(cold) = &mut sender.connection().cold {
        cold.recovery.on_loss_probe_timer();
    }
    let mut reports = sender.ack(0);
    let mss = sender.mss();
    let (second, end) = (sender.start + mss, sender.start + 5 * mss);
    assert!(reports.options.sack.push(second, end));
    sender.pair.inject(SERVER, &reports.segment());
    let next = sender.pair.command(SERVER, |connection, env| {
        connection.next_segment(u64::from(5 * mss), env)
    });
    assert_eq!(next.map(|segment| segment.seq), Some(sender.start));
}
