//! A link in a virtual network: what the stack sees, and what is on the device.

use super::*;
use crate::direct::DirectLink;
use crate::pair::{drain, pair, put, send, take};
use crate::vlan::Vlan;
use mill_stack::link::{PartialChecksum, Segmentation};
use mill_sys::passing;
use mill_sys::tap::VNET_HEADER_LEN;
use std::io::{Read, Seek};

const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 9];

fn frame(behind: &[u8]) -> Vec<u8> {
    [&ADDRESSES, behind, &[0x45, 1, 2, 3]].concat()
}

fn link(id: u16, recorder: Option<Recorder>) -> (AnyLink, std::os::fd::OwnedFd) {
    let (tap, far) = pair();
    let link =
        AnyLink::new(DeviceLink::Direct(DirectLink::Tap(tap)), recorder).with_vlan(Vlan::new(id));
    (link, far)
}

#[test]
fn the_device_has_tagged_frames_and_the_stack_plain_ones() {
    let file = passing::memory_file(c"pcap").unwrap();
    let recorded = file.try_clone().unwrap();
    let recorder = Recorder::to_file(recorded, Box::new(|error| panic!("{error}")));
    let (mut link, far) = link(10, Some(recorder));
    let tagged = frame(&[0x81, 0, 0, 10, 8, 0]);
    put(&far, 0, &tagged);
    assert_eq!(drain(&mut link), [frame(&[8, 0])]);
    let room = link.reserve(1514).unwrap();
    room[..18].copy_from_slice(&frame(&[8, 0]));
    link.transmit(18, Offload::default());
    assert_eq!(take(&far).unwrap()[VNET_HEADER_LEN..], tagged);
    // The capture is of the device's side.
    drain(&mut link);
    let mut bytes = Vec::new();
    let mut file = file;
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    let found = bytes.windows(tagged.len()).filter(|part| *part == tagged);
    assert_eq!(found.count(), 2);
}

#[test]
fn frames_without_the_tag_come_with_a_target_that_no_host_has() {
    let (mut link, far) = link(10, None);
    for behind in [&[8, 0][..], &[0x81, 0, 0, 11, 8, 0], &[0x81, 0, 0, 0, 8, 0]] {
        put(&far, 0, &[&frame(behind)[..], &[0; 8]].concat());
        let [frame] = &drain(&mut link)[..] else {
            panic!("one frame")
        };
        assert_eq!(frame[..6], [0; 6], "{behind:?}");
    }
    // What is too short for a tag is too short for the stack.
    put(&far, 0, &[7; 17]);
    assert_eq!(drain(&mut link), [vec![7; 13]]);
    put(&far, 0, &[7; 3]);
    assert_eq!(drain(&mut link), [vec![]]);
}

#[test]
fn what_the_device_has_to_do_is_counted_from_before_the_tag() {
    let (mut link, far) = link(10, None);
    let room = link.reserve(65_000).unwrap();
    room.fill(1);
    let offload = Offload {
        checksum: Some(PartialChecksum {
            start: 34,
            offset: 16,
        }),
        segmentation: Some(Segmentation {
            mss: 1448,
            header_len: 66,
            is_ipv6: false,
        }),
    };
    link.transmit(60_000, offload);
    let sent = take(&far).unwrap();
    assert_eq!(sent.len(), VNET_HEADER_LEN + 60_004);
    // virtio_net_hdr: header length, segment size, start of the checksum.
    let word = |at: usize| u16::from_le_bytes([sent[at], sent[at + 1]]);
    assert_eq!((word(2), word(4), word(6)), (70, 1448, 38));
}

#[test]
fn a_full_device_is_full_and_a_link_without_a_network_changes_nothing() {
    let (mut in_network, _far) = link(10, None);
    while send(&mut in_network, 1, 60_000) {}
    assert!(in_network.reserve(60).is_none());
    let (mut plain, far) = link(0, None);
    let tagged = frame(&[0x81, 0, 0, 10, 8, 0]);
    put(&far, 0, &tagged);
    assert_eq!(drain(&mut plain), [tagged]);
    assert!(send(&mut plain, 3, 60));
    assert_eq!(take(&far).unwrap()[VNET_HEADER_LEN..], [3; 60]);
}

/// Partitions and other workers of a process are told apart by the same bits of an id.
#[test]
fn without_other_workers_no_frame_is_one_that_they_have_forwarded() {
    let (link, _peer) = link(0, None);
    let of_the_last_partition = FrameId(7 << 29);
    assert!(is_handed(of_the_last_partition));
    assert!(!link.is_forwarded(of_the_last_partition));
}
