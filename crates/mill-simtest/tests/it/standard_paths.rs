//! Downloads over the standard paths, in simulation, beside what the kernel's were measured to reach (docs/measurements/paths.md).

use mill_runtime::time::Duration;
use mill_sim::packet::ethernet::StationOptions;
use mill_simtest::bare::{End, Pair};
use mill_simtest::content;
use mill_simtest::standard_paths::{PATHS, StandardPath};
use mill_stack::config::{HostConfig, Prefix};
use mill_stack::queue::SendQueue;
use mill_stack::socket::{ListenOptions, SocketId};
use mill_tcp::config::{Algorithm, Config};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// By path: Mbit/s of the kernel's CUBIC and BBR, and what waits before the wire with the latter, a mean in milliseconds.
const KERNEL: [(&str, [f64; 2], f64); 10] = [
    ("lan", [189.8, 190.9], 3.6),
    ("dsl", [15.1, 15.1], 5.2),
    ("lte", [36.9, 36.9], 48.9),
    ("satellite", [13.6, 11.8], 220.6),
    ("loss-0.1", [23.2, 94.2], 3.0),
    ("loss-1", [6.4, 92.4], 1.8),
    ("loss-5", [1.9, 86.2], 0.9),
    ("corrupt-0.5", [9.8, 93.0], 2.2),
    ("shallow", [41.8, 90.3], 0.9),
    ("deep", [46.6, 46.5], 3.3),
];

/// Of the kernel's goodput (issue 20).
const GOODPUT_MIN: f64 = 0.95;

/// A mean of what leaves at two ticks of a timer, and of the beginning, is no standing queue.
const QUEUE_MS_MIN: f64 = 2.5;

/// Worlds with losses differ by the seed.
const SEEDS: [u64; 3] = [1, 2, 3];

#[test]
fn downloads_are_as_fast_as_the_kernels_and_queues_as_short() {
    assert_eq!(PATHS.map(|path| path.name), KERNEL.map(|(name, ..)| name));
    for (path, (name, goodput, queue_ms)) in PATHS.iter().zip(KERNEL) {
        let seeds = if path.down().is_faithful() {
            &SEEDS[..1]
        } else {
            &SEEDS
        };
        for (algorithm, kernel) in [Algorithm::Cubic, Algorithm::Bbr].into_iter().zip(goodput) {
            let reached = seeds.iter().map(|seed| download(path, algorithm, *seed));
            let reached: Vec<Reached> = reached.collect();
            let mean = |of: fn(&Reached) -> f64| {
                #[expect(clippy::cast_precision_loss, reason = "a few")]
                let count = reached.len() as f64;
                reached.iter().map(of).sum::<f64>() / count
            };
            let (mbit, queued_ms) = (mean(|one| one.mbit), mean(|one| one.queue_ms));
            assert!(
                mbit >= kernel * GOODPUT_MIN,
                "{name} {algorithm:?}: {mbit:.1} Mbit/s, the kernel {kernel}"
            );
            assert!(
                algorithm == Algorithm::Cubic || queued_ms <= queue_ms.max(QUEUE_MS_MIN),
                "{name}: {queued_ms:.1} ms wait, with the kernel {queue_ms}"
            );
        }
    }
}

/// What became of a download.
struct Reached {
    /// In all of its time.
    mbit: f64,
    /// What waited before the wire: a mean of the sender's turns.
    queue_ms: f64,
}

/// As long as it was measured.
fn download(path: &StandardPath, algorithm: Algorithm, seed: u64) -> Reached {
    let host = |index: usize| {
        let address = ADDRESSES[index];
        let mut config = HostConfig::new(vec![Prefix { address, len: 24 }], [7; 16]);
        config.tcp = Config {
            congestion: algorithm,
            ..Config::default()
        };
        config
    };
    let mut pair = Pair::new(
        seed,
        [host(0), host(1)],
        [1500, 1500].map(StationOptions::new),
        path.down(),
        path.up(),
    );
    let target = SocketAddr::new(ADDRESSES[1], 80);
    let listening = pair.ends[1].host.listen(target, &ListenOptions::default());
    let listener = listening.expect("no other listener is there");
    let opened = pair.ends[0].host.connect(target, None, true, 0);
    let socket = opened.expect("the target is on the link");
    let station = pair.ends[0].link.station();
    let mut accepted = None;
    let (mut waited, mut turns) = (0, 0);
    let mut transfer = |index: usize, end: &mut End| {
        if index == 0 {
            refill(end, socket);
            waited += station.waiting();
            turns += 1;
        } else {
            accepted = accepted.or_else(|| end.host.accept(listener, 0));
            if let Some(socket) = accepted {
                end.host
                    .read(socket, &mut end.link, |bytes| (bytes.len(), ()));
            }
        }
        false
    };
    let length = Duration::from_secs(path.seconds.into());
    pair.run(length, &mut transfer);
    let bytes = pair.ends[0].host.acked(socket);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let [bits, waited, turns] = [bytes * 8, waited, turns].map(|number: u64| number as f64);
    Reached {
        mbit: bits / length.as_secs_f64() / 1e6,
        queue_ms: path.milliseconds_of(waited / turns),
    }
}

/// Keeps more in the queue than any window takes.
fn refill(end: &mut End, socket: SocketId) {
    let Some(queue) = end.host.queue(socket) else {
        return;
    };
    let mut wrote = false;
    while SendQueue::len(queue) < QUEUED_BYTES {
        queue.push(content::of(0, 65_536));
        wrote = true;
    }
    if wrote {
        end.host.wrote(socket);
    }
}

const QUEUED_BYTES: u64 = 4_000_000;

const ADDRESSES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
];
