//! SYN-RECEIVED of a listener: RFC 9293 3.10.7.2 and 3.10.7.4, RFC 5961.

use super::*;
use crate::config::{Config, EcnMode};
use crate::env::Shared;
use crate::pair::{CLIENT, Draft, Pair, Peer, SERVER};
use crate::segment::Ecn;
use crate::state::State;
use crate::time::{Duration, Instant};
use alloc::vec::Vec;
use mill_wire::tcp_option::Timestamps;

const ISS: SeqNumber = SeqNumber(9000);
const IRS: SeqNumber = SeqNumber(u32::MAX);

/// A half-open connection, and its clock.
struct World {
    config: Config,
    shared: Shared,
    now: Instant,
    half: HalfOpen,
}

impl World {
    fn new(config: Config) -> Self {
        let mut shared = Shared::new(5);
        let now = Instant::from_nanos(7_000_000_000);
        let half = {
            let mut env = Env {
                now,
                config: &config,
                shared: &mut shared,
                segment_bytes_max: 1460,
                memory_left_bytes: 1 << 20,
            };
            let syn = draft(Flags::SYN, -1, 0);
            HalfOpen::on_syn(&syn.segment(), ISS, 100, 1460, &mut env)
        };
        Self {
            config,
            shared,
            now,
            half,
        }
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut HalfOpen, &mut Env<'_>) -> T) -> T {
        let mut env = Env {
            now: self.now,
            config: &self.config,
            shared: &mut self.shared,
            segment_bytes_max: 1460,
            memory_left_bytes: 1 << 20,
        };
        call(&mut self.half, &mut env)
    }

    fn give(&mut self, draft: &Draft) -> HalfOpenOutcome {
        self.call(|half, env| half.on_segment(&draft.segment(), env))
    }
}

/// A segment of the peer: `seq` counted from what is next, `ack` from the number behind our SYN.
fn draft(flags: Flags, seq: i32, ack: i32) -> Draft {
    let syn = flags.has(Flags::SYN);
    Draft {
        seq: SeqNumber((IRS + 1).0.wrapping_add_signed(seq)),
        ack: SeqNumber((ISS + 1).0.wrapping_add_signed(ack)),
        flags,
        window: 4000,
        options: TcpOptions {
            mss: syn.then_some(1200),
            window_scale: syn.then_some(3),
            sack_permitted: syn,
            timestamps: Some(Timestamps {
                value: 50,
                echo: 7100,
            }),
            ..TcpOptions::default()
        },
        payload: Vec::new(),
        ecn: Ecn::NotCapable,
        merged: 1,
    }
}

#[test]
fn the_syn_ack_says_what_was_agreed() {
    let mut world = World::new(Config::default());
    let syn_ack = world.call(|half, env| half.syn_ack(env));
    assert_eq!((syn_ack.seq, syn_ack.ack), (ISS, IRS + 1));
    assert_eq!(syn_ack.flags, Flags::SYN | Flags::ACK);
    let expected = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps {
            value: 7100,
            echo: 50,
        }),
        ..TcpOptions::default()
    };
    assert_eq!(syn_ack.options, expected);
}

#[test]
fn the_right_acknowledgement_makes_a_connection() {
    let mut world = World::new(Config::default());
    world.now = world.now + Duration::from_millis(30);
    let HalfOpenOutcome::Established(connection) = world.give(&draft(Flags::ACK, 0, 0)) else {
        panic!("established");
    };
    assert_eq!(connection.state(), State::Established);
    assert_eq!(
        (connection.snd.una(), connection.snd.nxt()),
        (ISS + 1, ISS + 1)
    );
    assert_eq!(connection.rcv.nxt(), IRS + 1);
    assert_eq!((connection.mss(), connection.snd_wind_shift), (1188, 3));
    assert_eq!(connection.rtt.srtt_us() / 1000, 30);
    assert_eq!(connection.ts.recent(), 50);
}

fn check(draft: &Draft, expected: &str) {
    let mut world = World::new(Config::default());
    let outcome = match world.give(draft) {
        HalfOpenOutcome::Established(_) => "established",
        HalfOpenOutcome::Reset => "forgotten",
        HalfOpenOutcome::Dropped(_) => "dropped",
        HalfOpenOutcome::Answer(answer) if answer.flags == Flags::RST => {
            assert_eq!(answer.seq, draft.ack);
            "reset"
        }
        HalfOpenOutcome::Answer(answer) if answer.flags == Flags::ACK => {
            assert_eq!((answer.seq, answer.ack), (ISS + 1, IRS + 1));
            "ack"
        }
        HalfOpenOutcome::Answer(answer) if answer.flags == Flags::SYN | Flags::ACK => "syn-ack",
        HalfOpenOutcome::Answer(answer) => panic!("{answer:?}"),
    };
    assert_eq!(outcome, expected, "{draft:?}");
}

#[test]
fn each_segment_has_its_answer() {
    // First: acceptable from next up to the last byte of the window.
    check(&draft(Flags::ACK, -1, 0), "ack");
    check(&draft(Flags::ACK, 65_534, 0), "established");
    check(&draft(Flags::ACK, 65_535, 0), "ack");
    let text = |seq| draft(Flags::ACK, seq, 0).with_payload(b"text");
    check(&text(-4), "ack");
    check(&text(-3), "established");
    // Second: RST, as RFC 5961 3.2.
    check(&draft(Flags::RST, 0, 0), "forgotten");
    check(&draft(Flags::RST, 1, 0), "ack");
    check(&draft(Flags::RST, 65_534, 0), "ack");
    check(&draft(Flags::RST, 65_535, 0), "dropped");
    check(&draft(Flags::RST, -1, 0), "dropped");
    // Fourth: the same SYN again, and another.
    check(&draft(Flags::SYN, -1, 0), "syn-ack");
    check(&draft(Flags::SYN, 0, 0), "ack");
    check(&draft(Flags::SYN, 100, 0), "ack");
    // Fifth: the acknowledgement.
    check(&draft(Flags::PSH, 0, 0), "dropped");
    check(&draft(Flags::ACK, 0, -1), "reset");
    check(&draft(Flags::ACK, 0, 1), "reset");
    check(&draft(Flags::FIN | Flags::ACK, 0, 0), "established");
}

/// RFC 7323 5.3 R1 and 3.2, also before the handshake is complete.
#[test]
fn old_timestamps_and_none_are_refused() {
    for (value, expected) in [
        (Some(49), "ack"),
        (Some(50), "established"),
        (None, "dropped"),
    ] {
        let mut draft = draft(Flags::ACK, 0, 0);
        draft.options.timestamps = value.map(|value| Timestamps { value, echo: 7100 });
        check(&draft, expected);
    }
}

/// RFC 6298 5.5 and `tcp_synack_retries`.
#[test]
fn a_syn_ack_is_repeated_with_growing_waits_and_given_up() {
    let mut pair = Pair::new(&Config::default());
    pair.connect();
    pair.wire.lose.extend(1..100);
    let start = pair.now + Duration::from_millis(10);
    pair.run_for(Duration::from_millis(20));
    pair.sides[CLIENT].peer = Peer::Gone;
    pair.run_for(Duration::from_secs(62));
    let at = pair
        .log
        .iter()
        .filter(|entry| entry.1 == SERVER)
        .map(|entry| entry.0.since(start).as_secs())
        .collect::<Vec<_>>();
    assert_eq!(at, [0, 1, 3, 7, 15, 31]);
    assert!(matches!(pair.sides[SERVER].peer, Peer::HalfOpen(_)));
    pair.run_for(Duration::from_secs(2));
    assert!(matches!(pair.sides[SERVER].peer, Peer::Listening));
}

#[test]
fn a_peer_that_asks_again_is_waited_for_as_long_as_after_a_retransmission() {
    let mut world = World::new(Config::default());
    let syn = draft(Flags::SYN, -1, 0);
    // The timer of a first SYN-ACK measures the round trip, and stays.
    let first_at = world.half.retransmit_at;
    world.give(&syn);
    assert_eq!(world.half.retransmit_at, first_at);
    for expected in [2, 4, 8, 16, 32] {
        world.now = world.now + Duration::from_secs(100);
        assert!(world.call(HalfOpen::on_timer).is_some());
        world.now = world.now + Duration::from_millis(500);
        assert!(matches!(world.give(&syn), HalfOpenOutcome::Answer(_)));
        let wait_ms = world.half.retransmit_at.since(world.now.tick());
        assert_eq!(wait_ms, expected * 1000);
    }
    assert!(world.call(HalfOpen::on_timer).is_none());
}

/// RFC 4987 3.6: a cookie brings back a value that was not stored.
#[test]
fn a_half_open_connection_made_of_a_cookie_works() {
    for timestamps in [true, false] {
        let mut world = World::new(Config::default());
        world.half = HalfOpen {
            iss: ISS,
            irs: IRS,
            ts: TimestampState::new(100, 0),
            retransmit_at: world.now.tick(),
            retransmits: 0,
            mss: 1300,
            mss_local: 1460,
            window: 0,
            snd_wind_shift: None,
            timestamps,
            sack: timestamps,
            ecn: false,
        };
        let HalfOpenOutcome::Established(connection) = world.give(&draft(Flags::ACK, 0, 0)) else {
            panic!("established");
        };
        assert_eq!(connection.mss(), if timestamps { 1288 } else { 1300 });
        // Its timestamp is none of a clock.
        assert_eq!(connection.rtt.srtt_us(), 0);
        assert_eq!(connection.rcv_wind_shift, 0);
    }
}

/// RFC 3168 6.1.1.
#[test]
fn ecn_is_accepted_in_the_syn_ack() {
    for (mode, expected) in [(EcnMode::Off, false), (EcnMode::Accept, true)] {
        let mut pair = Pair::new(&Config {
            ecn: EcnMode::Ask,
            ..Config::default()
        });
        pair.sides[SERVER].config.ecn = mode;
        pair.connect();
        pair.run_for(Duration::from_millis(50));
        assert_eq!(pair.log[1].2.flags.has(Flags::ECE), expected);
        assert!(!pair.log[1].2.flags.has(Flags::CWR));
    }
}

/// RFC 6298 3: a SYN-ACK that was repeated measures nothing, unless the echo tells which one it was.
#[test]
fn a_repeated_syn_ack_measures_only_by_timestamp() {
    for (timestamps, expected) in [(true, 10), (false, 0)] {
        let mut world = World::new(Config {
            timestamps,
            ..Config::default()
        });
        world.now = world.now + Duration::from_secs(1);
        world.call(|half, env| half.on_timer(env)).unwrap();
        world.now = world.now + Duration::from_millis(10);
        let mut draft = draft(Flags::ACK, 0, 0);
        draft.options.timestamps = Some(Timestamps {
            value: 60,
            echo: 8100,
        });
        let HalfOpenOutcome::Established(connection) = world.give(&draft) else {
            panic!("established");
        };
        assert_eq!(connection.rtt.srtt_us() / 1000, expected);
    }
}

/// RFC 5681 3.1, as Linux has it: the second loss of the SYN-ACK, or SYN, counts.
#[test]
fn the_first_window_is_one_segment_after_two_losses_of_the_handshake() {
    for (losses, expected) in [(0, 10), (1, 10), (2, 1)] {
        let mut world = World::new(Config::default());
        for _ in 0..losses {
            world.now = world.now + Duration::from_secs(4);
            world.call(|half, env| half.on_timer(env)).unwrap();
        }
        let HalfOpenOutcome::Established(connection) = world.give(&draft(Flags::ACK, 0, 0)) else {
            panic!("established");
        };
        let segments = connection.congestion.cwnd() / u32::from(connection.snd_mss);
        assert_eq!(
            (segments, connection.timer.backoff()),
            (expected, 0),
            "{losses}"
        );
        // The side that opens: its SYN is lost so often.
        let mut pair = Pair::new(&Config::default());
        pair.wire.lose.extend(0..losses);
        pair.connect();
        pair.run_for(Duration::from_secs(5));
        let connection = pair.connection(CLIENT);
        let segments = connection.congestion.cwnd() / u32::from(connection.snd_mss);
        assert_eq!(segments, expected, "{losses}");
    }
}

/// Every wire between: the handshake is completed in the end.
#[test]
fn a_handshake_gets_over_losses() {
    for lost in [0, 1, 2] {
        let mut pair = Pair::new(&Config::default());
        pair.wire.lose.push(lost);
        pair.connect();
        pair.write(CLIENT, b"request");
        pair.run_for(Duration::from_secs(5));
        assert_eq!(
            pair.sides[SERVER].received, b"request",
            "segment {lost} lost"
        );
    }
}
