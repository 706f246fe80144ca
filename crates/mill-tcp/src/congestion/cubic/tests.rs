//! CUBIC against a model in floating point.

use super::*;
use crate::config::{Algorithm, Config};
use crate::congestion::{CongestionWindow, Signal};
use crate::env::{Env, Shared};
use crate::random::Random;
use crate::recovery::Progress;
use crate::rto::RttEstimator;
use crate::scoreboard::Delivery;
use crate::time::Instant;

extern crate std;

#[test]
fn cube_roots_are_those_of_the_number_below() {
    let check = |value: u64, expected: u32| assert_eq!(cube_root(value), expected, "{value}");
    check(0, 0);
    check(1, 1);
    check(7, 1);
    check(8, 2);
    check(26, 2);
    check(27, 3);
    check(u64::MAX, 2_642_245);
    let mut random = Random::new(9);
    for _ in 0..1_000 {
        let root = random.below(2_642_245);
        check(root * root * root, u32::try_from(root).unwrap());
        if root > 0 {
            check(root * root * root - 1, u32::try_from(root - 1).unwrap());
        }
    }
}

/// The curve in floating point: windows in segments, time in seconds.
fn curve(seconds: f64, cwnd: f64, w_max: f64) -> f64 {
    let k = ((w_max - cwnd).max(0.0) / 0.4).cbrt();
    0.4 * (seconds - k).powi(3) + w_max.max(cwnd)
}

#[test]
fn the_curve_is_that_of_the_formula() {
    let mut random = Random::new(3);
    for _ in 0..2_000 {
        let mss = 48 + u32::try_from(random.below(65_000)).unwrap();
        let segments = 2 + u32::try_from(random.below(10_000)).unwrap();
        let (w_max, cwnd) = (segments * mss, segments * mss / 10 * 7);
        let epoch = Epoch::begin(cwnd, w_max, mss, Moment(0));
        let elapsed_ms = u32::try_from(random.below(60_000)).unwrap();
        let segment = f64::from(mss);
        let expected = curve(
            f64::from(elapsed_ms) / 1e3,
            f64::from(cwnd) / segment,
            f64::from(w_max) / segment,
        );
        let window = f64::from(epoch.window(elapsed_ms, mss)) / segment;
        // K counts whole milliseconds, which matters where the curve is steep.
        let tolerance = 0.1 + expected.abs() * 1e-3;
        assert!(
            (window - expected).abs() < tolerance || window * segment >= f64::from(u32::MAX) - 1.0,
            "{window} instead of {expected}: mss {mss}, {segments} segments, {elapsed_ms} ms"
        );
    }
}

fn delivery_of(bytes: u32) -> Delivery {
    Delivery {
        bytes,
        ..Delivery::default()
    }
}

/// A flow that has all of its window in flight, and loses a segment when it reaches `limit` segments.
struct Flow {
    connection: Connection,
    cold: Cold,
    config: Config,
    shared: Shared,
    now: Instant,
}

impl Flow {
    const MSS: u32 = 1_448;

    fn new(algorithm: Algorithm, rtt_ms: u32) -> Self {
        let mut rtt = RttEstimator::default();
        rtt.on_handshake(rtt_ms);
        let connection = Connection {
            snd_mss: 1_448,
            rtt,
            congestion: CongestionWindow::initial(10 * Self::MSS),
            ..Connection::default()
        };
        Self {
            connection,
            cold: Cold::default(),
            config: Config {
                congestion: algorithm,
                hystart: false,
                ..Config::default()
            },
            shared: Shared::new(1),
            now: Instant::from_nanos(0),
        }
    }

    fn env<'a>(now: Instant, config: &'a Config, shared: &'a mut Shared) -> Env<'a> {
        Env {
            now,
            config,
            shared,
            segment_bytes_max: 1_448,
            memory_left_bytes: 0,
        }
    }

    fn lose(&mut self) {
        let env = Self::env(self.now, &self.config, &mut self.shared);
        self.connection
            .on_congestion(&mut self.cold, Signal::Loss, &env);
        self.connection.congestion.cwnd = self.connection.congestion.ssthresh;
    }

    /// One round trip, two segments an acknowledgement.
    fn round(&mut self) {
        let env = Self::env(self.now, &self.config, &mut self.shared);
        let mut left = self.connection.congestion.cwnd;
        while left > 0 {
            let acked_bytes = left.min(2 * Self::MSS);
            let progress = Progress {
                now: Moment::of(self.now),
                acked_bytes,
                delivery: delivery_of(acked_bytes),
                ..Progress::default()
            };
            let flight = self.connection.congestion.cwnd;
            self.connection.note_usage(&mut self.cold, flight, true);
            self.connection.grow_window(&mut self.cold, &progress, &env);
            left -= acked_bytes;
        }
        self.now =
            self.now + crate::time::Duration::from_micros(self.connection.rtt.srtt_us().into());
    }

    fn segments(&self) -> f64 {
        f64::from(self.connection.congestion.cwnd) / f64::from(Self::MSS)
    }
}

#[test]
fn a_flow_goes_along_the_curve_back_to_its_old_window() {
    // A long way: Reno would be slower than the curve.
    let mut flow = Flow::new(Algorithm::Cubic, 100);
    flow.connection.congestion.cwnd = 1_000 * Flow::MSS;
    flow.connection.congestion.ssthresh = 500 * Flow::MSS;
    flow.lose();
    assert!((flow.segments() - 700.0).abs() < 1.0, "{}", flow.segments());
    for round in 0..120 {
        let seconds = f64::from(round) * 0.1;
        flow.round();
        // The window of the round's end, which is what was aimed at.
        let expected = curve(seconds + 0.1, 700.0, 1_000.0);
        let error = (flow.segments() - expected).abs() / expected;
        assert!(
            error < 0.02,
            "round {round}: {} instead of {expected}",
            flow.segments()
        );
    }
}

#[test]
fn on_short_ways_a_flow_is_as_fast_as_reno() {
    let mut flow = Flow::new(Algorithm::Cubic, 5);
    flow.connection.congestion.cwnd = 40 * Flow::MSS;
    flow.connection.congestion.ssthresh = 40 * Flow::MSS;
    flow.lose();
    for round in 1..=15 {
        flow.round();
        // W_est of RFC 9438 4.3.
        let expected = 28.0 + 9.0 / 17.0 * f64::from(round);
        assert!(
            (flow.segments() - expected).abs() < 0.6,
            "{round}: {} {expected}",
            flow.segments()
        );
    }
}

#[test]
fn reno_grows_by_a_segment_a_round_trip() {
    let mut flow = Flow::new(Algorithm::Reno, 50);
    flow.connection.congestion.cwnd = 40 * Flow::MSS;
    flow.lose();
    assert_eq!(flow.connection.congestion.cwnd, 20 * Flow::MSS);
    for round in 1..=10 {
        flow.round();
        let expected = 20.0 + f64::from(round);
        assert!(
            (flow.segments() - expected).abs() < 0.3,
            "{round}: {}",
            flow.segments()
        );
    }
}

#[test]
fn slow_start_doubles_and_ends_at_the_threshold() {
    let mut flow = Flow::new(Algorithm::Cubic, 50);
    flow.round();
    assert_eq!(flow.connection.congestion.cwnd, 20 * Flow::MSS);
    flow.connection.congestion.ssthresh = 30 * Flow::MSS;
    flow.round();
    let segments = flow.segments();
    assert!((30.0..31.0).contains(&segments), "{segments}");
}

#[test]
fn what_is_not_used_does_not_grow() {
    let check = |flight_segments: u32, is_limited: bool, slow_start: bool, grows: bool| {
        let mut flow = Flow::new(Algorithm::Cubic, 50);
        flow.connection.congestion.ssthresh = if slow_start { u32::MAX } else { 10 * Flow::MSS };
        let env = Flow::env(flow.now, &flow.config, &mut flow.shared);
        let flight = flight_segments * Flow::MSS;
        flow.connection
            .note_usage(&mut flow.cold, flight, is_limited);
        let progress = Progress {
            acked_bytes: flight,
            delivery: delivery_of(flight),
            ..Progress::default()
        };
        flow.connection.grow_window(&mut flow.cold, &progress, &env);
        assert_eq!(
            flow.connection.congestion.cwnd > 10 * Flow::MSS,
            grows,
            "{flight_segments} {slow_start}"
        );
    };
    check(5, false, true, false);
    check(6, false, true, true);
    check(9, false, false, false);
    check(9, true, false, true);
}

#[test]
fn a_flow_that_did_not_come_back_leaves_more_to_others() {
    let mut flow = Flow::new(Algorithm::Cubic, 50);
    flow.connection.congestion.cwnd = 100 * Flow::MSS;
    flow.lose();
    assert_eq!(flow.connection.congestion.w_max, 100 * Flow::MSS);
    assert_eq!(flow.connection.congestion.ssthresh, 70 * Flow::MSS);
    flow.connection.congestion.cwnd = 99 * Flow::MSS;
    flow.lose();
    assert_eq!(flow.connection.congestion.w_max, 99 * Flow::MSS * 85 / 100);
    flow.connection.congestion.cwnd = flow.connection.congestion.w_max;
    flow.lose();
    assert_eq!(flow.connection.congestion.w_max, 99 * Flow::MSS * 85 / 100);
}

#[test]
fn the_threshold_is_two_segments_at_least() {
    let mut flow = Flow::new(Algorithm::Cubic, 50);
    flow.connection.congestion.cwnd = Flow::MSS;
    flow.lose();
    assert_eq!(flow.connection.congestion.ssthresh, 2 * Flow::MSS);
}
