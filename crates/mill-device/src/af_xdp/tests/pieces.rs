//! Frames longer than a slot: several pieces in the rings, one frame above.

use super::wire::{End, FAR, NEAR, frame, lay};
use super::{frames, slices};
use mill_stack::link::{Burst, Link};

#[test]
fn long_frames_pass_whole_among_short_ones() {
    if !lay(9000, "") {
        return;
    }
    let (mut near, mut far) = (End::new(NEAR, 9000), End::new(FAR, 9000));
    let lens = [
        60, 1514, 3839, 3840, 3841, 4095, 4096, 4097, 7680, 7936, 7937, 8192, 8193, 9013, 9014,
    ];
    let mut frames: Vec<Vec<u8>> = Vec::new();
    for len in lens.into_iter().chain(lens.into_iter().rev()) {
        frames.push(frame(frames.len(), len));
    }
    for _ in 0..3 {
        near.send(slices(&frames));
        let received = far.receive();
        let found: Vec<usize> = received.iter().map(Vec::len).collect();
        let expected: Vec<usize> = frames.iter().map(Vec::len).collect();
        assert_eq!(found, expected);
        assert!(received == frames);
    }
    let counters = far.link.counters();
    assert_eq!((counters.received, counters.dropped), (90, 0));
    assert!(counters.gathered >= 3 * 2 * 10, "{counters:?}");
}

#[test]
fn all_slots_of_long_frames_can_be_used_again_and_again() {
    if !lay(9000, "") {
        return;
    }
    let (mut near, mut far) = (End::new(NEAR, 9000), End::new(FAR, 9000));
    let frames = frames(100, 9014);
    for _ in 0..30 {
        near.send(slices(&frames));
        assert!(far.receive() == frames);
    }
}

/// More long frames at once than there is room to assemble: the rest is dropped and counted, and the link keeps
/// working.
#[test]
fn long_frames_that_are_not_released_use_up_their_room_only() {
    if !lay(9000, "") {
        return;
    }
    let (mut near, mut far) = (End::new(NEAR, 9000), End::new(FAR, 9000));
    let room = usize::try_from(super::super::GATHERED).unwrap();
    let frames = frames(room + 5, 9014);
    near.send(slices(&frames));
    let mut burst = Burst::new(room + 10);
    far.link.receive(&mut burst);
    assert_eq!(burst.as_slice().len(), room);
    assert_eq!(far.link.counters().dropped, 5);
    for received in burst.as_slice() {
        far.link.release(received.id);
    }
    near.send(slices(&frames[..room]));
    assert!(far.receive() == frames[..room]);
}

#[test]
fn an_mtu_that_the_places_are_too_small_for_is_refused() {
    if !lay(1500, "") {
        return;
    }
    let mut near = End::new(NEAR, 1500);
    assert!(near.link.set_mtu(1280));
    assert_eq!(near.link.properties().mtu, 1280);
    assert!(!near.link.set_mtu(9000));
    assert_eq!(near.link.properties().mtu, 1280);
    assert!(near.link.set_mtu(1500));
}
