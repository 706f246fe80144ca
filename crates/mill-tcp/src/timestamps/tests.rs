//! RFC 7323: every segment has them, the echo is the right one, old segments are dropped.

use super::TimestampState;
use crate::arrived::SegmentDrop;
use crate::config::Config;
use crate::pair::{Draft, Pair, SERVER};
use crate::time::Tick;
use core::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn pair() -> Pair {
    Pair::alone(&Config::with(|config| config.quick_acks = 0))
}

fn stamped(pair: &Pair, by: i32) -> Draft {
    let mut draft = pair.draft(SERVER);
    if let Some(stamp) = &mut draft.options.timestamps {
        stamp.value = stamp.value.wrapping_add_signed(by);
    }
    draft
}

/// RFC 7323 5.4, 7.1: timestamps do not reveal how long the machine has been up.
#[test]
fn the_clock_begins_at_the_offset() {
    let pair = pair();
    let syn = pair.log[0].2.options.timestamps.unwrap();
    assert_eq!((syn.value, syn.echo), (1_000_000 + 5000, 0));
    let syn_ack = pair.log[1].2.options.timestamps.unwrap();
    assert_eq!((syn_ack.value, syn_ack.echo), (2_000_000 + 5010, syn.value));
}

/// RFC 7323 5.2: half the numbers are before, half after.
#[test]
fn timestamps_wrap() {
    for (by, is_old) in [(i32::MAX, false), (i32::MIN, true)] {
        let mut pair = pair();
        let draft = stamped(&pair, by);
        let dropped = pair.give(SERVER, &draft).0.dropped;
        assert_eq!(dropped.is_some(), is_old, "{by}");
    }
}

/// RFC 7323 3.2: once agreed, a segment without is dropped silently.
#[test]
fn a_segment_without_timestamps_is_refused_once_they_are_agreed() {
    let mut pair = pair();
    let mut draft = pair.draft(SERVER).with_payload(b"text");
    draft.options.timestamps = None;
    let (arrived, sent) = pair.give(SERVER, &draft);
    assert_eq!((arrived.dropped, sent.len()), (Some(SegmentDrop::Paws), 0));
    assert_eq!(pair.sides[SERVER].shared.counters.paws_drops, 1);
}

/// RFC 7323 5.5: after 24 days of silence the timestamp of before says nothing.
#[test]
fn an_old_timestamp_is_believed_after_24_days_of_silence() {
    for (silence, is_old) in [
        (DAY * 24, true),
        (DAY * 24 + Duration::from_millis(1), false),
    ] {
        let mut pair = pair();
        pair.now = pair.now + silence;
        // The last segment came 30 ms before.
        pair.now = pair.now - Duration::from_millis(30);
        let heard = pair.connection(SERVER).heard_at;
        let silent = pair.now.tick().0.wrapping_sub(heard.0);
        pair.now = pair.now + (silence - Duration::from_millis(u64::from(silent)));
        let draft = stamped(&pair, -5);
        let dropped = pair.give(SERVER, &draft).0.dropped;
        assert_eq!(dropped.is_some(), is_old, "{silence:?}");
        if !is_old {
            let expected = draft.options.timestamps.unwrap().value;
            assert_eq!(pair.connection(SERVER).ts.recent(), expected);
        }
    }
}

/// RFC 7323 5.2: numbers wrap, on both sides.
#[test]
fn clocks_that_wrap_are_compared_by_halves() {
    let mut ts = TimestampState::new(u32::MAX - 5, 3);
    let now = Tick(10);
    let option = ts.option_at(now);
    assert_eq!((option.value, option.echo), (4, 3));
    assert_eq!((ts.age_ms(u32::MAX, now), ts.age_ms(4, now)), (5, 0));
    assert!(ts.is_old(2) && ts.is_old(u32::MAX) && !ts.is_old(3));
    ts.set_recent(u32::MAX);
    assert!(!ts.is_old(2) && ts.is_old(u32::MAX - 1));
    ts.lower_by(6);
    assert_eq!(ts.value_at(now), u32::MAX - 1);
}
