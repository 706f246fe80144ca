//! Whole transfers over bad wires.

use crate::config::{Algorithm, Config};
use crate::pair::{CLIENT, Pair, Peer, SERVER, pattern};
use crate::time::Duration;

/// What happens to segments, in thousandths, and what the two sides speak.
#[derive(Clone, Debug)]
struct World {
    lost: u64,
    late: u64,
    doubled: u64,
    config: Config,
    segment_bytes_max: u32,
}

impl World {
    fn of(seed: u64) -> Self {
        let config = Config {
            sack: seed / 6 % 4 != 0,
            timestamps: seed / 3 % 4 != 0,
            hystart: seed % 2 == 0,
            congestion: if seed % 5 == 0 {
                Algorithm::Reno
            } else {
                Algorithm::Cubic
            },
            nodelay: seed % 7 != 0,
            ..Config::default()
        };
        Self {
            lost: [0, 1, 10, 50, 100, 200][(seed % 6) as usize],
            late: [0, 20, 200][(seed / 6 % 3) as usize],
            doubled: [0, 0, 50][(seed / 18 % 3) as usize],
            config,
            segment_bytes_max: [1460, 65_000][(seed / 2 % 2) as usize],
        }
    }
}

/// Sends `len` bytes from the server, and returns the pair and the milliseconds it took.
fn download(world: &World, seed: u64, len: usize) -> (Pair, u64) {
    let mut pair = Pair::with_seed(&world.config, seed);
    pair.sides[SERVER].segment_bytes_max = world.segment_bytes_max;
    let bytes = pattern(len);
    pair.connect();
    pair.run_for(Duration::from_millis(50));
    pair.wire.lost = world.lost;
    pair.wire.late = world.late;
    pair.wire.doubled = world.doubled;
    pair.write(SERVER, &bytes);
    let start = pair.now;
    pair.run_until(Duration::from_secs(3_600), |pair| {
        check_window(pair, seed, world);
        pair.sides[CLIENT].received.len() == len && pair.sides[SERVER].queue.is_empty()
    });
    assert!(
        pair.sides[CLIENT].received == bytes,
        "seed {seed}: other bytes arrived"
    );
    let took_ms = pair.now.as_millis() - start.as_millis();
    (pair, took_ms)
}

fn check_window(pair: &Pair, seed: u64, world: &World) {
    let Peer::Open(connection) = &pair.sides[SERVER].peer else {
        return;
    };
    let (cwnd, mss) = (connection.cwnd, u32::from(connection.snd_mss));
    let is_sane = cwnd >= mss && cwnd <= 16 * 1024 * 1024 && connection.ssthresh >= 2 * mss;
    assert!(
        is_sane,
        "seed {seed}: window {cwnd}, threshold {} in {world:?}",
        connection.ssthresh
    );
}

#[test]
fn everything_arrives_over_every_wire() {
    for seed in 0..108 {
        let world = World::of(seed);
        let (pair, took_ms) = download(&world, seed, 150_000);
        // Worst of all is a fifth lost, without SACK: a timeout now and then.
        assert!(
            took_ms < 400_000,
            "seed {seed}: {took_ms} ms in {world:?}\n{}",
            pair.ladder(40)
        );
    }
}
