//! The scoreboard against a model that knows each byte.

use super::delivery::{Newest, is_sent_after};
use super::*;
use crate::random::Random;
use alloc::vec::Vec;

/// Near the end of the number space, so that it is crossed.
const START: SeqNumber = SeqNumber(u32::MAX - 3_000);

fn seq(offset: usize) -> SeqNumber {
    START + u32::try_from(offset).unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Byte {
    mark: Mark,
    at: Moment,
    retransmits: u8,
}

/// All bytes ever sent, and how many of them are acknowledged.
#[derive(Debug, Default)]
struct Model {
    bytes: Vec<Byte>,
    acked: usize,
    newest: Option<Newest>,
}

impl Model {
    fn in_flight(&self) -> core::ops::Range<usize> {
        self.acked..self.bytes.len()
    }

    fn count(&self, mark: Mark) -> u32 {
        let bytes = &self.bytes[self.in_flight()];
        u32::try_from(bytes.iter().filter(|byte| byte.mark == mark).count()).unwrap()
    }

    /// What arrives now: counts, and keeps what was sent last.
    fn arrive(&mut self, index: usize, delivered: &mut u32) {
        let byte = self.bytes[index];
        if byte.mark == Mark::Sacked {
            return;
        }
        *delivered += 1;
        let end = seq(index + 1);
        if self
            .newest
            .is_none_or(|newest| is_sent_after((byte.at, end), (newest.at, newest.end)))
        {
            self.newest = Some(Newest {
                at: byte.at,
                end,
                is_retransmission: byte.retransmits > 0,
            });
        }
    }

    fn detect(&mut self, away_us_max: u32, now: Moment) -> u32 {
        let Some(newest) = self.newest else {
            return 0;
        };
        let mut lost = 0;
        for index in self.in_flight() {
            let end = seq(index + 1);
            let byte = &mut self.bytes[index];
            let is_older = is_sent_after((newest.at, newest.end), (byte.at, end));
            if byte.mark == Mark::InFlight && is_older && now.since(byte.at) >= away_us_max {
                byte.mark = Mark::Lost;
                lost += 1;
            }
        }
        lost
    }
}

fn compare(board: &Scoreboard, model: &Model, seed: u64) {
    assert_eq!(
        board.sacked_bytes(),
        model.count(Mark::Sacked),
        "seed {seed}"
    );
    assert_eq!(board.lost_bytes(), model.count(Mark::Lost), "seed {seed}");
    assert_eq!(board.pipe(), model.count(Mark::InFlight), "seed {seed}");
    let mut index = model.acked;
    for entry in &board.sent {
        for _ in 0..entry.len() {
            let byte = model.bytes[index];
            assert_eq!(entry.mark, byte.mark, "seed {seed}, byte {index}");
            if entry.mark == Mark::InFlight {
                let of_entry = (entry.at, entry.retransmits > 0);
                assert_eq!(
                    of_entry,
                    (byte.at, byte.retransmits > 0),
                    "seed {seed}, byte {index}"
                );
            }
            index += 1;
        }
    }
    assert_eq!(index, model.bytes.len(), "seed {seed}");
}

/// One step of the exchange, in both.
fn step(board: &mut Scoreboard, model: &mut Model, random: &mut Random, now: Moment, seed: u64) {
    let below =
        |random: &mut Random, bound: usize| usize::try_from(random.below(bound as u64)).unwrap();
    let range = model.in_flight();
    match random.below(16) {
        0..=3 => {
            let len = 1 + below(random, 40);
            let now = board.push(
                seq(range.end),
                seq(range.end + len),
                len.is_multiple_of(2),
                now,
            );
            let byte = Byte {
                mark: Mark::InFlight,
                at: now,
                retransmits: 0,
            };
            model.bytes.resize(range.end + len, byte);
        }
        4 => {
            let ack = range.start + below(random, range.len() / 3 + 1);
            let mut delivery = Delivery::default();
            board.acknowledge(seq(ack), &mut delivery);
            let mut delivered = 0;
            for index in range.start..ack {
                model.arrive(index, &mut delivered);
            }
            model.acked = ack;
            assert_eq!(delivery.bytes, delivered, "seed {seed}");
        }
        5..=8 => {
            let start = range.start + below(random, range.len() + 5);
            let end = start + 1 + below(random, 60);
            let mut delivery = Delivery::default();
            board.sack(seq(start), seq(end), &mut delivery);
            let mut delivered = 0;
            for index in start.min(range.end)..end.min(range.end) {
                model.arrive(index, &mut delivered);
                model.bytes[index].mark = Mark::Sacked;
            }
            assert_eq!(delivery.bytes, delivered, "seed {seed}");
        }
        9..=10 => detect(board, model, random, now, seed),
        11..=13 => resend_some(board, model, random, now, seed),
        14 => rare(board, model, random, now, seed),
        _ => {
            let len = 1 + below(random, 30);
            if let Some(tail) = board.resend_tail(u32::try_from(len).unwrap(), now) {
                assert!(tail.len() as usize <= len, "seed {seed}");
                resend(model, range.end - tail.len() as usize..range.end, tail.at);
            }
        }
    }
}

fn detect(board: &mut Scoreboard, model: &mut Model, random: &mut Random, now: Moment, seed: u64) {
    let away_us_max = u32::try_from(random.below(60)).unwrap();
    let newest = model.newest;
    let losses = newest.map(|newest| board.detect_losses(newest, away_us_max, now));
    let expected = model.detect(away_us_max, now);
    assert_eq!(
        losses.map_or(0, |losses| losses.bytes),
        expected,
        "seed {seed}"
    );
}

fn resend_some(
    board: &mut Scoreboard,
    model: &mut Model,
    random: &mut Random,
    now: Moment,
    seed: u64,
) {
    let mut range = model.in_flight();
    let first = range.find(|&index| model.bytes[index].mark == Mark::Lost);
    let entry = board.next_lost();
    assert_eq!(
        entry.map(|entry| entry.start),
        first.map(seq),
        "seed {seed}"
    );
    if let (Some(entry), Some(first)) = (entry, first) {
        let len = 1 + u32::try_from(random.below(entry.len().into())).unwrap();
        let at = board.resend_lost(len, now);
        resend(model, first..first + len as usize, at);
    }
}

fn resend(model: &mut Model, range: core::ops::Range<usize>, now: Moment) {
    for byte in &mut model.bytes[range] {
        *byte = Byte {
            mark: Mark::InFlight,
            at: now,
            retransmits: byte.retransmits.saturating_add(1),
        };
    }
}

/// What happens seldom: timeouts, reneging, undo.
fn rare(board: &mut Scoreboard, model: &mut Model, random: &mut Random, now: Moment, seed: u64) {
    let range = model.in_flight();
    let bytes = &mut model.bytes[range];
    match random.below(8) {
        // Reports are not kept apart by when their bytes left: what is thrown away can't be undone too.
        0 if seed.is_multiple_of(2) => {
            board.forget_sacked();
            bytes
                .iter_mut()
                .filter(|byte| byte.mark == Mark::Sacked)
                .for_each(|byte| byte.mark = Mark::Lost);
        }
        1 if !seed.is_multiple_of(2) => {
            board.forget_lost();
            bytes
                .iter_mut()
                .filter(|byte| byte.mark == Mark::Lost)
                .for_each(|byte| byte.mark = Mark::InFlight);
        }
        2 => {
            board.mark_lost_on_timeout(0, now);
            bytes
                .iter_mut()
                .filter(|byte| byte.mark == Mark::InFlight)
                .for_each(|byte| byte.mark = Mark::Lost);
        }
        _ => {
            let lost = board.mark_head_lost(10);
            for byte in bytes.iter_mut().take(lost as usize) {
                assert_eq!(byte.mark, Mark::InFlight);
                byte.mark = Mark::Lost;
            }
        }
    }
}

#[test]
fn it_does_what_a_mark_on_each_byte_does() {
    for seed in 1..300 {
        let mut random = Random::new(seed);
        let mut board = Scoreboard::default();
        let mut model = Model::default();
        // Microseconds wrap, too.
        let mut now = Moment(u32::MAX - 2_000);
        for _ in 0..300 {
            now = Moment(now.0.wrapping_add(u32::try_from(random.below(30)).unwrap()));
            step(&mut board, &mut model, &mut random, now, seed);
            compare(&board, &model, seed);
        }
    }
}

fn board_of(segments: u32, len: u32) -> Scoreboard {
    let mut board = Scoreboard::default();
    for number in 0..segments {
        let start = START + number * len;
        board.push(start, start + len, true, Moment(number));
    }
    board
}

#[test]
fn what_leaves_at_once_is_one_entry() {
    let mut board = Scoreboard::default();
    board.push(START, START + 100, true, Moment(7));
    board.push(START + 100, START + 250, true, Moment(7));
    board.push(START + 250, START + 300, true, Moment(8));
    board.push(START + 300, START + 310, false, Moment(8));
    board.push(START + 310, START + 320, true, Moment(8));
    // What is no whole segment stays apart.
    assert_eq!(board.len(), 4);
    assert_eq!(board.outstanding_bytes(), 320);
}

#[test]
fn one_byte_reports_do_not_make_entries_without_end() {
    let mut board = board_of(1, 60_000);
    let mut delivery = Delivery::default();
    for at in 0..20_000 {
        let start = START + 10_000 + at;
        board.sack(start, start + 1, &mut delivery);
    }
    assert_eq!((board.len(), board.sacked_bytes()), (3, 20_000));
    // Every second byte: as many ranges as are kept.
    for at in 0..10_000 {
        let start = START + 40_000 + 2 * at;
        board.sack(start, start + 1, &mut delivery);
    }
    assert!(
        board.len() <= 2 * ranges::Ranges::COUNT_MAX + 3,
        "{}",
        board.len()
    );
}

#[test]
fn arrival_behind_what_left_later_is_reordering_unless_sent_twice() {
    let check = |resent: bool, expected: bool| {
        let mut board = board_of(3, 100);
        let mut delivery = Delivery::default();
        board.sack(START + 200, START + 300, &mut delivery);
        assert!(!delivery.is_reordered);
        if resent {
            board.mark_head_lost(100);
            board.resend_lost(100, Moment(50));
        }
        let mut delivery = Delivery::default();
        board.acknowledge(START + 100, &mut delivery);
        assert_eq!(delivery.is_reordered, expected);
        assert_eq!(delivery.has_retransmitted, resent);
    };
    check(false, true);
    check(true, false);
}

#[test]
fn what_left_before_the_newest_arrival_is_lost_when_its_time_is_over() {
    let newest = Newest {
        at: Moment(2),
        end: START + 300,
        is_retransmission: false,
    };
    let check = |now: u32, expected: (u32, bool)| {
        let mut board = board_of(4, 100);
        board.sack(START + 200, START + 300, &mut Delivery::default());
        let losses = board.detect_losses(newest, 50, Moment(now));
        assert_eq!((losses.bytes, losses.is_pending), expected, "{now}");
    };
    check(49, (0, true));
    check(50, (100, true));
    check(51, (200, false));
    check(1_000, (200, false));
}

#[test]
fn a_lost_retransmission_is_found_by_what_left_after_it() {
    let mut board = board_of(3, 100);
    board.sack(START + 100, START + 200, &mut Delivery::default());
    board.mark_head_lost(100);
    board.resend_lost(100, Moment(50));
    let newest = |at: u32, end: u32| Newest {
        at: Moment(at),
        end: START + end,
        is_retransmission: false,
    };
    let losses = board.detect_losses(newest(49, 200), 10, Moment(100));
    assert_eq!((losses.bytes, losses.retransmissions), (100, 0));
    board.push(START + 300, START + 400, true, Moment(51));
    board.sack(START + 300, START + 400, &mut Delivery::default());
    let losses = board.detect_losses(newest(51, 400), 10, Moment(100));
    assert_eq!((losses.bytes, losses.retransmissions), (100, 1));
    assert_eq!(board.next_lost().map(|entry| entry.start), Some(START));
}
