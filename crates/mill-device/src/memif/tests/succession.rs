//! A connection goes from process to process: the peer notices nothing, and no frame is lost. Two links of one end stand for the
//! processes before and after.

use super::super::dispatch;
use super::workers::{End, all_up, numbers, run, send_flow, team, with_rings};
use super::*;

/// What all processes of one end have.
struct Device {
    place: PathBuf,
    listener: Option<OwnedFd>,
    passage: [OwnedFd; 2],
    /// The ends of the channels between the first worker and each other one.
    channels: Vec<[OwnedFd; 2]>,
    options: MemifOptions,
}

impl Device {
    fn new(place: &Path, is_master: bool, workers: u32) -> Self {
        let channels = (1..workers).map(|_| dispatch::pair().unwrap());
        Self {
            place: place.to_owned(),
            listener: is_master.then(|| listener(place).unwrap()),
            passage: dispatch::pair().unwrap(),
            channels: channels.collect(),
            options: with_rings(u16::try_from(workers).unwrap()),
        }
    }

    /// Opens the part of the first worker.
    fn first(&self) -> MemifLink {
        let copy = |of: &OwnedFd| of.try_clone().unwrap();
        let link = match &self.listener {
            Some(listener) => MemifLink::serve(copy(listener), &self.options),
            None => MemifLink::connect(&self.place, &self.options),
        };
        let others = self.channels.iter().map(|[ours, _]| copy(ours)).collect();
        let passage = self.passage.each_ref().map(copy);
        link.unwrap()
            .lead(Leader::new(Some(passage), others))
            .unwrap()
    }

    /// Opens the part of another worker.
    fn other(&self, worker: u32) -> MemifLink {
        let [_, theirs] = &self.channels[worker as usize - 1];
        let workers = u32::try_from(self.channels.len()).unwrap() + 1;
        let share = Share { worker, workers };
        MemifLink::follow(theirs.try_clone().unwrap(), share, &self.options).unwrap()
    }

    fn open(&self) -> End {
        let others = (1..)
            .zip(&self.channels)
            .map(|(worker, _)| self.other(worker));
        core::iter::once(self.first()).chain(others).collect()
    }
}

/// Leaves a part to the next process, and opens it there.
fn change(device: &Device, end: &mut End, worker: usize) {
    drop(end.remove(worker));
    let next = match u32::try_from(worker).unwrap() {
        0 => device.first(),
        worker => device.other(worker),
    };
    end.insert(worker, next);
}

/// The end under test, and its peer.
fn connected(is_master: bool, workers: u32) -> (Device, End, End) {
    let place = place();
    let device = Device::new(&place, is_master, workers);
    let mut end = device.open();
    let options = device.options.clone();
    let first = match is_master {
        true => MemifLink::connect(&place, &options),
        false => MemifLink::listen(&place, &options),
    };
    let mut peer = team(first.unwrap(), workers, &options);
    run(&mut [&mut end, &mut peer], all_up);
    (device, end, peer)
}

/// A number that follows from the one before (Knuth's MMIX).
fn next(seed: &mut u64) -> usize {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 33).unwrap()
}

/// Frames go both ways while parts of one end go to the next process at any time.
fn check_seed(seed: u64) {
    let mut random = seed;
    let workers = 1 + next(&mut random) % 3;
    let is_master = next(&mut random).is_multiple_of(2);
    let (device, mut end, mut peer) = connected(is_master, u32::try_from(workers).unwrap());
    // Of each direction and worker: the next number to send, and the next one to come.
    let mut counts = vec![[[0_u8; 2]; 2]; workers];
    let mut changes = 0;
    for step in 0..3000 {
        let worker = next(&mut random) % workers;
        let [there, back] = &mut counts[worker];
        let (link, far) = (&mut end[worker], &mut peer[worker]);
        match next(&mut random) % 50 {
            0 => {
                change(&device, &mut end, worker);
                changes += 1;
                // The first worker is asked for the rings, and answers.
                run(&mut [&mut end], |ends| ends[0].iter().all(MemifLink::is_up));
            }
            1..=20 if send_flow(link, [0, 0], there[0]) => there[0] = there[0].wrapping_add(1),
            21..=40 if send_flow(far, [0, 0], back[0]) => back[0] = back[0].wrapping_add(1),
            41..=45 => check_numbers(far, &mut there[1], (seed, step)),
            _ => check_numbers(link, &mut back[1], (seed, step)),
        }
    }
    for (worker, [mut there, mut back]) in counts.into_iter().enumerate() {
        check_numbers(&mut peer[worker], &mut there[1], (seed, 3000));
        check_numbers(&mut end[worker], &mut back[1], (seed, 3000));
        assert_eq!((there[0], back[0]), (there[1], back[1]), "seed {seed}");
    }
    assert!(changes > 10, "seed {seed}");
    let connected = peer.iter().map(|link| link.counters().connected);
    assert!(connected.eq(vec![1; workers]), "seed {seed}");
}

fn check_numbers(link: &mut MemifLink, expected: &mut u8, place: (u64, usize)) {
    for number in numbers(link) {
        assert_eq!(number, *expected, "seed and step: {place:?}");
        *expected = expected.wrapping_add(1);
    }
}

#[test]
fn no_frame_is_lost_or_comes_twice_while_processes_follow_each_other() {
    for seed in 0..15 {
        check_seed(seed);
    }
}

#[test]
fn a_peer_that_goes_away_while_no_process_has_the_connection_is_missed_by_the_next_one() {
    for is_master in [false, true] {
        let (device, mut end, mut peer) = connected(is_master, 2);
        assert!(send_flow(&mut peer[0], [0, 0], 4));
        drop(end.remove(0));
        drop(peer);
        end.insert(0, device.first());
        assert_eq!(numbers(&mut end[0]), [4]);
        while end.iter().any(MemifLink::is_up) {
            for link in &mut end {
                assert!(drain(link).is_empty());
            }
        }
    }
}

/// What waits for it may be what has ended it.
#[test]
fn a_process_that_is_killed_has_the_next_one_go_on_behind_what_waits() {
    for is_master in [false, true] {
        let (device, mut end, mut peer) = connected(is_master, 2);
        for link in &mut peer {
            assert!(send_flow(link, [0, 0], 6));
        }
        // Nothing of it is done in order.
        end.drain(..).for_each(core::mem::forget);
        end = device.open();
        run(&mut [&mut end], |ends| ends[0].iter().all(MemifLink::is_up));
        for number in 0..100 {
            for (link, far) in end.iter_mut().zip(&mut peer) {
                assert!(send_flow(far, [0, 0], number));
                assert_eq!(numbers(link), [number]);
                assert!(send_flow(link, [0, 0], number));
                assert_eq!(numbers(far), [number]);
            }
        }
        let mut links = end.iter().chain(&peer);
        assert!(links.all(|link| link.counters().connected == 1));
        // The one after that ends in order, and nothing is passed over.
        assert!(send_flow(&mut peer[1], [0, 0], 7));
        end.clear();
        end = device.open();
        let mut found = Vec::new();
        while !end[1].is_up() || found.is_empty() {
            assert_eq!(numbers(&mut end[0]), []);
            found = numbers(&mut end[1]);
        }
        assert_eq!(found, [7]);
    }
}

#[test]
fn a_connection_that_is_over_is_none_of_the_next_process() {
    for is_master in [false, true] {
        let (device, mut end, mut peer) = connected(is_master, 1);
        drop(peer.remove(0));
        run(&mut [&mut end], |ends| !ends[0][0].is_up());
        drop(end.remove(0));
        assert!(!device.first().is_up());
    }
}

/// As when a process is killed before it has taken over: what was left is there for the next one.
#[test]
fn what_was_left_waits_for_any_process() {
    let (device, mut end, mut peer) = connected(true, 1);
    drop(end.remove(0));
    let next = device.first();
    assert!(next.is_up());
    drop(next);
    end.insert(0, device.first());
    assert!(send_flow(&mut peer[0], [0, 0], 2));
    assert_eq!(numbers(&mut end[0]), [2]);
    assert_eq!(peer[0].counters().connected, 1);
}
