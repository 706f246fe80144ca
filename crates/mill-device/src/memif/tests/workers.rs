//! Several workers of one end, each with rings of its own, towards peers with as many workers, one, fewer rings, and bad ones.

use super::super::dispatch;
use super::super::handshake::Agreed;
use super::super::layout::Layout;
use super::super::ring::{Index, Ring};
use super::*;
use mill_sys::memory::{Pages, SharedMemory};

/// One end: its links, the one with the control channel first.
pub(super) type End = Vec<MemifLink>;

pub(super) fn with_rings(rings: u16) -> MemifOptions {
    MemifOptions {
        rings,
        ..small(64, 2048)
    }
}

/// The first link of an end, and links of so many workers in all.
pub(super) fn team(first: MemifLink, workers: u32, options: &MemifOptions) -> End {
    let mut channels = Vec::new();
    let mut others = Vec::new();
    for worker in 1..workers {
        let [ours, theirs] = dispatch::pair().unwrap();
        channels.push(ours);
        let share = Share { worker, workers };
        others.push(MemifLink::follow(theirs, share, options).unwrap());
    }
    let first = first.lead(Leader::new(None, channels)).unwrap();
    core::iter::once(first).chain(others).collect()
}

fn master(place: &Path, workers: u32, options: &MemifOptions) -> End {
    team(MemifLink::listen(place, options).unwrap(), workers, options)
}

fn slave(place: &Path, workers: u32, options: &MemifOptions) -> End {
    team(
        MemifLink::connect(place, options).unwrap(),
        workers,
        options,
    )
}

/// Lets all links run until `done`.
pub(super) fn run(ends: &mut [&mut End], mut done: impl FnMut(&[&mut End]) -> bool) {
    while !done(ends) {
        for link in ends.iter_mut().flat_map(|end| end.iter_mut()) {
            link.receive(&mut Burst::new(0));
        }
        if done(ends) {
            return;
        }
        let links = ends.iter().flat_map(|end| end.iter());
        let descriptors: Vec<_> = links.map(|link| link.as_fd()).collect();
        wait_readable(&descriptors, None).unwrap();
    }
}

pub(super) fn all_up(ends: &[&mut End]) -> bool {
    let mut links = ends.iter().flat_map(|end| end.iter());
    links.all(MemifLink::is_up)
}

/// Sends a datagram of UDP between these ports, with a number in its last byte; false if there is no room.
pub(super) fn send_flow(link: &mut MemifLink, [source, target]: [u16; 2], number: u8) -> bool {
    let Some(room) = link.reserve(60) else {
        return false;
    };
    room.fill(0);
    room[12..15].copy_from_slice(&[8, 0, 0x45]);
    room[23] = 17;
    room[34..36].copy_from_slice(&source.to_be_bytes());
    room[36..38].copy_from_slice(&target.to_be_bytes());
    room[59] = number;
    link.transmit(60, Offload::default());
    link.flush();
    true
}

/// The numbers of the datagrams that have come.
pub(super) fn numbers(link: &mut MemifLink) -> Vec<u8> {
    drain(link).iter().map(|frame| frame[59]).collect()
}

#[test]
fn workers_of_two_ends_have_rings_of_their_own_in_pairs() {
    for workers in [2, 3] {
        let options = with_rings(workers);
        let place = place();
        let mut master = master(&place, workers.into(), &options);
        let mut slave = slave(&place, workers.into(), &options);
        run(&mut [&mut master, &mut slave], all_up);
        for (from, to) in [(0, 1), (1, 0)] {
            let ends = [&mut master, &mut slave];
            for worker in 0..workers {
                // A flow of this worker's ring, and one that would be another's.
                for (number, port) in [(1, worker), (2, worker + 1)] {
                    let link = &mut ends[from][usize::from(worker)];
                    assert!(send_flow(link, [port, 0], number));
                }
            }
            for link in &mut *ends[to] {
                assert_eq!(numbers(link), [1, 2]);
            }
        }
    }
}

#[test]
fn a_single_worker_spreads_flows_over_the_workers_of_its_peer_and_gets_their_answers() {
    for is_master in [false, true] {
        let options = with_rings(2);
        let place = place();
        let (mut master, mut slave) = (
            master(&place, if is_master { 1 } else { 2 }, &options),
            slave(&place, if is_master { 2 } else { 1 }, &options),
        );
        run(&mut [&mut master, &mut slave], all_up);
        let (one, two) = match is_master {
            true => (&mut master, &mut slave),
            false => (&mut slave, &mut master),
        };
        for port in 0..8 {
            let number = u8::try_from(port).unwrap();
            assert!(send_flow(&mut one[0], [40_000 + port, 80], number));
        }
        for (worker, expected) in [(0, [0, 2, 4, 6]), (1, [1, 3, 5, 7])] {
            assert_eq!(numbers(&mut two[worker]), expected);
            for number in expected {
                let port = 40_000 + u16::from(number);
                assert!(send_flow(&mut two[worker], [80, port], number));
            }
        }
        let mut answered = numbers(&mut one[0]);
        answered.sort_unstable();
        assert_eq!(answered, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}

#[test]
fn a_worker_without_a_ring_waits_for_a_peer_with_more() {
    let options = with_rings(2);
    let place = place();
    let mut master = master(&place, 2, &options);
    let mut few = slave(&place, 1, &with_rings(1));
    run(&mut [&mut master, &mut few], |ends| {
        ends[0][0].is_up() && ends[1][0].is_up()
    });
    let few_rings = MemifChange::FewRings {
        rings: 1,
        workers: 2,
    };
    assert_eq!(master[0].take_change(), Some(few_rings));
    assert!(numbers(&mut master[1]).is_empty() && !master[1].is_up());
    // It is told that there is none for it, and what it sends waits.
    while master[1].reserve(60).is_none() {
        for link in &mut master {
            link.receive(&mut Burst::new(0));
        }
    }
    assert!(send_flow(&mut master[1], [1, 0], 9));
    drop(few);
    let mut enough = slave(&place, 2, &options);
    run(&mut [&mut master, &mut enough], |ends| {
        ends[0][1].is_up() && all_up(&ends[1..])
    });
    assert!(numbers(&mut master[1]).is_empty());
    master[1].flush();
    assert_eq!(numbers(&mut enough[1]), [9]);
}

#[test]
fn all_workers_lose_the_peer_and_get_the_next_one() {
    let options = with_rings(3);
    for is_slave in [false, true] {
        let place = place();
        let mut stays = match is_slave {
            true => slave(&place, 3, &options),
            false => master(&place, 3, &options),
        };
        for round in 1..=3 {
            let mut peer = match is_slave {
                true => master(&place, 3, &options),
                false => slave(&place, 3, &options),
            };
            run(&mut [&mut stays, &mut peer], |ends| {
                let is_new = |link: &MemifLink| link.counters().connected == round;
                ends[0].iter().all(is_new) && all_up(ends)
            });
            for worker in 0..3 {
                assert!(send_flow(&mut peer[worker], [0, 0], 7));
                assert_eq!(numbers(&mut stays[worker]), [7]);
                assert!(send_flow(&mut stays[worker], [0, 0], 8));
                assert_eq!(numbers(&mut peer[worker]), [8]);
                // It comes although the peer goes.
                assert!(send_flow(&mut peer[worker], [0, 0], 9));
            }
            drop(peer);
            let mut came = vec![Vec::new(); 3];
            run(&mut [&mut stays], |_| true);
            while stays.iter().any(MemifLink::is_up) {
                for (link, came) in stays.iter_mut().zip(&mut came) {
                    came.extend(numbers(link));
                }
            }
            assert_eq!(came, vec![vec![9]; 3]);
            for link in &mut stays {
                let mut changes = Vec::new();
                link.take_changes(&mut changes);
                assert_eq!(changes, [LinkChange::PeerGone]);
            }
        }
    }
}

/// The ring from a slave with these options to the worker with this number.
fn ring_to(worker: usize, options: &MemifOptions) -> Ring {
    let agreed = Agreed {
        s2m_rings: options.rings,
        m2s_rings: options.rings,
        log2_ring_size: 6,
        offload: false,
    };
    let layout = Layout::new(agreed, options.buffer_bytes).unwrap();
    let at = layout.s2m[worker];
    let memory = SharedMemory::create("ring", 1 << 22, Pages::Small).unwrap();
    Ring::new(&[memory], 0, at, 6).unwrap()
}

#[test]
fn a_peer_that_breaks_a_ring_of_any_worker_is_disconnected_and_the_next_one_served() {
    let options = with_rings(2);
    for broken in 0..2 {
        let place = place();
        let mut master = master(&place, 2, &options);
        for round in 1..=2 {
            let mut bad = slave(&place, 1, &options);
            run(&mut [&mut master, &mut bad], |ends| {
                let is_new = |link: &MemifLink| link.counters().connected == round;
                ends[0].iter().all(is_new) && all_up(ends)
            });
            let regions = bad[0].connection.as_ref().unwrap().regions();
            // More frames than a ring has.
            ring_to(broken, &options).publish(regions, Index::Head, 1000);
            while master.iter().any(MemifLink::is_up) {
                for link in &mut master {
                    assert!(drain(link).is_empty());
                }
            }
            let said = "the peer says: an index or a buffer outside its bounds".to_owned();
            let down = MemifChange::Down(said);
            run(&mut [&mut bad], |ends| !ends[0][0].is_up());
            let mut changes = std::iter::from_fn(|| bad[0].take_change());
            assert!(changes.any(|change| change == down));
        }
        let mut good = slave(&place, 2, &options);
        run(&mut [&mut master, &mut good], all_up);
        for worker in 0..2 {
            assert!(send_flow(&mut good[worker], [0, 0], 3));
            assert_eq!(numbers(&mut master[worker]), [3]);
        }
    }
}

#[test]
fn a_worker_that_reads_nothing_holds_up_no_other() {
    let options = with_rings(2);
    let place = place();
    let mut master = master(&place, 2, &options);
    // Many peers come and go, and the second worker notices none of them.
    for round in 1..=40 {
        let mut peer = slave(&place, 2, &options);
        while master[0].counters().connected < round || !peer[0].is_up() {
            master[0].receive(&mut Burst::new(0));
            peer[0].receive(&mut Burst::new(0));
        }
        assert!(send_flow(&mut peer[0], [0, 0], 5));
        assert_eq!(numbers(&mut master[0]), [5]);
        // Its ring is full, and that of the other is not.
        while peer[1].is_up() && send_flow(&mut peer[1], [1, 0], 6) {}
        assert!(send_flow(&mut peer[0], [0, 0], 7));
        assert_eq!(numbers(&mut master[0]), [7]);
        drop(peer);
        while master[0].is_up() {
            assert!(drain(&mut master[0]).is_empty());
        }
    }
    let mut peer = slave(&place, 2, &options);
    run(&mut [&mut master, &mut peer], all_up);
    assert!(send_flow(&mut peer[1], [1, 0], 8));
    assert_eq!(numbers(&mut master[1]), [8]);
}

#[test]
fn messages_that_are_not_understood_are_passed_over() {
    let options = with_rings(2);
    let place = place();
    let [ours, theirs] = dispatch::pair().unwrap();
    let say = |bytes: &[u8]| {
        for end in [&ours, &theirs] {
            mill_sys::passing::send(end.as_fd(), bytes, &[]).unwrap();
        }
    };
    for kind in 0..8 {
        // Too short, of another version, with numbers of no connection, and with an agreement that is none.
        say(&[1, kind]);
        say(&[2, kind, 0, 0, 0, 0, 0, 0, 0, 0]);
        say(&[1, kind, 1, 0, 0, 0, 0, 0, 0, 0]);
        say(&[1, kind, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 8, 0, 0, 5, 0, 1]);
    }
    say(&[0; 60_000]);
    let share = Share {
        worker: 1,
        workers: 2,
    };
    let other = MemifLink::follow(theirs, share, &options).unwrap();
    let first = MemifLink::listen(&place, &options).unwrap();
    let first = first.lead(Leader::new(None, vec![ours])).unwrap();
    let mut master = vec![first, other];
    let mut slave = slave(&place, 2, &options);
    run(&mut [&mut master, &mut slave], all_up);
}
