//! Two hosts on a cable.

use mill_runtime::time::Duration;
use mill_sim::packet::ethernet::StationOptions;
use mill_sim::packet::wire::{Loss, Wire};
use mill_simtest::bare::{End, Pair};
use mill_simtest::content;
use mill_stack::config::{HostConfig, Prefix};
use mill_stack::link::ReceivedChecksum;
use mill_stack::queue::SendQueue;
use mill_stack::socket::{ListenOptions, SocketId};
use std::net::{IpAddr, SocketAddr};

/// The bytes go from the first host to the second and come back; both close; nothing is left.
fn check(seed: u64, addresses: [&str; 2], len: usize, wire: Wire, card: fn() -> StationOptions) {
    let addresses = addresses.map(|address| address.parse::<IpAddr>().expect("an address"));
    let hosts = addresses.map(|address| {
        let len = if address.is_ipv4() { 24 } else { 64 };
        HostConfig::new(vec![Prefix { address, len }], [3; 16])
    });
    let mut pair = Pair::new(seed, hosts, [card(), card()], wire, wire);
    let target = SocketAddr::new(addresses[1], 80);
    let listening = pair.ends[1].host.listen(target, &ListenOptions::default());
    let listener = listening.expect("no other listener is there");
    let opened = pair.ends[0].host.connect(target, None, true, 0);
    let socket = opened.expect("the target is on the link");
    let bytes = content::of(1, len);
    let first = pair.ends[0].host.queue(socket).expect("it is open");
    first.push(bytes);
    pair.ends[0].host.wrote(socket);
    pair.ends[0].host.shutdown(socket);
    let (mut accepted, mut came) = (None, 0);
    let done = pair.run(Duration::from_secs(600), |index, end| {
        if index == 1 {
            accepted = accepted.or_else(|| end.host.accept(listener, 1));
            if let Some(socket) = accepted {
                send_back(end, socket);
            }
            return false;
        }
        let readable = end.host.readable(socket);
        assert_eq!(readable.error, None, "seed {seed}");
        end.host.read(socket, &mut end.link, |read| {
            assert!(*read == bytes[came..came + read.len()], "seed {seed}");
            came += read.len();
            (read.len(), ())
        });
        readable.finished && came == len
    });
    assert!(done, "seed {seed}: {came} of {len} bytes came back");
    pair.ends[0].host.close(socket);
    pair.run(Duration::from_secs(6_000), |_, _| false);
    for end in &pair.ends {
        assert_eq!(end.link.station().held(), 0, "seed {seed}");
        assert_eq!(end.host.next_expiry(), None, "seed {seed}");
    }
}

/// Reads what has come and sends it back; closes at the end.
fn send_back(end: &mut End, socket: SocketId) {
    let readable = end.host.readable(socket);
    if readable.error.is_some() {
        return;
    }
    let bytes = end
        .host
        .read(socket, &mut end.link, |read| (read.len(), read.to_vec()));
    if let Some(queue) = end.host.queue(socket) {
        queue.push(&bytes);
        assert!(queue.len() < 1 << 30);
    }
    end.host.wrote(socket);
    if readable.finished {
        end.host.close(socket);
    }
}

fn plain() -> StationOptions {
    StationOptions::new(1500)
}

fn offloading() -> StationOptions {
    let mut options = StationOptions::new(1500);
    options.completes_checksums = true;
    options.segment_bytes_max = 65_535;
    options.vouches = ReceivedChecksum::Verified;
    options.merges = true;
    options
}

const IPV4: [&str; 2] = ["10.0.0.1", "10.0.0.2"];
const IPV6: [&str; 2] = ["fd00::1", "fd00::2"];

#[test]
fn bytes_go_there_and_back_on_a_good_wire() {
    for addresses in [IPV4, IPV6] {
        for len in [1, 1448, 1449, 100_000, 1_000_000] {
            let wire = Wire::delayed(Duration::from_millis(5));
            check(1, addresses, len, wire, plain);
            check(1, addresses, len, wire, offloading);
        }
    }
}

#[test]
fn bytes_go_there_and_back_on_bad_wires() {
    let bad = [
        Wire {
            loss: Loss::Random {
                per_million: 30_000,
            },
            ..Wire::delayed(Duration::from_millis(5))
        },
        Wire {
            reorder_per_million: 100_000,
            reorder_delay: Duration::from_millis(20),
            duplicate_per_million: 50_000,
            ..Wire::delayed(Duration::from_millis(5))
        },
        Wire {
            corrupt_per_million: 30_000,
            ..Wire::delayed(Duration::from_millis(1))
        },
    ];
    for (seed, wire) in (1..).zip(bad) {
        for addresses in [IPV4, IPV6] {
            check(seed, addresses, 300_000, wire, plain);
            check(seed, addresses, 300_000, wire, offloading);
        }
    }
}
