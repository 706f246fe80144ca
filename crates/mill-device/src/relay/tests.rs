//! Both ends in one process, which makes no difference to them.

use super::*;
use mill_sys::descriptor;
use mill_sys::memory::Pages;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn ends() -> (Relay, Relay) {
    let (near, far) = Relay::new().unwrap();
    (near, Relay::join(far).unwrap())
}

fn note(number: u16) -> Note {
    Note::arrived(ReceivedChecksum::MaybePartial, number)
}

fn take(relay: &mut Relay) -> Option<(Note, Vec<u8>)> {
    let len = relay.waiting()?;
    let mut frame = vec![0; len];
    Some((relay.take(&mut frame)?, frame))
}

fn is_woken(relay: &Relay) -> bool {
    descriptor::wait_readable(&[relay.doorbell_fd()], Some(Duration::ZERO)).unwrap()[0]
}

#[test]
fn what_the_other_end_has_not_taken_comes_back() {
    let (mut near, mut far) = ends();
    for number in 1..=3 {
        assert!(near.put(&note(number), &[u8::try_from(number).unwrap(); 70]));
    }
    near.publish();
    assert_eq!(take(&mut far).unwrap().1, [1; 70]);
    far.release();
    // One that is taken and not given back counts as not taken.
    assert_eq!(take(&mut far).unwrap().1, [2; 70]);
    drop(far);
    // Nor was this one published.
    assert!(near.put(&note(4), &[4; 70]));
    let mut back = near.turned_back().unwrap();
    for number in 2..=4 {
        let (note_of, frame) = take(&mut back).unwrap();
        assert_eq!(note_of, note(number));
        assert_eq!(frame, [u8::try_from(number).unwrap(); 70]);
    }
    assert_eq!(take(&mut back), None);
}

#[test]
fn frames_arrive_whole_and_in_order_in_both_directions() {
    let (mut from, mut to) = ends();
    let frame = |number: u16| -> Vec<u8> {
        let number = u32::from(number);
        let bytes = (0..=number % 250 * 37).map(|at| (at * 7 + number) % 251);
        bytes.map(|byte| u8::try_from(byte).unwrap()).collect()
    };
    for _ in 0..2 {
        // Several times around the ring, with a few frames in it and with many.
        let mut taken = 0;
        for number in 0..3000 {
            assert!(from.put(&note(number + 1), &frame(number)));
            from.publish();
            if number % 7 == 0 || number % 500 > 300 {
                while let Some((note_of, bytes)) = take(&mut to) {
                    assert_eq!(note_of, note(taken + 1));
                    assert!(bytes == frame(taken), "{taken}");
                    taken += 1;
                }
                to.release();
            }
        }
        assert_eq!(taken, 3000);
        let (sent, got) = (from.counters(), to.counters());
        assert_eq!((sent.transmitted, got.received), (3000, 3000));
        assert!(got.received_bytes > 0 && got.received_bytes == sent.transmitted_bytes);
        from.counters = RelayCounters::default();
        to.counters = RelayCounters::default();
        std::mem::swap(&mut from, &mut to);
    }
}

#[test]
fn nothing_is_seen_before_it_is_published() {
    let (mut near, mut far) = ends();
    assert!(near.put(&note(1), b"frame"));
    assert_eq!(take(&mut far), None);
    near.publish();
    assert_eq!(take(&mut far), Some((note(1), b"frame".to_vec())));
    assert_eq!(take(&mut far), None);
}

#[test]
fn a_full_ring_takes_no_more_until_there_is_room() {
    let (mut near, mut far) = ends();
    let frame = [7; 1500];
    let mut count = 0;
    while near.has_room(frame.len()) {
        assert!(near.put(&note(1), &frame));
        count += 1;
    }
    // 4 bytes of length, 12 of the note.
    assert_eq!(count, RING_BYTES / 1520);
    assert!(!near.put(&note(1), &frame));
    assert_eq!(near.counters().lost, 1);
    near.publish();
    assert!(take(&mut far).is_some());
    assert!(!near.has_room(frame.len()), "its room was not given back");
    far.release();
    assert!(near.put(&note(1), &frame));
    assert!(!near.has_room(frame.len()));
    assert!(!near.has_room(usize::MAX / 2) && !near.has_room(1 << 17));
}

#[test]
fn the_doorbell_rings_only_for_an_end_that_has_taken_all_frames() {
    let (mut near, far) = ends();
    assert!(!is_woken(&far));
    near.publish();
    assert!(!is_woken(&far), "there is nothing");
    near.put(&note(1), b"a");
    near.publish();
    assert!(is_woken(&far) && !is_woken(&near));
    far.ring_own_doorbell();
    near.ring_own_doorbell();
    assert!(is_woken(&near));
}

#[test]
fn an_empty_frame_is_skipped() {
    let (mut near, mut far) = ends();
    for frame in [&b""[..], b"", b"a", b"", b"b"] {
        assert!(near.put(&note(1), frame));
    }
    near.publish();
    assert_eq!(take(&mut far), Some((note(1), b"a".to_vec())));
    assert_eq!(take(&mut far), Some((note(1), b"b".to_vec())));
    assert_eq!(take(&mut far), None);
}

#[test]
fn release_reports_frames_that_arrived_without_a_ring_of_the_doorbell() {
    let (mut near, mut far) = ends();
    assert!(!far.release());
    near.put(&note(1), b"a");
    near.publish();
    assert!(take(&mut far).is_some());
    assert_eq!(far.waiting(), None);
    assert!(is_woken(&far));
    near.put(&note(1), b"b");
    near.publish();
    assert!(far.release(), "nothing else reports it");
    assert!(take(&mut far).is_some());
    assert!(!far.release());
}

#[test]
fn frames_that_cannot_be_passed_on_stay_and_ring_no_doorbell() {
    let (mut near, mut far) = ends();
    near.put(&note(1), b"a");
    // As if the doorbell had been rung for it.
    near.outgoing.publish(&near.memory);
    let mut rooms = 0;
    for _ in 0..3 {
        let has_backlog = far.carry(|_, len| {
            rooms += len;
            false
        });
        assert!(has_backlog);
    }
    assert_eq!(rooms, 3);
    assert!(!is_woken(&far));
    let has_backlog = far.carry(|relay, len| relay.take(&mut vec![0; len]).is_some());
    assert!(!has_backlog && !is_woken(&far));
    assert_eq!(far.waiting(), None);
}

#[test]
fn invalid_contents_break_the_ring() {
    let check = |put: u32, len: u32, is_broken: bool| {
        let (near, far) = Relay::new().unwrap();
        let mut far = Relay::join(far).unwrap();
        let memory = near.memory;
        memory
            .write(MAKER_TO_PEER.bytes_at, &len.to_ne_bytes())
            .unwrap();
        let index = memory.atomic_u32(MAKER_TO_PEER.put_at).unwrap();
        index.store(put, Ordering::Release);
        for _ in 0..3 {
            assert_eq!(take(&mut far), None, "{put} {len}");
        }
        assert_eq!(far.is_broken(), is_broken, "{put} {len}");
    };
    check(0, 0, false);
    // A note without a frame is skipped; a record shorter than a note is invalid.
    check(16, 12, false);
    check(16, 11, true);
    check(8, 4, true);
    check(8, 5, true);
    check(8, 0, true);
    check(RING_BYTES + 8, 4, true);
    check(u32::MAX, 4, true);
    check(RING_BYTES, u32::MAX, true);
    check(RING_BYTES, 1 << 20, true);
}

#[test]
fn memory_that_is_too_small_is_refused() {
    let small = SharedMemory::create("small", MEMORY_BYTES - 4096, Pages::Small).unwrap();
    let far = FarEnd {
        memory: small.as_fd().try_clone_to_owned().unwrap(),
        doorbells: [eventfd::create().unwrap(), eventfd::create().unwrap()],
    };
    assert!(Relay::join(far).is_err());
}

/// Both ends in turn, in the midst of what is under way.
#[test]
fn another_process_goes_on_with_an_end_where_the_former_one_has_left_it() {
    let (mut near, far) = Relay::new().unwrap();
    let mut far = Relay::join(far).unwrap();
    for round in 0..3 {
        let note = Note::default();
        assert!(near.put(&note, b"there"));
        assert!(far.put(&note, b"back") && far.put(&note, b"again"));
        far.publish();
        assert_eq!(take(&mut near).unwrap().1, b"back");
        let (end, is_makers_end) = near.leave().unwrap();
        assert!(is_makers_end);
        near = Relay::resume(end, is_makers_end).unwrap();
        let (end, is_makers_end) = far.leave().unwrap();
        assert!(!is_makers_end);
        far = Relay::resume(end, is_makers_end).unwrap();
        assert_eq!(take(&mut far).unwrap().1, b"there", "{round}");
        assert_eq!(take(&mut near).unwrap().1, b"again", "{round}");
        assert!(take(&mut near).is_none() && take(&mut far).is_none());
    }
}

#[test]
fn an_end_whose_indices_are_impossible_is_refused() {
    let (near, far) = Relay::new().unwrap();
    let index = near.memory.atomic_u32(MAKER_TO_PEER.put_at).unwrap();
    index.store(RING_BYTES + 8, Ordering::Release);
    assert!(Relay::join(far).is_err());
}
