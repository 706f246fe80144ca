//! Whole transfers over bad wires.

use crate::ack::sender::Sender;
use crate::config::{Algorithm, Config, EcnMode};
use crate::connection::Cold;
use crate::pair::{CLIENT, Pair, Peer, SERVER, pattern};
use crate::recovery::Phase;
use crate::time::Duration;
use alloc::vec::Vec;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;

/// What happens to segments, in thousandths, and what the two sides speak.
#[derive(Clone, Debug)]
struct World {
    lost: u64,
    late: u64,
    doubled: u64,
    /// Marked as congested, where ECN is spoken.
    marked: u64,
    config: Config,
    segment_bytes_max: u32,
}

impl World {
    fn of(seed: u64) -> Self {
        let config = Config {
            ecn: if seed.is_multiple_of(3) {
                EcnMode::Ask
            } else {
                EcnMode::Accept
            },
            sack: !(seed / 6).is_multiple_of(4),
            timestamps: !(seed / 3).is_multiple_of(4),
            hystart: seed.is_multiple_of(2),
            congestion: if seed.is_multiple_of(5) {
                Algorithm::Reno
            } else {
                Algorithm::Cubic
            },
            nodelay: !seed.is_multiple_of(7),
            // No side searches upwards again after a wrong suspicion, which a fifth lost brings about.
            mtu_probing: false,
            ..Config::default()
        };
        Self {
            lost: [0, 1, 10, 50, 100, 200][(seed % 6) as usize],
            late: [0, 20, 200][(seed / 6 % 3) as usize],
            doubled: [0, 0, 50][(seed / 18 % 3) as usize],
            marked: [0, 30][(seed / 3 % 2) as usize],
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
    pair.wire.marked = world.marked;
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
    let (cwnd, mss) = (connection.congestion.cwnd(), u32::from(connection.snd_mss));
    let is_sane =
        cwnd >= mss && cwnd <= 16 * 1024 * 1024 && connection.congestion.ssthresh() >= 2 * mss;
    assert!(
        is_sane,
        "seed {seed}: window {cwnd}, threshold {} in {world:?}",
        connection.congestion.ssthresh()
    );
}

#[test]
fn everything_arrives_over_every_wire() {
    for seed in 0..108 {
        let world = World::of(seed);
        let (mut pair, took_ms) = download(&world, seed, 150_000);
        // Worst of all is a fifth lost, without SACK: many a timeout, and they double.
        let limit_ms = if world.config.sack { 30_000 } else { 150_000 };
        assert!(
            took_ms < limit_ms,
            "seed {seed}: {took_ms} ms in {world:?}\n{}",
            pair.ladder(40)
        );
        // Nothing is left behind but, perhaps, what a loss probe was.
        pair.run_for(Duration::from_secs(5));
        pair.command(SERVER, |connection, env| connection.take_path_news(env));
        let server = pair.connection(SERVER);
        assert!(!server.timer.is_running(), "seed {seed}");
        let is_probe =
            |cold: &Cold| cold.recovery.phase() == Phase::Open && !cold.recovery.is_idle();
        assert!(server.cold.as_deref().is_none_or(is_probe), "seed {seed}");
    }
}

fn numbers_of(pair: &Pair, from: usize) -> Vec<(u32, u32)> {
    let start = pair.sides[SERVER].iss + 1;
    let sent = pair.sent_since(from, SERVER);
    let of_data = sent.iter().filter(|segment| segment.len > 0);
    of_data
        .map(|segment| (segment.seq - start, segment.len))
        .collect()
}

#[test]
fn a_transfer_crosses_the_end_of_the_number_space() {
    let config = Config::default();
    let mut pair = Pair::with_seed(&config, 5);
    pair.sides[SERVER].iss = SeqNumber(u32::MAX - 100_000);
    let bytes = pattern(300_000);
    pair.connect();
    pair.run_for(Duration::from_millis(50));
    pair.wire.lost = 50;
    pair.write(SERVER, &bytes);
    pair.run_until(Duration::from_secs(600), |pair| {
        pair.sides[SERVER].queue.is_empty()
    });
    assert!(pair.sides[CLIENT].received == bytes);
    let acked = pair.connection(SERVER).snd.una();
    assert!(acked.0 < 300_000, "it crossed: {acked:?}");
}

#[test]
fn super_segments_are_whole_segments_but_for_the_last() {
    let mut pair = Pair::established(&Config::default());
    pair.sides[SERVER].segment_bytes_max = 5_000;
    let from = pair.log.len();
    pair.write(SERVER, &pattern(10_000));
    let mut lens = Vec::new();
    while let Some(segment) = pair.command(SERVER, |connection, env| {
        connection.next_segment(10_000, env)
    }) {
        lens.push(segment.len);
    }
    assert_eq!(lens, [3 * 1_448, 3 * 1_448, 10_000 - 6 * 1_448]);
    assert_eq!(pair.log.len(), from);
}

#[test]
fn several_segments_at_once_are_pushed_and_single_ones_but_for_the_last_are_not() {
    let check = |segment_bytes_max, expected: [bool; 4]| {
        let mut sender = Sender::new(&Config::default());
        sender.pair.sides[SERVER].segment_bytes_max = segment_bytes_max;
        let from = sender.pair.log.len();
        sender.write(4);
        // As the device has cut them.
        let sent = sender.pair.sent_since(from, SERVER);
        let pushed: Vec<_> = sent
            .iter()
            .map(|segment| segment.flags.has(Flags::PSH))
            .collect();
        assert_eq!(pushed, expected, "at most {segment_bytes_max} bytes");
    };
    check(1_448, [false, false, false, true]);
    check(2 * 1_448 - 1, [false, false, false, true]);
    check(2 * 1_448, [false, true, false, true]);
    check(3 * 1_448, [false, false, true, true]);
}

#[test]
fn a_smaller_mss_sends_what_is_in_flight_again_in_smaller_segments() {
    let mut sender = Sender::new(&Config::default());
    sender.write(5);
    let cwnd = sender.connection().congestion.cwnd();
    let from = sender.pair.log.len();
    let seq = sender.start;
    assert!(sender.pair.command(SERVER, |connection, env| {
        connection.on_packet_too_big(seq, 1_012, env)
    }));
    sender.pair.flush();
    assert_eq!(sender.connection().congestion.cwnd(), cwnd);
    let sent = numbers_of(&sender.pair, from);
    let expected: Vec<_> = (0..7)
        .map(|number| (number * 1_000, 1_000))
        .chain([(7_000, 240)])
        .collect();
    assert_eq!(sent, expected);
    sender.acked(5, &[]);
    assert_eq!(
        (sender.phase(), sender.connection().congestion.ssthresh()),
        (Phase::Open, u32::MAX)
    );
}

#[test]
fn a_smaller_mss_leaves_alone_what_fits() {
    let mut sender = Sender::new(&Config::default());
    sender.pair.write(SERVER, &pattern(1_548));
    sender.pair.flush();
    let from = sender.pair.log.len();
    let seq = sender.start;
    sender.pair.command(SERVER, |connection, env| {
        connection.on_packet_too_big(seq, 1_012, env)
    });
    sender.pair.flush();
    assert_eq!(numbers_of(&sender.pair, from), [(0, 1_000), (1_000, 448)]);
}

#[test]
fn after_idling_for_a_timeout_half_of_the_window_is_forgotten() {
    let check = |config: &Config, idle_ms: u64, expected: u32| {
        let mut sender = Sender::new(config);
        sender.write(80);
        // Without a step in the round trips, so that slow start goes on.
        for acked in [10, 30, 70, 80] {
            sender.acked(acked, &[]);
        }
        assert_eq!(sender.cwnd(), 80, "four windows");
        sender.wait_ms(idle_ms);
        sender.write(1);
        assert_eq!(sender.cwnd(), expected, "{idle_ms} ms");
    };
    let rto_ms = 200;
    let restarts = Config::default();
    check(&restarts, rto_ms - 10, 80);
    check(&restarts, rto_ms + 30, 40);
    check(&restarts, 2 * rto_ms + 60, 20);
    check(&restarts, 60_000, 10);
    let remembers = Config::with(|config| config.slow_start_after_idle = false);
    check(&remembers, 60_000, 80);
}

#[test]
fn acknowledgements_in_a_storm_send_nothing_and_change_nothing() {
    let mut sender = Sender::new(&Config::default());
    sender.write(100);
    sender.wait_ms(20);
    sender.acked(10, &[]);
    let from = sender.pair.log.len();
    let cwnd = sender.connection().congestion.cwnd();
    let mut draft = sender.ack(10);
    for number in 0..1_000 {
        // Reports of one byte each, as many as there can be.
        let start = sender.start + 15_000 + number % 13_000;
        draft.options.sack.truncate(0);
        draft.options.sack.push(start, start + 1);
        sender.give(&draft);
    }
    assert!(sender.connection().congestion.cwnd() <= cwnd);
    let entries = sender.connection().cold.as_ref().unwrap().scoreboard.len();
    assert!(entries < 2_000, "{entries}");
    // Never more than was acknowledged and reported left.
    let again: u32 = numbers_of(&sender.pair, from)
        .iter()
        .map(|segment| segment.1)
        .sum();
    assert!(again <= 2 * cwnd, "{again} bytes sent for nothing");
}
