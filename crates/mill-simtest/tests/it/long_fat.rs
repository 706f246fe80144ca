//! A long fat path: 100 Mbit/s and a round trip of 200 ms, whose receiver begins with a modest window.

use mill_runtime::time::Duration;
use mill_sim::packet::ethernet::StationOptions;
use mill_sim::packet::wire::Wire;
use mill_simtest::bare::{End, Pair};
use mill_simtest::content;
use mill_stack::config::{HostConfig, Prefix};
use mill_stack::socket::ListenOptions;
use mill_tcp::config::Config;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// How long a transfer takes from the SYN to the last byte read.
fn transfer(bytes: usize, receiver: &Config) -> Duration {
    let host = |index: usize, tcp: &Config| {
        let address = ADDRESSES[index];
        let mut config = HostConfig::new(vec![Prefix { address, len: 24 }], [7; 16]);
        config.tcp = tcp.clone();
        config
    };
    let wire = Wire {
        bits_per_second: Some(100_000_000),
        queue_bytes: 2_500_000,
        ..Wire::delayed(ROUND_TRIP / 2)
    };
    let mut pair = Pair::new(
        1,
        [host(0, &Config::default()), host(1, receiver)],
        [1500, 1500].map(StationOptions::new),
        wire,
        Wire::delayed(ROUND_TRIP / 2),
    );
    let target = SocketAddr::new(ADDRESSES[1], 80);
    let listening = pair.ends[1].host.listen(target, &ListenOptions::default());
    let listener = listening.expect("no other listener is there");
    let opened = pair.ends[0].host.connect(target, None, true, 0);
    let socket = opened.expect("the target is on the link");
    let queue = pair.ends[0].host.queue(socket).expect("it is open");
    queue.push(content::of(0, bytes));
    pair.ends[0].host.wrote(socket);
    let (mut accepted, mut read) = (None, 0);
    let done = pair.run(Duration::from_secs(120), |index, end: &mut End| {
        if index == 1 {
            accepted = accepted.or_else(|| end.host.accept(listener, 0));
            if let Some(socket) = accepted {
                read += end
                    .host
                    .read(socket, &mut end.link, |bytes| (bytes.len(), bytes.len()));
            }
        }
        read == bytes
    });
    assert!(done, "{read} of {bytes} bytes in two minutes");
    pair.world.elapsed()
}

/// A window that begins modest and grows costs nothing against one that promises all of its limit from the beginning.
#[test]
fn a_long_fat_path_is_filled_as_by_the_whole_limit_at_once() {
    let at_once = Config {
        receive_buffer_bytes: Config::default().receive_buffer_bytes_max,
        ..Config::default()
    };
    for (bytes, expected_ms) in [(100_000, 805), (1_000_000, 1_609), (10_000_000, 2_795)] {
        let grown = transfer(bytes, &Config::default());
        let wide = transfer(bytes, &at_once);
        assert!(
            grown <= wide + ROUND_TRIP / 10,
            "{bytes}: {grown:?} {wide:?}"
        );
        let away = grown.as_millis().abs_diff(expected_ms);
        assert!(
            away <= expected_ms / 10,
            "docs/stack.md, {bytes}: {grown:?}"
        );
    }
}

/// Without timestamps some round trips more are needed, once.
#[test]
fn without_timestamps_the_window_follows_some_round_trips_later() {
    let without = |receive_buffer_bytes| Config {
        timestamps: false,
        receive_buffer_bytes,
        ..Config::default()
    };
    let grown = transfer(10_000_000, &without(Config::default().receive_buffer_bytes));
    let wide = transfer(10_000_000, &without(6 << 20));
    assert!(grown <= wide + 2 * ROUND_TRIP, "{grown:?} {wide:?}");
}

const ROUND_TRIP: Duration = Duration::from_millis(200);

const ADDRESSES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
];
