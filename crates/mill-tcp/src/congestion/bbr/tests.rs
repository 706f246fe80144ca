//! BBR over a path that is computed: a wire of so many bytes a second with a queue before it, and random losses.

use super::super::pacing::Pacer;
use super::phase::Phase;
use super::{Ack, Bbr};
use crate::random::Random;
use crate::scoreboard::delivery::Newest;
use crate::scoreboard::{Delivery, Moment};
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use mill_wire::seq::SeqNumber;

const MSS: u32 = 1_448;

/// Microseconds, and bytes.
struct Path {
    rate: u64,
    rtt: u64,
    queue_max: u64,
    losses_per_mille: u64,
    /// The peer's window, bytes.
    window: u32,
    random: Random,
    now: u64,
    /// Until when the wire is busy with what is queued.
    busy_until: u64,
    bbr: Bbr,
    pacer: Pacer,
    cwnd: u32,
    sent: u32,
    delivered: u64,
    in_flight: VecDeque<Packet>,
    phases: Vec<Phase>,
    queued_max: u64,
}

#[derive(Clone, Copy)]
struct Packet {
    end: u32,
    left_at: u64,
    /// None if it is lost.
    acked_at: Option<u64>,
}

impl Path {
    fn new(mbit: u64, rtt_ms: u64, queue_max: u64, losses_per_mille: u64) -> Self {
        let rtt = rtt_ms * 1_000;
        let now = 1_000_000;
        let cwnd = 10 * MSS;
        Self {
            rate: mbit * 125_000,
            rtt,
            queue_max,
            losses_per_mille,
            window: u32::MAX,
            random: Random::new(7),
            now,
            busy_until: now,
            bbr: Bbr::new(Instant::from_nanos(now * 1_000), Some(rtt), cwnd),
            pacer: Pacer::starting_at(Instant::from_nanos(now * 1_000)),
            cwnd,
            sent: 0,
            delivered: 0,
            in_flight: VecDeque::new(),
            phases: Vec::new(),
            queued_max: 0,
        }
    }

    fn bytes_in_flight(&self) -> u32 {
        u32::try_from(self.in_flight.len()).unwrap() * MSS
    }

    /// Runs for so long; the bytes that arrived.
    fn run(&mut self, time: Duration) -> u64 {
        let until = self.now + u64::try_from(time.as_micros()).unwrap();
        let before = self.delivered;
        while self.now < until {
            self.send();
            self.receive();
            self.now += 50;
        }
        self.delivered - before
    }

    fn send(&mut self) {
        let now = Instant::from_nanos(self.now * 1_000);
        while self.bytes_in_flight() + MSS <= self.cwnd && self.pacer.next_at() <= now {
            if self.bytes_in_flight() + MSS > self.window {
                self.bbr.is_peer_limited = true;
                return;
            }
            let (start, end) = (self.sent, self.sent.wrapping_add(MSS));
            let in_flight = self.bytes_in_flight();
            let sent = (SeqNumber(start), SeqNumber(end));
            self.bbr.model.rates.on_sent(sent, self.now, in_flight);
            self.pacer.spend(now, MSS, self.bbr.pacing_rate());
            self.sent = end;
            let begins = self.busy_until.max(self.now);
            let queued = (begins - self.now) * self.rate / 1_000_000;
            self.queued_max = self.queued_max.max(queued);
            let is_lost =
                queued > self.queue_max || self.random.below(1_000) < self.losses_per_mille;
            if queued <= self.queue_max {
                self.busy_until = begins + u64::from(MSS) * 1_000_000 / self.rate;
            }
            self.in_flight.push_back(Packet {
                end,
                left_at: self.now,
                acked_at: (!is_lost).then_some(self.busy_until + self.rtt),
            });
        }
    }

    /// The acknowledgement of the next packet that arrives; those before it are lost.
    fn receive(&mut self) {
        let next = self
            .in_flight
            .iter()
            .position(|packet| packet.acked_at.is_some());
        let Some((lost, packet)) = next.map(|place| (place, self.in_flight[place])) else {
            // All are lost: a timer would tell after a while.
            if self
                .in_flight
                .front()
                .is_some_and(|packet| self.now > packet.left_at + 3 * self.rtt)
            {
                self.in_flight.clear();
            }
            return;
        };
        if packet.acked_at.is_none_or(|at| at > self.now) {
            return;
        }
        self.in_flight.drain(..=lost);
        self.delivered += u64::from(MSS);
        let moment = u32::try_from(packet.left_at).unwrap();
        let delivery = Delivery {
            bytes: MSS,
            newest: Some(Newest {
                at: Moment(moment),
                end: SeqNumber(packet.end),
                is_retransmission: false,
            }),
            ..Delivery::default()
        };
        let in_flight = self.bytes_in_flight();
        let ack = Ack {
            now: self.now,
            delivery: &delivery,
            lost: u32::try_from(lost).unwrap() * MSS,
            rtt: Some(self.now - packet.left_at),
            in_flight,
            cwnd: self.cwnd,
            mss: MSS,
            is_window_used: in_flight + 2 * MSS >= self.cwnd,
            random: self.random.next(),
        };
        self.cwnd = self.bbr.on_ack(&ack);
        if self.phases.last() != Some(&self.bbr.phase) {
            self.phases.push(self.bbr.phase);
        }
    }

    /// Thousandths of the wire's rate that arrive within a time.
    fn share(&mut self, time: Duration) -> u64 {
        let delivered = self.run(time);
        let possible = self.rate * u64::try_from(time.as_micros()).unwrap() / 1_000_000;
        delivered * 1_000 / possible
    }
}

#[test]
fn it_fills_the_path_drains_the_queue_and_cycles() {
    let mut path = Path::new(50, 40, 10_000_000, 0);
    path.run(Duration::from_millis(800));
    assert_eq!(path.phases[..2], [Phase::Startup, Phase::Drain]);
    assert!(matches!(path.phases[2], Phase::Down | Phase::Cruise));
    path.phases.clear();
    path.queued_max = 0;
    let share = path.share(Duration::from_secs(4));
    assert!(share > 950, "{share}");
    for phase in [Phase::Down, Phase::Cruise, Phase::Refill, Phase::Up] {
        assert!(
            path.phases.contains(&phase),
            "{phase:?} of {:?}",
            path.phases
        );
    }
    // Three rounds with a quarter more: less than what the path carries in a round trip.
    assert!(path.queued_max < 250_000, "{}", path.queued_max);
}

/// As where the path was shared and the others have gone: each round trip is shorter than all before.
#[test]
fn the_path_is_measured_while_its_round_trip_becomes_shorter() {
    const FIRST: u64 = 400_000;
    let mut now = 1_000_000;
    let begin = Instant::from_nanos(now * 1_000);
    let mut bbr = Bbr::new(begin, Some(FIRST), 10 * MSS);
    for round in 1..=10 {
        let (start, end) = (SeqNumber((round - 1) * MSS), SeqNumber(round * MSS));
        bbr.model.rates.on_sent((start, end), now, 0);
        let at = Moment(u32::try_from(now).unwrap());
        let rtt = FIRST - u64::from(round) * 1_000;
        now += rtt;
        let newest = Newest {
            at,
            end,
            is_retransmission: false,
        };
        let delivery = Delivery {
            bytes: MSS,
            newest: Some(newest),
            ..Delivery::default()
        };
        bbr.on_ack(&Ack {
            now,
            delivery: &delivery,
            lost: 0,
            rtt: Some(rtt),
            in_flight: 0,
            cwnd: 10 * MSS,
            mss: MSS,
            is_window_used: false,
            random: 0,
        });
    }
    let (measured, least) = (bbr.model.bw(), u64::from(MSS) * 1_000_000 / FIRST);
    assert!(measured > least, "{measured} of {least} at least");
}

#[test]
fn the_round_trip_is_measured_every_five_seconds_and_costs_little() {
    let mut path = Path::new(20, 30, 10_000_000, 0);
    path.run(Duration::from_secs(1));
    path.phases.clear();
    let share = path.share(Duration::from_secs(11));
    let measured = path
        .phases
        .iter()
        .filter(|phase| **phase == Phase::ProbeRtt)
        .count();
    assert_eq!(measured, 2, "{:?}", path.phases);
    assert!(share > 920, "{share}");
    assert_eq!(path.bbr.model.min_rtt / 1_000, 30);
}

#[test]
fn random_losses_cost_no_more_than_what_they_lose() {
    for (losses_per_mille, least) in [(1, 970), (10, 956), (50, 900)] {
        let mut path = Path::new(100, 20, 250_000, losses_per_mille);
        path.run(Duration::from_secs(2));
        let share = path.share(Duration::from_secs(20));
        assert!(share > least, "{losses_per_mille}: {share}");
    }
}

/// The path loses as much without a queue; so a loss beside a queue does not say that the queue is full.
#[test]
fn random_losses_while_more_is_tried_do_not_bound_what_is_in_flight() {
    let mut path = Path::new(100, 20, 10_000_000, 50);
    path.run(Duration::from_secs(10));
    let bdp = path.bbr.model.bdp(path.rate, 1_000).unwrap();
    let bound = path.bbr.model.inflight_hi;
    assert!(bound > bdp / 2 * 3, "{bound} of {bdp}");
}

#[test]
fn a_full_queue_bounds_what_is_in_flight() {
    // A queue of a tenth of what the path carries in a round trip: probing for more overflows it.
    let mut path = Path::new(100, 40, 50_000, 0);
    path.run(Duration::from_secs(3));
    let share = path.share(Duration::from_secs(6));
    assert!(share > 850, "{share}");
    assert_ne!(path.bbr.model.inflight_hi, u32::MAX);
}

#[test]
fn a_path_that_becomes_slower_is_filled_and_known_after_two_cycles() {
    let mut path = Path::new(100, 20, 250_000, 0);
    path.run(Duration::from_secs(3));
    path.rate /= 10;
    let share = path.share(Duration::from_secs(12));
    assert!(share > 980, "{share}");
    let bw = path.bbr.model.bw();
    assert!((1_100_000..1_500_000).contains(&bw), "{bw}");
    let share = path.share(Duration::from_secs(4));
    assert!(share > 850, "{share}");
}

/// As a receiver's does that begins with 64 KiB and grows with what its reader takes; behind holes that is late.
#[test]
fn a_peers_window_that_is_small_at_first_does_not_end_startup() {
    let mut path = Path::new(100, 20, 1_000_000, 0);
    path.window = 65_536;
    path.run(Duration::from_millis(300));
    path.window = u32::MAX;
    path.run(Duration::from_millis(200));
    let share = path.share(Duration::from_millis(500));
    assert!(share > 950, "{share}");
}

#[test]
fn a_peers_window_that_lets_a_queue_stand_ends_startup() {
    let mut path = Path::new(100, 20, 1_000_000, 0);
    path.window = 400_000;
    path.run(Duration::from_millis(800));
    assert!(path.phases.contains(&Phase::Cruise), "{:?}", path.phases);
}
