//! Timeouts, loss probes and spurious timeouts, of a connection whose peer is the test.

use super::*;
use crate::ack::sender::Sender;
use crate::config::Config;
use crate::pair::SERVER;
use crate::state::State;
use crate::time::Duration;
use alloc::vec::Vec;
use mill_wire::tcp_option::Timestamps;

fn without_probes() -> Config {
    // Without SACK there are no loss probes.
    Config::with(|config| config.sack = false)
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
        assert_eq!(sender.wait_ms(1_550), [(0, 1); 3], "{timestamps}");
        sender.acked(1, &[]);
        // As many again for what follows, however long the timeout still is.
        assert_eq!(sender.wait_ms(120_000), [(1, 1); 3], "{timestamps}");
        assert_eq!(sender.pair.state(SERVER), State::Closed);
    }
}

#[test]
fn the_round_trip_of_an_original_is_certain_only_before_its_retransmission_can_be_answered() {
    // When the acknowledgement comes, milliseconds after the timeout at 220; whether the timeout learns of it.
    let check = |after_ms: u64, sack: bool, learns: bool| {
        let mut sender = Sender::new(&Config::with(|config| config.sack = sack));
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
        let mut sender = Sender::new(&Config::with(|config| config.sack = sack));
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
