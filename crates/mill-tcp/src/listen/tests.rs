//! SYN-RECEIVED of a listener: RFC 9293 3.10.7.2 and 3.10.7.4, RFC 5961.

use super::*;
use crate::config::Config;
use crate::env::Shared;
use crate::pair::Draft;
use crate::segment::Ecn;
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

/// RFC 6298 3: a SYN-ACK that was repeated measures nothing, unless the echo tells which one it was.
#[test]
fn a_repeated_syn_ack_measures_only_by_timestamp() {
    for (timestamps, expected) in [(true, 10), (false, 0)] {
        let mut world = World::new(Config::with(|config| config.timestamps = timestamps));
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
