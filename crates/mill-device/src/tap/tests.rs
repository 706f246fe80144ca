//! A TAP link over a pair of sockets that preserve datagram boundaries.

use super::*;
use crate::pair::{pair, send, take};
use mill_stack::link::{PartialChecksum, ReceivedChecksum};

#[test]
fn frames_are_sent_at_once_after_their_headers() {
    let (mut link, far) = pair();
    link.reserve(60).unwrap().fill(9);
    let checksum = PartialChecksum {
        start: 34,
        offset: 16,
    };
    link.transmit(
        60,
        Offload {
            checksum: Some(checksum),
            segmentation: None,
        },
    );
    let frame = take(&far).unwrap();
    let (header, rest) = frame.split_first_chunk::<VNET_HEADER_LEN>().unwrap();
    assert_eq!(header[0], 1, "the checksum is left to the device");
    assert_eq!(u16::from_ne_bytes([header[6], header[7]]), 34);
    assert_eq!(u16::from_ne_bytes([header[8], header[9]]), 16);
    assert_eq!(rest, [9; 60]);
    assert_eq!(link.counters().transmitted, 1);
}

#[test]
fn frames_arrive_with_the_state_of_their_checksums() {
    let (mut link, far) = pair();
    let mut burst = Burst::new(4);
    link.receive(&mut burst);
    assert!(burst.as_slice().is_empty());
    let mut plain = vec![0; VNET_HEADER_LEN];
    plain.extend_from_slice(&[3; 60]);
    let mut partial = plain.clone();
    partial[0] = 1;
    for frame in [&plain, &partial] {
        tap::write(far.as_fd(), frame).unwrap();
    }
    link.receive(&mut burst);
    let known: Vec<_> = burst.as_slice().iter().map(|one| one.checksum).collect();
    assert_eq!(
        known,
        [ReceivedChecksum::Unverified, ReceivedChecksum::Verified]
    );
    for received in burst.as_slice() {
        assert_eq!(link.frame(received.id), [3; 60]);
        assert_eq!(received.merged, 1);
        link.release(received.id);
    }
    assert_eq!(link.counters().received_bytes, 120);
}

#[test]
fn a_burst_takes_no_more_than_it_has_room_for_and_no_more_than_there_is_memory() {
    let (mut link, far) = pair();
    let mut burst = Burst::new(FRAMES as usize + 10);
    let mut sent = 0;
    while burst.as_slice().len() < FRAMES as usize {
        while tap::write(far.as_fd(), &[5; 80]).is_ok() {
            sent += 1;
        }
        link.receive(&mut burst);
    }
    assert!(sent > FRAMES);
    link.receive(&mut burst);
    assert_eq!(burst.as_slice().len(), FRAMES as usize, "no memory is left");
    link.release(burst.as_slice()[0].id);
    let mut small = Burst::new(1);
    link.receive(&mut small);
    assert_eq!(small.as_slice().len(), 1);
    assert_eq!(link.frame(small.as_slice()[0].id), [5; 70]);
}

#[test]
fn frames_for_a_full_kernel_wait_in_order_until_the_device_is_full() {
    let (mut link, far) = pair();
    let mut sent = 0_u8;
    while send(&mut link, sent, 60_000) {
        sent += 1;
    }
    assert!(link.is_full());
    assert_eq!(link.counters().waited, WAITING_MAX as u64);
    let mut taken = 0;
    while let Some(frame) = take(&far) {
        assert_eq!(frame.last(), Some(&taken), "in order");
        assert_eq!(frame.len(), VNET_HEADER_LEN + 60_000);
        taken += 1;
        link.flush();
    }
    assert_eq!(taken, sent);
    assert!(!link.is_full());
    assert!(send(&mut link, 0, 60));
}

#[test]
fn a_refused_frame_is_counted_and_dropped() {
    let (mut link, far) = pair();
    drop(far);
    assert!(send(&mut link, 0, 60));
    assert_eq!((link.counters().refused, link.is_full()), (1, false));
}
