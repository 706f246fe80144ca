//! TIME-WAIT, segment by segment (RFC 9293 3.10.7.4).

use super::*;
use crate::config::Config;
use crate::env::Shared;
use crate::pair::Draft;
use crate::segment::Ecn;
use crate::time::{Duration, Instant};
use alloc::vec::Vec;
use mill_wire::tcp_option::Timestamps;

const SND_NXT: SeqNumber = SeqNumber(100);
const RCV_NXT: SeqNumber = SeqNumber(u32::MAX - 5);

fn wait(timestamps: bool) -> TimeWait {
    TimeWait {
        snd_nxt: SND_NXT,
        rcv_nxt: RCV_NXT,
        window: 77,
        timestamps,
        ts: TimestampState::new(0, 1000),
        ends_at: Tick(20_000),
    }
}

/// A segment whose number is counted from RCV.NXT, and whose timestamp from TS.Recent.
fn draft(flags: Flags, seq: i32, stamp: Option<i32>) -> Draft {
    Draft {
        seq: SeqNumber(RCV_NXT.0.wrapping_add_signed(seq)),
        ack: SND_NXT,
        flags,
        window: 10,
        options: TcpOptions {
            timestamps: stamp.map(|by| Timestamps {
                value: 1000_u32.wrapping_add_signed(by),
                echo: 0,
            }),
            ..TcpOptions::default()
        },
        payload: Vec::new(),
        ecn: Ecn::NotCapable,
        merged: 1,
    }
}

fn give(wait: &mut TimeWait, draft: &Draft) -> TimeWaitOutcome {
    let mut shared = Shared::new(1);
    let mut env = Env {
        now: Instant::from_nanos(0) + Duration::from_secs(10),
        config: &Config::default(),
        shared: &mut shared,
        segment_bytes_max: 1460,
        memory_left_bytes: 0,
    };
    wait.on_segment(&draft.segment(), &mut env)
}

fn check(timestamps: bool, draft: &Draft, expected: &str, begins_anew: bool) {
    let mut wait = wait(timestamps);
    let outcome = match give(&mut wait, draft) {
        TimeWaitOutcome::Answer(answer) => {
            assert_eq!((answer.seq, answer.ack), (SND_NXT, RCV_NXT));
            assert_eq!((answer.flags, answer.window), (Flags::ACK, 77));
            assert_eq!(answer.options.timestamps.is_some(), timestamps);
            "ack"
        }
        TimeWaitOutcome::Reopen { .. } => "reopen",
        TimeWaitOutcome::Reset => "reset",
        TimeWaitOutcome::Dropped(_) => "dropped",
    };
    assert_eq!(outcome, expected, "{draft:?}");
    let ends_at = if begins_anew { 70_000 } else { 20_000 };
    assert_eq!(wait.ends_at, Tick(ends_at), "{draft:?}");
}

/// RFC 9293 3.10.7.4, eighth: two maximum segment lifetimes from now.
#[test]
fn a_fin_again_is_acknowledged_and_the_wait_begins_anew() {
    let fin = Flags::FIN | Flags::ACK;
    check(false, &draft(fin, -1, None), "ack", true);
    check(true, &draft(fin, -1, Some(0)), "ack", true);
    check(true, &draft(fin, -1, Some(-1)), "ack", false);
    let with_text = draft(fin, -5, None).with_payload(b"text");
    check(false, &with_text, "ack", true);
    check(false, &draft(fin, 0, None), "ack", false);
    check(false, &draft(fin, -2, None), "ack", false);
}

/// RFC 9293 3.10.7.4, second; RFC 5961 3.2. A RST need not have a timestamp (RFC 7323 3.2).
#[test]
fn a_reset_with_the_next_number_ends_the_wait() {
    for seq in [-1, 1] {
        check(false, &draft(Flags::RST, seq, None), "dropped", false);
    }
    check(false, &draft(Flags::RST, 0, None), "reset", false);
    check(true, &draft(Flags::RST, 0, None), "reset", false);
    check(true, &draft(Flags::RST, 0, Some(0)), "reset", false);
    check(true, &draft(Flags::RST, 0, Some(-1)), "dropped", false);
}

/// RFC 9293 3.10.7.4, first and fifth: answered if it lies before the window, but it prolongs nothing.
#[test]
fn what_has_no_acknowledgement_does_not_prolong_the_wait() {
    check(false, &draft(Flags::FIN, -1, None), "ack", false);
    check(true, &draft(Flags::FIN, -1, Some(0)), "ack", false);
    check(false, &draft(Flags::FIN, 0, None), "dropped", false);
    let text = |seq| draft(Flags::PSH, seq, None).with_payload(b"x");
    check(false, &text(-1), "ack", false);
    check(false, &text(0), "dropped", false);
    for seq in [-1, 0, 1] {
        check(false, &draft(Flags(0), seq, None), "dropped", false);
    }
}

/// RFC 7323 3.2: once agreed, a segment without timestamps is dropped silently.
#[test]
fn a_fin_without_timestamps_is_dropped_once_they_are_agreed() {
    let fin = draft(Flags::FIN | Flags::ACK, -1, None);
    check(true, &fin, "dropped", false);
    check(false, &fin, "ack", true);
}

#[test]
fn an_entry_is_small() {
    assert!(size_of::<TimeWait>() <= 32);
}
