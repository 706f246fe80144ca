//! Links on both ends of a veth pair, and their faults. Each test has a network namespace of its own.

use super::*;
use mill_sys::bpf::link::Mode;
use mill_sys::memory::Pages;
use mill_sys::xsk::{Copying, XskOptions};
use wire::{End, FAR, NEAR, Steering, frame, ip, lay};

mod ending;
mod pieces;
mod sharing;
mod wire;

fn frames(count: usize, len: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| frame(number, len)).collect()
}

fn slices(frames: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    frames.iter().map(Vec::as_slice)
}

#[test]
fn frames_pass_both_ways_as_they_are() {
    if !lay(1500, "") {
        return;
    }
    let (mut near, mut far) = (End::new(NEAR, 1500), End::new(FAR, 1500));
    let frames: Vec<Vec<u8>> = (0..20)
        .map(|number| frame(number, 22 + 77 * number))
        .collect();
    near.send(slices(&frames));
    assert!(far.receive() == frames);
    far.send(slices(&frames));
    assert!(near.receive() == frames);
    let bytes: usize = frames.iter().map(Vec::len).sum();
    let bytes = bytes as u64;
    for end in [&near, &far] {
        let counters = end.link.counters();
        assert_eq!((counters.received, counters.received_bytes), (20, bytes));
        assert_eq!(
            (counters.transmitted, counters.transmitted_bytes),
            (20, bytes)
        );
        assert_eq!((counters.dropped, counters.lost), (0, 0));
        assert_eq!(end.link.statistics().unwrap().dropped, 0);
        assert!(!end.link.is_full());
    }
}

/// Before Linux 6.17 a call sends 32 frames. More frames pass than there are slots, as completions are read when slots
/// are needed.
#[test]
fn more_frames_than_a_call_takes_leave_in_one_turn() {
    if !lay(1500, "") {
        return;
    }
    let (mut near, mut far) = (End::new(NEAR, 1500), End::new(FAR, 1500));
    for count in [31, 32, 33, 64, 65, 250] {
        let frames = frames(count, 100);
        near.send(slices(&frames));
        assert!(far.receive() == frames, "{count}");
    }
    // A burst that fills more than half of the kernel's slots raises the target for longer ones.
    for (count, len) in [(300, 60), (600, 60), (1200, 60), (2000, 60)] {
        let frames = frames(count, len);
        near.send(slices(&frames));
        assert!(far.receive() == frames, "{count}");
    }
    assert!(!near.link.is_full());
}

#[test]
fn many_frames_do_not_wait_for_the_end_of_the_turn() {
    if !lay(1500, "") {
        return;
    }
    let (mut near, mut far) = (End::new(NEAR, 1500), End::new(FAR, 1500));
    let frames = frames(UNPUBLISHED_MAX as usize, 100);
    let mut transmit = |frame: &[u8]| {
        let room = near.link.reserve(frame.len()).unwrap();
        room.copy_from_slice(frame);
        near.link.transmit(frame.len(), Offload::default());
    };
    let (last, others) = frames.split_last().unwrap();
    others.iter().for_each(|frame| transmit(frame));
    assert!(far.receive().is_empty());
    transmit(last);
    assert!(far.receive() == frames);
}

/// The kernel silently sends nothing while the completion ring is full, so the ring must never be.
#[test]
fn as_many_frames_as_there_are_places_leave_again_and_again() {
    if !lay(1500, "") {
        return;
    }
    let (mut near, mut far) = (End::new(NEAR, 1500), End::new(FAR, 1500));
    let places = near.options.transmit_frames as usize;
    let mut sent = 0;
    for _ in 0..3 {
        for _ in 0..places {
            let room = near.link.reserve(64).unwrap();
            room.copy_from_slice(&frame(sent, 64));
            near.link.transmit(64, Offload::default());
            sent += 1;
        }
        near.link.flush();
        assert!(!near.link.is_full(), "all of them were sent");
    }
    let lost = near.link.counters().lost;
    let unreceived = far.link.statistics().unwrap();
    assert_eq!(unreceived.dropped, unreceived.no_place);
    let unreceived = unreceived.dropped + lost;
    let received = far.each(|_| ());
    // The far end has not polled meanwhile: it has as many frames as the kernel had slots.
    assert!(received > 0);
    assert_eq!(received as u64 + unreceived, sent as u64);
}

/// Frames are sent in order even if the far end's queue, 256 slots with veth, is full now and then; what is lost is
/// counted at one of the ends.
#[test]
fn every_frame_of_a_burst_is_received_or_counted() {
    if !lay(1500, "") {
        return;
    }
    let (mut near, mut far) = (End::new(NEAR, 1500), End::new(FAR, 1500));
    let frames = frames(2000, 1514);
    near.send(slices(&frames));
    let received = far.receive();
    let counted = far.link.statistics().unwrap();
    let lost = near.link.counters().lost + counted.dropped;
    assert_eq!(received.len() as u64 + lost, 2000);
    let mut rest = frames.iter();
    assert!(received.iter().all(|frame| rest.any(|sent| sent == frame)));
}

#[test]
fn a_queue_beyond_those_that_send_is_reported() {
    if !lay(1500, "numtxqueues 1 numrxqueues 2") {
        return;
    }
    let options = setup::xsk_options(1500, Copying::AsDriverCan);
    let steering = Steering::new(NEAR, Mode::Native);
    let near = End::with(NEAR, 1, 1500, &options, steering);
    let (sender, told) = std::sync::mpsc::channel();
    let mut link = near.link.on_trouble(move |trouble| {
        sender.send(trouble).unwrap();
    });
    for _ in 0..3 {
        link.reserve(64).unwrap();
        link.transmit(64, Offload::default());
        link.flush();
    }
    let told: Vec<XdpTrouble> = told.try_iter().collect();
    assert_eq!(told, [XdpTrouble::QueueSendsNothing]);
    assert!(link.is_full());
}

#[test]
fn a_frame_that_is_longer_than_a_place_is_dropped_and_counted() {
    if !lay(1500, "") {
        return;
    }
    // Slots for 1500 bytes; then the MTU changes.
    let mut far = End::new(FAR, 1500);
    for end in [NEAR, FAR] {
        ip(&["link", "set", end, "mtu", "3000"]);
    }
    let mut near = End::new(NEAR, 3000);
    let fits = usize::from(u16::try_from(2048 - mill_sys::xsk::HEADROOM).unwrap());
    near.send(slices(&[frame(1, fits), frame(2, fits + 1), frame(3, 60)]));
    assert!(far.receive() == [frame(1, fits), frame(3, 60)]);
    assert_eq!(far.link.statistics().unwrap().dropped, 1);
}

/// A UDP datagram of the kernel of this machine: its checksum field has the pseudo header's sum alone.
#[test]
fn a_local_peers_checksum_is_reported_as_partial() {
    if !lay(1500, "") {
        return;
    }
    let mut near = End::new(NEAR, 1500);
    ip(&["address", "add", "10.9.0.1/24", "dev", FAR]);
    let address = ["10.9.0.2", "lladdr", "02:00:00:00:00:09"];
    let mut line = vec!["neighbour", "add"];
    line.extend(address);
    line.extend(["dev", FAR]);
    ip(&line);
    let socket = std::net::UdpSocket::bind("10.9.0.1:5000").unwrap();
    socket.send_to(b"some bytes", "10.9.0.2:9").unwrap();
    let mut burst = Burst::new(8);
    let found = (0..100).find_map(|_| {
        near.link.receive(&mut burst);
        let found = burst.as_slice().iter().find_map(|received| {
            let frame = near.link.frame(received.id);
            let is_udp = frame.get(12..14) == Some(&[8, 0]) && frame.get(23) == Some(&17);
            is_udp.then(|| (received.checksum, frame.to_vec()))
        });
        for received in burst.as_slice() {
            near.link.release(received.id);
        }
        burst.clear();
        if found.is_none() {
            let _ = mill_sys::descriptor::wait_readable(
                &[near.link.as_fd()],
                Some(std::time::Duration::from_millis(100)),
            );
        }
        found
    });
    let (checksum, frame) = found.unwrap();
    assert_eq!(checksum, ReceivedChecksum::MaybePartial);
    let pseudo = [10, 9, 0, 1, 10, 9, 0, 2, 0, 17, 0, 18];
    let sum: u32 = pseudo
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let field = u16::from_be_bytes([frame[40], frame[41]]);
    assert_eq!(u32::from(field), (sum & 0xffff) + (sum >> 16));
}

#[test]
fn zero_copy_is_refused_or_reported_where_a_driver_can_not() {
    if !lay(1500, "") {
        return;
    }
    let near = End::new(NEAR, 1500);
    assert!(!near.link.is_zero_copy());
    let options = setup::xsk_options(1500, Copying::Never);
    let memory = setup::memory(&options, Pages::Huge).unwrap().memory;
    let index = mill_sys::interface::index(FAR).unwrap();
    let failed = setup::socket(index, 0, &memory, &options).unwrap_err();
    let eopnotsupp = 95;
    assert_eq!(failed.error.raw_os_error(), Some(eopnotsupp));
}

/// A macvlan interface has no driver that could run programs, and no queues but its own: it works in generic mode.
#[test]
fn a_macvlan_interface_carries_frames() {
    if !lay(1500, "") {
        return;
    }
    let line = "link add link near name child address 02:00:00:00:00:77 type macvlan mode bridge";
    ip(&line.split_whitespace().collect::<Vec<_>>());
    ip(&["link", "set", "child", "up"]);
    let options = setup::xsk_options(1500, Copying::AsDriverCan);
    let steering = Steering::new("child", Mode::Generic);
    let mut child = End::with("child", 0, 1500, &options, steering);
    let mut far = End::new(FAR, 1500);
    let mut frames = frames(40, 300);
    child.send(slices(&frames));
    assert!(far.receive() == frames);
    for frame in &mut frames {
        frame[..6].copy_from_slice(&child.link.properties().address);
    }
    far.send(slices(&frames));
    assert!(child.receive() == frames);
}

#[test]
fn sizes_follow_the_mtu() {
    let check = |mtu, frame_bytes, in_pieces| {
        let options = setup::xsk_options(mtu, Copying::AsDriverCan);
        let found = (options.frame_bytes, options.in_pieces);
        assert_eq!(found, (frame_bytes, in_pieces), "{mtu}");
        let XskOptions {
            receive_frames,
            transmit_frames,
            ..
        } = options;
        assert!(receive_frames.is_power_of_two() && transmit_frames.is_power_of_two());
    };
    check(1280, 2048, false);
    check(1500, 2048, false);
    check(1770, 2048, false);
    check(1771, 4096, false);
    check(3818, 4096, false);
    check(3819, 4096, true);
    check(9000, 4096, true);
}

#[test]
fn a_device_that_counts_in_kib_gets_slots_in_which_frames_fit() {
    for mtu in [576, 1500, 3050] {
        let options = setup::xsk_options(mtu, Copying::AsDriverCan);
        let room = setup::for_whole_kib(options).frame_bytes - mill_sys::xsk::HEADROOM;
        assert!(frame_len_max(mtu) <= (room / 1024 * 1024) as usize, "{mtu}");
    }
}

#[test]
fn memory_of_small_pages_says_why() {
    let options = setup::xsk_options(1500, Copying::AsDriverCan);
    let made = setup::memory(&options, Pages::Huge).unwrap();
    let enomem = 12;
    match &made.not_huge {
        None => assert!(made.memory.is_huge()),
        Some(error) => assert_eq!(error.raw_os_error(), Some(enomem)),
    }
    assert_eq!(made.not_huge.is_some(), !made.memory.is_huge());
}
