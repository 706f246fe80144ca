//! Two ends in one process, frames between them, and what happens when one of them goes away.

use super::*;
use crate::pair::{drain, send};
use mill_stack::link::{PartialChecksum, ReceivedChecksum, Segmentation};
use mill_sys::descriptor::wait_readable;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

mod hostile;
mod succession;
mod wakeups;
mod workers;

/// An abstract socket name that no other test uses.
pub(super) fn place() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    PathBuf::from(format!("@mill-memif-{}-{number}", std::process::id()))
}

pub(super) fn small(ring_size: u16, buffer_bytes: u32) -> MemifOptions {
    MemifOptions {
        ring_size,
        buffer_bytes,
        offload: false,
        ..MemifOptions::default()
    }
}

/// Lets both ends run, waiting for each other, until `done`.
pub(super) fn until(
    links: &mut [&mut MemifLink],
    mut done: impl FnMut(&mut [&mut MemifLink]) -> bool,
) {
    while !done(links) {
        for link in &mut *links {
            link.receive(&mut Burst::new(0));
        }
        if done(links) {
            return;
        }
        let descriptors: Vec<_> = links.iter().map(|link| link.as_fd()).collect();
        wait_readable(&descriptors, None).unwrap();
    }
}

pub(super) fn are_up(links: &mut [&mut MemifLink]) -> bool {
    links.iter().all(|link| link.is_up())
}

/// A connected master and slave.
pub(super) fn ends(master: &MemifOptions, slave: &MemifOptions) -> (MemifLink, MemifLink) {
    let place = place();
    let mut master = MemifLink::listen(&place, master).unwrap();
    let mut slave = MemifLink::connect(&place, slave).unwrap();
    until(&mut [&mut master, &mut slave], are_up);
    (master, slave)
}

/// Both directions, with the sender first.
fn each_way(
    links: &mut (MemifLink, MemifLink),
    mut act: impl FnMut(&mut MemifLink, &mut MemifLink),
) {
    let (master, slave) = links;
    act(master, slave);
    act(slave, master);
}

#[test]
fn frames_of_any_length_pass_both_ways_as_they_are() {
    for options in [small(8, 16_384), small(64, 2048), small(1024, 64)] {
        let mut links = ends(&options, &options);
        each_way(&mut links, |from, to| {
            for len in [
                1, 14, 60, 63, 64, 65, 1514, 2047, 2048, 2049, 4096, 4097, 65_535,
            ] {
                let byte = u8::try_from(len % 251).unwrap();
                assert!(send(from, byte, len));
                from.flush();
                assert_eq!(drain(to), [vec![byte; len]]);
            }
            assert_eq!(from.counters().transmitted, 13);
            assert_eq!(to.counters().received, 13);
            assert_eq!(
                from.counters().transmitted_bytes,
                to.counters().received_bytes
            );
        });
    }
}

#[test]
fn nothing_is_seen_before_it_is_flushed() {
    let mut links = ends(&small(64, 2048), &small(64, 2048));
    each_way(&mut links, |from, to| {
        assert!(send(from, 1, 60));
        assert!(drain(to).is_empty());
        from.flush();
        assert_eq!(drain(to).len(), 1);
    });
}

#[test]
fn a_full_ring_has_room_again_once_the_peer_has_received_something() {
    let mut links = ends(&small(8, 2048), &small(8, 2048));
    each_way(&mut links, |from, to| {
        for round in 0..3 {
            let mut sent = 0;
            while send(from, sent, 2048) {
                sent += 1;
            }
            assert_eq!(sent, 8, "round {round}");
            assert!(from.reserve(1).is_none());
            from.flush();
            assert!(from.reserve(1).is_none());
            let frames = drain(to);
            let firsts: Vec<u8> = frames.iter().map(|frame| frame[0]).collect();
            assert_eq!(firsts, [0, 1, 2, 3, 4, 5, 6, 7]);
        }
    });
}

#[test]
fn a_chain_needs_as_many_buffers_as_there_are_left() {
    let mut links = ends(&small(8, 1024), &small(8, 1024));
    each_way(&mut links, |from, to| {
        // Five of eight are taken; three are left.
        assert!(send(from, 1, 5 * 1024));
        assert!(from.reserve(3 * 1024 + 1).is_none());
        assert!(send(from, 2, 3 * 1024));
        from.flush();
        assert_eq!(drain(to), [vec![1; 5 * 1024], vec![2; 3 * 1024]]);
        // More than all buffers together has no room ever, so it is tried and lost.
        assert!(send(from, 3, 8 * 1024 + 1));
        from.flush();
        assert!(drain(to).is_empty());
        assert_eq!(from.counters().no_room, 1);
        assert!(send(from, 4, 8 * 1024));
        from.flush();
        assert_eq!(drain(to).len(), 1);
    });
}

#[test]
fn indices_go_round_after_65536_descriptors() {
    for (ring_size, len) in [(1, 1024), (4, 3000), (64, 3000)] {
        let options = MemifOptions {
            mtu: 900,
            ..small(ring_size, 1024)
        };
        let mut links = ends(&options, &options);
        each_way(&mut links, |from, to| {
            // Three descriptors each, or one.
            let mut burst = Burst::new(64);
            for number in 0..70_000_u32 {
                let room = from.reserve(len).expect("the peer has taken everything");
                room.fill(0);
                room[..4].copy_from_slice(&number.to_ne_bytes());
                from.transmit(len, Offload::default());
                from.flush();
                to.receive(&mut burst);
                let [received] = burst.as_slice() else {
                    panic!("frame {number}");
                };
                let frame = to.frame(received.id);
                assert_eq!((frame.len(), &frame[..4]), (len, &number.to_ne_bytes()[..]));
                to.release(received.id);
                burst.clear();
            }
        });
    }
}

#[test]
fn frames_without_a_free_slot_stay_in_the_ring() {
    let mut links = ends(&small(1024, 64), &small(1024, 64));
    each_way(&mut links, |from, to| {
        for byte in 0..200 {
            assert!(send(from, byte, 60));
        }
        from.flush();
        let mut burst = Burst::new(1000);
        let share = to.properties().frames_per_turn;
        for taken in 1..20 {
            to.receive(&mut burst);
            let expected = (taken * share).min(usize::try_from(FRAMES).unwrap());
            assert_eq!(burst.as_slice().len(), expected);
        }
        for received in burst.as_slice() {
            to.release(received.id);
        }
        assert_eq!(drain(to).len(), 72);
    });
}

#[test]
fn frames_of_one_flow_stay_in_one_of_several_rings() {
    let options = MemifOptions {
        rings: 4,
        ..small(64, 2048)
    };
    let mut links = ends(&options, &options);
    each_way(&mut links, |from, to| {
        for number in 0..40_u8 {
            let room = from.reserve(60).unwrap();
            room.fill(0);
            room[12..15].copy_from_slice(&[8, 0, 0x45]);
            room[23] = 17;
            // The port says which flow it is, the last byte which frame of the flow.
            room[35] = number % 8;
            room[59] = number / 8;
            from.transmit(60, Offload::default());
        }
        from.flush();
        let mut last = [None; 8];
        let frames = drain(to);
        assert_eq!(frames.len(), 40);
        for frame in frames {
            let flow = &mut last[usize::from(frame[35])];
            assert!(flow.is_none_or(|last| last + 1 == frame[59]));
            *flow = Some(frame[59]);
        }
    });
}

#[test]
fn a_slave_makes_fewer_and_smaller_rings_where_the_master_takes_no_more() {
    let wants = MemifOptions {
        rings: 8,
        ..small(1024, 256)
    };
    let takes = MemifOptions {
        rings: 2,
        ..small(16, 2048)
    };
    let mut links = ends(&takes, &wants);
    each_way(&mut links, |from, to| {
        assert!(send(from, 1, 16 * 256));
        from.flush();
        assert_eq!(drain(to).len(), 1);
        assert!(send(from, 1, 16 * 256 + 1));
        from.flush();
        assert_eq!(drain(to).len(), 0);
    });
}

/// A TCP segment that the device is to segment and checksum.
fn segment(link: &mut MemifLink, payload: usize, mss: Option<u16>) {
    let len = 54 + payload;
    let room = link.reserve(len).unwrap();
    room.fill(0);
    room[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    let total = u16::try_from(len - 14).unwrap();
    room[16..18].copy_from_slice(&total.to_be_bytes());
    room[23] = 6;
    room[46] = 0x50;
    let offload = Offload {
        checksum: Some(PartialChecksum {
            start: 34,
            offset: 16,
        }),
        segmentation: mss.map(|mss| Segmentation {
            mss,
            header_len: 54,
            is_ipv6: false,
        }),
    };
    link.transmit(len, offload);
    link.flush();
}

fn received(link: &mut MemifLink) -> Vec<(usize, ReceivedChecksum, u16)> {
    let mut burst = Burst::new(64);
    link.receive(&mut burst);
    let mut found = Vec::new();
    for received in burst.as_slice() {
        let len = link.frame(received.id).len();
        found.push((len, received.checksum, received.merged));
        link.release(received.id);
    }
    found
}

#[test]
fn two_ends_that_agree_pass_large_segments_whole_and_without_checksums() {
    let options = MemifOptions::default();
    let mut links = ends(&options, &options);
    each_way(&mut links, |from, to| {
        assert_eq!(from.properties().segment_bytes_max, 65_535);
        assert_eq!(from.take_change(), Some(MemifChange::Up { offload: true }));
        segment(from, 10, None);
        segment(from, 65_481, Some(1460));
        let verified = ReceivedChecksum::Verified;
        let expected = [(64, verified, 1), (65_535, verified, 45)];
        assert_eq!(received(to), expected);
    });
}

#[test]
fn for_a_peer_that_does_not_agree_segments_are_cut_and_checksums_made() {
    let (ours, theirs) = (MemifOptions::default(), small(1024, 2048));
    for (master, slave) in [(&ours, &theirs), (&theirs, &ours)] {
        let (mut master, mut slave) = ends(master, slave);
        let (from, to) = if master.offload {
            (&mut master, &mut slave)
        } else {
            (&mut slave, &mut master)
        };
        segment(from, 3000, Some(1460));
        segment(from, 10, None);
        let unverified = ReceivedChecksum::Unverified;
        let lens = [1514, 1514, 134, 64];
        let expected = lens.map(|len| (len, unverified, 1));
        assert_eq!(received(to), expected);
        assert_eq!(to.properties().segment_bytes_max, 1500);
    }
}

#[test]
fn the_last_few_small_frames_wait_for_the_peer() {
    let place = place();
    let options = small(64, 2048);
    let mut master = MemifLink::listen(&place, &options).unwrap();
    for byte in 0..100 {
        assert!(send(&mut master, byte, 60));
    }
    assert!(send(&mut master, 100, 257));
    assert!(send(&mut master, 101, 256));
    master.flush();
    assert!(drain(&mut master).is_empty());
    assert_eq!(master.counters().unconnected, 102 - 16);
    let mut slave = MemifLink::connect(&place, &options).unwrap();
    until(&mut [&mut master, &mut slave], |links| {
        links[0].counters().transmitted == 16
    });
    master.flush();
    let expected: Vec<_> = (85..100).map(|byte| vec![byte; 60]).collect();
    let mut found = drain(&mut slave);
    assert_eq!(found.pop(), Some(vec![101; 256]));
    assert_eq!(found, expected);
    assert_eq!(master.counters().transmitted, 16);
}

#[test]
fn a_listener_gets_changes_of_the_peer_and_no_repetitions() {
    let place = place();
    let with = |secret: &str| MemifOptions {
        secret: secret.to_owned(),
        ..small(64, 2048)
    };
    let changes = Arc::new(Mutex::new(Vec::new()));
    let mut slave = MemifLink::connect(&place, &with("sesam")).unwrap();
    let listener = Arc::clone(&changes);
    slave.on_change(move |change| listener.lock().unwrap().push(change.clone()));
    // No master, twice; then one with another secret, twice.
    until(&mut [&mut slave], |_| changes.lock().unwrap().len() == 1);
    assert!(slave.take_change().is_some());
    until(&mut [&mut slave], |links| links[0].take_change().is_some());
    let mut master = MemifLink::listen(&place, &with("sesame")).unwrap();
    until(&mut [&mut master, &mut slave], |links| {
        links[1].counters().failed == 2
    });
    let changes = changes.lock().unwrap();
    let absent = MemifChange::Absent(io::ErrorKind::ConnectionRefused);
    assert_eq!(changes.first(), Some(&absent));
    assert!(matches!(changes.get(1), Some(MemifChange::Failed(_))));
    assert_eq!(changes.len(), 2, "{changes:?}");
}

#[test]
fn the_host_gets_one_event_for_a_peer_that_comes_and_one_when_it_goes() {
    let place = place();
    let options = small(64, 2048);
    let mut master = MemifLink::listen(&place, &options).unwrap();
    let mut slave = MemifLink::connect(&place, &options).unwrap();
    until(&mut [&mut master, &mut slave], are_up);
    let mut changes = Vec::new();
    master.take_changes(&mut changes);
    assert_eq!(changes, [LinkChange::PeerThere]);
    changes.clear();
    drop(slave);
    until(&mut [&mut master], |links| !links[0].is_up());
    master.take_changes(&mut changes);
    master.take_changes(&mut changes);
    assert_eq!(changes, [LinkChange::PeerGone]);
}

#[test]
fn a_slave_that_goes_away_may_come_back_and_what_it_sent_is_received() {
    let place = place();
    let options = small(64, 2048);
    let mut master = MemifLink::listen(&place, &options).unwrap();
    for round in 1..=3 {
        let mut slave = MemifLink::connect(&place, &options).unwrap();
        until(&mut [&mut master, &mut slave], are_up);
        for byte in 0..5 {
            assert!(send(&mut slave, byte, 60));
            assert!(send(&mut master, byte, 5000));
        }
        slave.flush();
        master.flush();
        drop(slave);
        assert_eq!(drain(&mut master).len(), 5);
        until(&mut [&mut master], |links| !links[0].is_up());
        assert_eq!(master.counters().untaken, 5 * round);
        let changes: Vec<_> = std::iter::from_fn(|| master.take_change()).collect();
        let gone = "the peer says: the interface goes away".to_owned();
        let expected = [MemifChange::Up { offload: false }, MemifChange::Down(gone)];
        assert_eq!(changes, expected);
    }
    assert_eq!(master.counters().connected, 3);
}

#[test]
fn a_slave_waits_for_its_master_and_connects_to_the_next_one() {
    let place = place();
    let options = small(64, 2048);
    let mut slave = MemifLink::connect(&place, &options).unwrap();
    for _ in 0..2 {
        // It is in its pause, or about to try.
        slave.receive(&mut Burst::new(0));
        assert!(!slave.is_up());
        let mut master = MemifLink::listen(&place, &options).unwrap();
        until(&mut [&mut master, &mut slave], are_up);
        assert!(send(&mut slave, 1, 60));
        slave.flush();
        drop(master);
        until(&mut [&mut slave], |links| !links[0].is_up());
    }
    assert_eq!(slave.counters().untaken, 2);
}

/// Lets both ends run, the first one before the second, until the first one alone has a peer.
fn until_the_first_is_up(first: &mut MemifLink, second: &mut MemifLink) {
    loop {
        first.receive(&mut Burst::new(0));
        if first.is_up() {
            return;
        }
        second.receive(&mut Burst::new(0));
        assert!(!second.is_up());
        wait_readable(&[first.as_fd(), second.as_fd()], None).unwrap();
    }
}

#[test]
fn a_master_that_leaves_as_soon_as_it_has_a_peer_is_missed_by_it() {
    let place = place();
    let options = small(64, 2048);
    let mut slave = MemifLink::connect(&place, &options).unwrap();
    let mut master = MemifLink::listen(&place, &options).unwrap();
    until_the_first_is_up(&mut master, &mut slave);
    drop(master);
    // That it is connected and that it no longer is comes to the slave in one event.
    drain(&mut slave);
    let changes: Vec<_> = std::iter::from_fn(|| slave.take_change()).collect();
    let gone = "the peer says: the interface goes away".to_owned();
    let expected = [MemifChange::Up { offload: false }, MemifChange::Down(gone)];
    assert_eq!(changes, expected);
    let mut next = MemifLink::listen(&place, &options).unwrap();
    until(&mut [&mut next, &mut slave], are_up);
}

#[test]
fn a_second_slave_is_refused_while_the_interface_is_taken() {
    let place = place();
    let options = small(64, 2048);
    let mut master = MemifLink::listen(&place, &options).unwrap();
    let mut first = MemifLink::connect(&place, &options).unwrap();
    until(&mut [&mut master, &mut first], are_up);
    let mut second = MemifLink::connect(&place, &options).unwrap();
    until(&mut [&mut master, &mut second], |links| {
        links[1].counters().failed > 0
    });
    let busy = "the peer says: the interface is connected already".to_owned();
    assert_eq!(second.take_change(), Some(MemifChange::Failed(busy)));
    assert!(send(&mut first, 1, 60));
    first.flush();
    assert_eq!(drain(&mut master).len(), 1);
    // Once the first is gone, the second gets in by itself.
    drop(first);
    until(&mut [&mut master, &mut second], are_up);
}

#[test]
fn a_slave_without_the_secret_is_refused() {
    let place = place();
    let with = |secret: &str| MemifOptions {
        secret: secret.to_owned(),
        ..small(64, 2048)
    };
    let mut master = MemifLink::listen(&place, &with("sesame")).unwrap();
    let mut wrong = MemifLink::connect(&place, &with("sesam")).unwrap();
    until(&mut [&mut master, &mut wrong], |links| {
        links[1].counters().failed > 0
    });
    assert!(!master.is_up());
    drop(wrong);
    let mut right = MemifLink::connect(&place, &with("sesame")).unwrap();
    until(&mut [&mut master, &mut right], are_up);
}

#[test]
fn a_socket_file_without_listener_is_replaced_and_another_file_is_not() {
    let file = std::env::temp_dir().join(format!("mill-memif-{}", std::process::id()));
    let options = small(64, 2048);
    for _ in 0..2 {
        let master = MemifLink::listen(&file, &options).unwrap();
        let second = MemifLink::listen(&file, &options);
        assert_eq!(second.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(master);
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "no socket").unwrap();
    assert!(MemifLink::listen(&file, &options).is_err());
    assert!(listener_when_free(&file).is_err());
    assert_eq!(std::fs::read(&file).unwrap(), b"no socket");
    std::fs::remove_file(&file).unwrap();
}

/// The process that holds the socket may be about to end.
#[test]
fn a_socket_that_becomes_free_is_taken() {
    let file = std::env::temp_dir().join(format!("mill-memif-free-{}", std::process::id()));
    let first = listener(&file).unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| listener_when_free(&file));
        // The listener was probed.
        wait_readable(&[first.as_fd()], None).unwrap();
        drop(first);
        assert!(second.join().unwrap().is_ok());
    });
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn invalid_options_make_no_link() {
    let options = small(63, 2048);
    let error = MemifLink::connect(&place(), &options).unwrap_err();
    assert!(error.to_string().contains("power of two"), "{error}");
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<MemifLink>();
};
