//! What acknowledgements bring about, segment by segment.

use crate::ack::sender::Sender;
use crate::config::Config;
use crate::connection::ConnectionFlags;
use crate::pair::{Draft, SERVER};
use crate::recovery::Phase;
use crate::rto::timer::TimerKind;
use alloc::vec::Vec;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::Timestamps;

/// Payload bytes of a full segment of a pair with timestamps.
const MSS: u32 = 1_448;

fn one_by_one(segments: core::ops::Range<u32>) -> Vec<(u32, u32)> {
    segments.map(|segment| (segment, 1)).collect()
}

#[test]
fn the_first_window_is_ten_segments_and_doubles() {
    let mut sender = Sender::new(&Config::default());
    assert_eq!(sender.mss(), MSS);
    assert_eq!(sender.write(100), one_by_one(0..10));
    sender.wait_ms(10);
    assert_eq!(sender.acked(2, &[]), one_by_one(10..14));
    assert_eq!(sender.acked(10, &[]), one_by_one(14..30));
    assert_eq!(sender.cwnd(), 20);
}

#[test]
fn the_first_window_is_what_is_configured() {
    for segments in [1, 4, 16] {
        let mut sender = Sender::new(&Config {
            initial_window_segments: segments,
            ..Config::default()
        });
        assert_eq!(sender.write(100), one_by_one(0..segments));
    }
}

#[test]
fn the_peers_window_is_kept_on_both_sides_of_its_edge() {
    let mut sender = Sender::new(&Config {
        window_scaling: false,
        ..Config::default()
    });
    sender.write(100);
    let check = |sender: &mut Sender, window: u32, expected: &[(u32, u32)]| {
        let mut draft = sender.ack(10);
        draft.window = u16::try_from(window).unwrap();
        assert_eq!(sender.give(&draft), expected, "{window}");
    };
    check(&mut sender, 2 * MSS - 1, &[(10, 1)]);
    check(&mut sender, 2 * MSS, &[(11, 1)]);
    check(&mut sender, 3 * MSS - 1, &[]);
}

#[test]
fn a_window_is_taken_from_what_is_not_older_or_acknowledges_more() {
    let check = |seq: i32, acked: u32, is_taken: bool| {
        let mut sender = Sender::new(&Config::default());
        sender.write(10);
        // The last window came with data behind the handshake.
        let told = sender.ack(2).with_payload(b"request");
        sender.give(&told);
        let mut draft = sender.ack(acked).shifted(seq);
        draft.window = 77;
        if seq < 0 {
            draft = draft.with_payload(b"request and more");
        }
        sender.give(&draft);
        let connection = sender.connection();
        let is_other = connection.snd.wnd() >> connection.snd_wind_shift == 77;
        assert_eq!(is_other, is_taken, "{seq}, {acked} acknowledged");
    };
    check(0, 2, true);
    check(0, 3, true);
    // The request again, and more.
    check(-8, 2, false);
    check(-8, 3, true);
}

#[test]
fn three_duplicates_of_reports_are_a_loss_and_two_are_not() {
    let mut sender = Sender::new(&Config::default());
    sender.write(10);
    sender.wait_ms(20);
    assert_eq!(sender.acked(0, &[(1, 2)]), []);
    assert_eq!(sender.acked(0, &[(1, 3)]), []);
    assert_eq!(sender.phase(), Phase::Open);
    assert_eq!(sender.acked(0, &[(1, 4)]), [(0, 1)]);
    assert_eq!(sender.phase(), Phase::Recovery);
    // RFC 9438 4.6.
    assert_eq!(sender.connection().congestion.ssthresh(), 7 * MSS);
    assert_eq!(sender.pair.sides[SERVER].shared.counters.recoveries, 1);
    sender.wait_ms(20);
    assert_eq!(sender.acked(10, &[]), []);
    assert_eq!((sender.phase(), sender.cwnd()), (Phase::Open, 7));
}

#[test]
fn two_reports_are_a_loss_when_the_reordering_window_is_over() {
    let mut sender = Sender::new(&Config::default());
    sender.write(10);
    // The round trip of the handshake is 20 ms: a quarter is 5.
    sender.wait_ms(20);
    sender.acked(0, &[(2, 3)]);
    assert!(sender.connection().timer.runs_as(TimerKind::Reordering));
    assert_eq!(sender.wait_ms(4), []);
    assert_eq!(sender.wait_ms(2), [(0, 1), (1, 1)]);
    assert_eq!(sender.phase(), Phase::Recovery);
}

#[test]
fn limited_transmit_sends_new_data_for_the_first_duplicates() {
    for sack in [true, false] {
        let mut sender = Sender::new(&Config {
            sack,
            ..Config::default()
        });
        sender.write(20);
        sender.wait_ms(20);
        let report: &[(u32, u32)] = if sack { &[(1, 2)] } else { &[] };
        assert_eq!(sender.acked(0, report), [(10, 1)], "sack {sack}");
        let report: &[(u32, u32)] = if sack { &[(1, 3)] } else { &[] };
        assert_eq!(sender.acked(0, report), [(11, 1)], "sack {sack}");
    }
}

#[test]
fn without_sack_the_third_duplicate_is_a_loss_and_partial_acknowledgements_tell_the_next() {
    let mut sender = Sender::new(&Config {
        sack: false,
        ..Config::default()
    });
    sender.write(10);
    sender.wait_ms(20);
    assert_eq!(sender.acked(0, &[]), []);
    assert_eq!(sender.acked(0, &[]), []);
    assert_eq!(sender.acked(0, &[]), [(0, 1)]);
    assert_eq!(sender.phase(), Phase::Recovery);
    for _ in 0..5 {
        assert_eq!(sender.acked(0, &[]), []);
    }
    sender.wait_ms(20);
    // RFC 6582 3.2 step 3.
    assert_eq!(sender.acked(4, &[]), [(4, 1)]);
    sender.wait_ms(20);
    assert_eq!(sender.acked(10, &[]), []);
    assert_eq!(sender.phase(), Phase::Open);
}

#[test]
fn after_recovery_as_many_duplicates_are_echoes_as_segments_were_sent_again() {
    let mut sender = Sender::new(&Config {
        sack: false,
        ..Config::default()
    });
    sender.write(40);
    sender.wait_ms(20);
    for _ in 0..11 {
        sender.acked(0, &[]);
    }
    sender.wait_ms(20);
    // More is in flight than when recovery began. One segment was sent again. Of the next window the first segment, the thirteenth, is lost.
    sender.acked(12, &[]);
    assert_eq!(sender.phase(), Phase::Open);
    sender.wait_ms(20);
    for _ in 0..3 {
        sender.acked(12, &[]);
        assert_eq!(sender.phase(), Phase::Open);
    }
    assert_eq!(sender.acked(12, &[]).first(), Some(&(12, 1)));
    assert_eq!(sender.phase(), Phase::Recovery);
}

#[test]
fn what_is_no_duplicate_does_not_count_as_one() {
    let check = |name: &str, change: fn(&mut Draft)| {
        let mut sender = Sender::new(&Config {
            sack: false,
            ..Config::default()
        });
        sender.write(10);
        for number in 0..8 {
            let mut draft = sender.ack(0);
            draft.window -= number;
            change(&mut draft);
            sender.give(&draft);
        }
        assert_eq!(sender.phase(), Phase::Open, "{name}");
    };
    check("another window", |_| {});
    check("data", |draft| {
        draft.payload.push(1);
        draft.window = 900;
    });
}

#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    let mut sender = Sender::new(&Config::default());
    sender.write(30);
    sender.wait_ms(20);
    sender.acked(0, &[(1, 2)]);
    sender.acked(0, &[(1, 3)]);
    assert_eq!(sender.acked(0, &[(1, 4)])[0], (0, 1));
    sender.wait_ms(1);
    // What leaves now left after the retransmission.
    let later = sender.acked(0, &[(1, 9)]);
    let first = later[0].0;
    assert!(first >= 12, "{later:?}");
    sender.wait_ms(25);
    let again = sender.acked(0, &[(1, 9), (first, first + 1)]);
    assert!(again.contains(&(0, 1)), "{again:?}");
    let counters = sender.pair.sides[SERVER].shared.counters;
    assert_eq!(
        (counters.lost_retransmits > 0, counters.timeouts),
        (true, 0)
    );
}

#[test]
fn a_d_sack_of_the_only_retransmission_undoes_the_reduction() {
    let mut sender = Sender::new(&Config::default());
    sender.write(20);
    sender.wait_ms(20);
    for end in 2..=4 {
        sender.acked(0, &[(1, end)]);
    }
    assert_eq!(sender.phase(), Phase::Recovery);
    let cwnd_before = 10;
    sender.wait_ms(5);
    // The original came late: all is acknowledged up to 4, then the duplicate is reported.
    sender.acked(4, &[]);
    sender.acked(4, &[(0, 1)]);
    assert_eq!(sender.phase(), Phase::Open);
    assert!(sender.cwnd() >= cwnd_before, "{}", sender.cwnd());
    let counters = sender.pair.sides[SERVER].shared.counters;
    assert_eq!((counters.undone, counters.dsacks_in > 0), (1, true));
}

#[test]
fn an_echo_from_before_the_retransmission_undoes_the_reduction() {
    let check = |is_before: bool, expected: Phase| {
        let mut sender = Sender::new(&Config::default());
        sender.write(20);
        let before = sender.ack(0).options.timestamps.unwrap().echo;
        sender.wait_ms(20);
        for end in 2..=4 {
            sender.acked(0, &[(1, end)]);
        }
        sender.wait_ms(20);
        let mut draft = sender.ack(4);
        let now = draft.options.timestamps.unwrap();
        if is_before {
            draft.options.timestamps = Some(Timestamps {
                echo: before,
                ..now
            });
        }
        sender.give(&draft);
        assert_eq!(sender.phase(), expected, "{is_before}");
    };
    check(true, Phase::Open);
    check(false, Phase::Recovery);
}

#[test]
fn reports_of_what_was_never_sent_are_ignored() {
    let mut sender = Sender::new(&Config::default());
    sender.write(10);
    sender.wait_ms(20);
    sender.acked(0, &[(5, 11)]);
    sender.acked(0, &[(10, 2_000)]);
    sender.acked(3, &[(1, 2), (9, 8)]);
    let cold = sender.connection().cold.as_ref().unwrap();
    assert_eq!(cold.scoreboard.sacked_bytes(), 0);
    assert_eq!(sender.phase(), Phase::Open);
}

#[test]
fn a_peer_that_throws_away_what_it_reported_gets_it_again() {
    let mut sender = Sender::new(&Config::default());
    sender.write(10);
    sender.wait_ms(20);
    sender.acked(0, &[(1, 10)]);
    sender.wait_ms(20);
    // The first segment arrives, and nothing of the rest is there any more.
    sender.acked(1, &[]);
    let sent = sender.wait_ms(400);
    assert_eq!(sent.first(), Some(&(1, 1)));
    sender.wait_ms(20);
    let sent = sender.acked(2, &[]);
    assert!(sent.contains(&(2, 1)), "{sent:?}");
}

#[test]
fn congestion_echoes_reduce_once_a_round_trip_and_are_answered() {
    let mut sender = Sender::new(&Config::default());
    sender.connection().flags.set(ConnectionFlags::ECN, true);
    sender.write(30);
    let check = |sender: &mut Sender, acked: u32, reductions: u64| {
        sender.wait_ms(10);
        let mut draft = sender.ack(acked);
        draft.flags |= Flags::ECE;
        let from = sender.pair.log.len();
        sender.give(&draft);
        assert_eq!(
            sender.pair.sides[SERVER].shared.counters.ecn_reductions,
            reductions
        );
        let sent = sender.pair.sent_since(from, SERVER);
        sent.iter()
            .filter(|segment| segment.flags.has(Flags::CWR))
            .count()
    };
    let mut answered = check(&mut sender, 2, 1);
    answered += check(&mut sender, 4, 1);
    answered += check(&mut sender, 6, 1);
    assert_eq!(answered, 1);
    assert_eq!(sender.connection().congestion.ssthresh() / MSS, 7);
    // Beyond what was sent when it began, a new echo is a new signal.
    sender.wait_ms(10);
    let all = (sender.connection().snd.nxt() - sender.start) / MSS;
    sender.acked(all, &[]);
    let next = (sender.connection().snd.nxt() - sender.start) / MSS;
    check(&mut sender, next - 1, 2);
}

#[test]
fn a_connection_without_ecn_ignores_echoes() {
    let mut sender = Sender::new(&Config::default());
    sender.write(30);
    let mut draft = sender.ack(2);
    draft.flags |= Flags::ECE;
    sender.give(&draft);
    assert_eq!(sender.pair.sides[SERVER].shared.counters.ecn_reductions, 0);
}

#[test]
fn acknowledgements_of_single_bytes_grow_the_window_by_bytes() {
    let mut sender = Sender::new(&Config::default());
    sender.write(30);
    sender.wait_ms(20);
    let before = sender.connection().congestion.cwnd();
    for byte in 1..=100 {
        let mut draft = sender.ack(0);
        draft.ack = sender.start + byte;
        sender.give(&draft);
    }
    assert_eq!(sender.connection().congestion.cwnd(), before + 100);
}
