//! What acknowledgements bring about, segment by segment.

use crate::ack::sender::Sender;
use crate::config::Config;
use crate::connection::ConnectionFlags;
use crate::pair::SERVER;
use crate::recovery::Phase;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::Timestamps;

/// Payload bytes of a full segment of a pair with timestamps.
const MSS: u32 = 1_448;

#[test]
fn the_peers_window_is_kept_on_both_sides_of_its_edge() {
    let mut sender = Sender::new(&Config::with(|config| config.window_scaling = false));
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
fn after_recovery_as_many_duplicates_are_echoes_as_segments_were_sent_again() {
    let mut sender = Sender::new(&Config::with(|config| config.sack = false));
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
