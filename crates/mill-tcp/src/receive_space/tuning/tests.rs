//! The window follows what the reader takes in a round trip.

use crate::config::Config;
use crate::pair::{CLIENT, Pair, SERVER, pattern};
use crate::time::Duration;

/// A long path of which the receiver knows nothing before.
fn long_path(change: impl FnOnce(&mut Config)) -> Pair {
    let mut pair = Pair::new(&Config::with(change));
    pair.wire.delay = Duration::from_millis(100);
    pair.connect();
    pair
}

fn buffer_bytes(pair: &mut Pair) -> u32 {
    pair.connection(SERVER).rcv.buffer_bytes()
}

/// The client writes so many bytes; gives the milliseconds until all are there.
fn transfer(pair: &mut Pair, len: usize) -> u128 {
    let (began, before) = (pair.now, pair.sides[SERVER].received.len());
    pair.write(CLIENT, &pattern(len));
    pair.run_until(Duration::from_secs(100), |pair| {
        pair.sides[SERVER].received.len() == before + len
    });
    pair.now.since(began).as_millis()
}

/// As fast as with a window that is wide from the beginning.
#[test]
fn a_sender_in_slow_start_is_not_held_up() {
    for hystart in [false, true] {
        for len in [20_000, 200_000, 2_000_000, 4_000_000] {
            let took = |receive_buffer_bytes| {
                let mut pair = long_path(|config| {
                    config.hystart = hystart;
                    config.receive_buffer_bytes = receive_buffer_bytes;
                });
                transfer(&mut pair, len)
            };
            let wide = took(Config::default().receive_buffer_bytes_max);
            assert_eq!(took(64 << 10), wide, "{len} bytes, HyStart++ {hystart}");
        }
    }
}

/// Without timestamps a round is a whole window, so that it takes some more of them.
#[test]
fn without_timestamps_the_window_grows_too() {
    let mut pair = long_path(|config| config.timestamps = false);
    let took = transfer(&mut pair, 6_000_000);
    assert!(buffer_bytes(&mut pair) >= 1 << 20);
    let mut wide = long_path(|config| {
        config.timestamps = false;
        config.receive_buffer_bytes = config.receive_buffer_bytes_max;
    });
    let at_best = transfer(&mut wide, 6_000_000);
    assert!(took <= at_best + 5 * 200, "{took} ms, {at_best} at best");
}

#[test]
fn no_window_exceeds_the_limit_with_or_without_timestamps() {
    for timestamps in [true, false] {
        let mut pair = long_path(|config| {
            config.timestamps = timestamps;
            config.receive_buffer_bytes_max = 300_000;
        });
        transfer(&mut pair, 3_000_000);
        assert_eq!(buffer_bytes(&mut pair), 300_000, "timestamps {timestamps}");
        // The window of the SYN-ACK is not scaled.
        let windows = pair.sent_since(0, SERVER).into_iter().skip(1);
        let widest = windows.map(|segment| segment.window).max().unwrap();
        let shift = pair.connection(SERVER).shifts.rcv();
        assert!(u32::from(widest) << shift <= 300_000);
    }
}

/// The round trip is the one of now, not that of the handshake.
#[test]
fn a_path_that_becomes_much_longer_gets_a_wider_window() {
    let mut pair = Pair::established(&Config::default());
    pair.wire.delay = Duration::from_millis(150);
    transfer(&mut pair, 4_000_000);
    let bytes = buffer_bytes(&mut pair);
    assert!(bytes >= 1 << 20, "{bytes}");
}

/// A reader that takes a little each round trip, or all of the window now and then, needs no wider one.
#[test]
fn the_window_of_a_slow_reader_stays_small() {
    let readers = [(10, 1_000), (10, 4_000), (100, 10_000), (5_000, 100_000)];
    for timestamps in [true, false] {
        for (pause_ms, bytes) in readers {
            let mut pair =
                Pair::established(&Config::with(|config| config.timestamps = timestamps));
            pair.sides[SERVER].reads = false;
            let before = buffer_bytes(&mut pair);
            pair.write(CLIENT, &pattern(1_000_000));
            for _ in 0..100 {
                pair.run_for(Duration::from_millis(pause_ms));
                pair.command(SERVER, |connection, env| {
                    connection.consumed(bytes.min(connection.unread_bytes()), env);
                });
            }
            let what = (timestamps, pause_ms, bytes);
            assert_eq!(buffer_bytes(&mut pair), before, "{what:?}");
        }
    }
}

/// Nor does a sender that is slow for reasons of its own, or asks and waits.
#[test]
fn a_slow_sender_does_not_grow_the_window() {
    for timestamps in [true, false] {
        for pause_ms in [5, 50, 3_000, 70_000] {
            let mut pair =
                Pair::established(&Config::with(|config| config.timestamps = timestamps));
            let before = buffer_bytes(&mut pair);
            for _ in 0..300 {
                pair.write(CLIENT, &[1; 1000]);
                pair.run_for(Duration::from_millis(pause_ms));
            }
            assert_eq!(buffer_bytes(&mut pair), before, "{pause_ms} {timestamps}");
        }
    }
}

fn grown(change: impl Fn(&mut Pair)) -> u32 {
    let mut pair = Pair::established(&Config::default());
    change(&mut pair);
    let before = buffer_bytes(&mut pair);
    transfer(&mut pair, 2_000_000);
    buffer_bytes(&mut pair) / before
}

#[test]
fn the_window_grows_only_while_there_is_memory() {
    assert!(grown(|_| {}) > 1);
    assert_eq!(grown(|pair| pair.sides[SERVER].memory_left_bytes = 50), 1);
    let fixed = |pair: &mut Pair| {
        pair.sides[SERVER].config.receive_buffer_bytes_max =
            pair.sides[SERVER].config.receive_buffer_bytes;
    };
    assert_eq!(grown(fixed), 1);
}

/// A peer may echo what was never sent, or nothing new for ever: the limit holds, and nothing overflows.
#[test]
fn false_echoes_grow_no_window_beyond_the_limit() {
    for (late_by_ms, is_grown) in [(0_u32, true), (1 << 20, false), (1 << 31, false)] {
        let mut pair = Pair::alone(&Config::with(|config| {
            config.receive_buffer_bytes_max = 200_000;
        }));
        for round in 0..3_000 {
            let mut draft = pair.draft(SERVER).with_payload(&[1; 1400]);
            let stamp = draft.options.timestamps.as_mut().unwrap();
            stamp.echo = stamp.echo.wrapping_sub(late_by_ms);
            pair.give(SERVER, &draft);
            if round % 100 == 0 {
                pair.run_for(Duration::from_millis(30));
            }
        }
        let bytes = buffer_bytes(&mut pair);
        assert_eq!(bytes > 64 << 10, is_grown, "{late_by_ms}");
        assert!(bytes <= 200_000);
    }
}
