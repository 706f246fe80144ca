//! Where sockets are, and sending while packets wait for a neighbour, so that none leaves.

use super::*;
use crate::bypass::StackOptions;
use crate::file_bytes::NoFile;
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU16;
use mill_runtime::datagrams::SEGMENTS_MAX;
use mill_runtime::time::Instant;
use mill_stack::config::{HostConfig, Neighboring, Prefix, Route};
use mill_stack::host::Host;
use mill_stack::link::{Link, LinkProperties};
use mill_stack::memory_link::MemoryLink;
use mill_stack::polling::Polling;

const START: Instant = Instant::from_nanos(1_000_000_000);

fn config() -> HostConfig {
    let prefix = Prefix {
        address: IpAddr::from([10, 0, 0, 1]),
        len: 24,
    };
    HostConfig {
        routes: vec![Route::on_link(prefix)],
        ..HostConfig::new(vec![prefix], [1; 16])
    }
}

fn open(mtu: u16) -> StackDatagrams<MemoryLink, NoFile> {
    let link = MemoryLink::new(LinkProperties {
        mtu,
        ..*MemoryLink::ethernet(1).properties()
    });
    let host = Host::new(config(), link.properties(), crate::mapping::to_stack(START));
    let stack = Stack::new(host, link, (64, Polling::Interrupt), START);
    let options = DatagramOptions::new("10.0.0.1:5000".parse().unwrap());
    StackDatagrams::open(&Rc::new(RefCell::new(stack)), &options, TaskId::NONE).unwrap()
}

fn datagram(bytes: &[u8]) -> OutgoingDatagram<'_> {
    OutgoingDatagram::new(bytes, "10.0.0.2:5000".parse().unwrap())
}

#[test]
fn room_is_reported_when_the_largest_datagram_finds_it() {
    let socket = open(u16::MAX);
    let bytes = vec![7; 65_507];
    while socket.poll_send(&[datagram(&bytes)]).is_ready() {}
    let mut stack = socket.stack.borrow_mut();
    assert!(stack.host.has_room_for_udp(SEGMENTS_MAX, 0));
    stack.settle(START);
    let mut tasks = Vec::new();
    stack.report(&mut tasks);
    assert_eq!(tasks, [], "the datagram would not find room");
}

#[test]
fn a_datagram_of_which_a_segment_was_sent_is_not_sent_again() {
    let socket = open(576);
    let small = [datagram(b"small"); 256 - SEGMENTS_MAX];
    assert_eq!(socket.poll_send(&small), Poll::Ready(Ok(small.len())));
    let bytes = vec![7; SEGMENTS_MAX * 1000];
    let segmented = OutgoingDatagram {
        segment_bytes: NonZeroU16::new(1000),
        ..datagram(&bytes)
    };
    // Each segment is two packets, so that half of them find no room.
    assert_eq!(socket.poll_send(&[segmented]), Poll::Ready(Ok(1)));
    let sent = small.len() + SEGMENTS_MAX / 2;
    assert_eq!(socket.counters().sent, sent as u64);
}

#[test]
fn beside_the_kernel_a_socket_of_one_worker_is_the_kernels() {
    let check = |neighbors, local: &str, remote: Option<&str>, expected| {
        let config = HostConfig {
            neighbors,
            ..config()
        };
        let options = StackOptions::new(MemoryLink::ethernet(1), config);
        let half: StackHalf<_, NoFile> = StackHalf::new(options, START);
        let options = DatagramOptions {
            remote: remote.map(|remote| remote.parse().unwrap()),
            ..DatagramOptions::new(local.parse().unwrap())
        };
        let places = half.datagram_places(&options);
        assert_eq!(places, expected, "{neighbors:?} {local} {remote:?}");
    };
    let peer = Some("10.0.0.2:53");
    check(Neighboring::Kernel, "0.0.0.0:0", peer, (false, true));
    check(Neighboring::Kernel, "10.0.0.1:5000", peer, (false, true));
    check(Neighboring::Kernel, "10.0.0.1:0", None, (false, true));
    check(Neighboring::Kernel, "10.0.0.1:5000", None, (true, true));
    check(Neighboring::Own, "0.0.0.0:0", peer, (true, false));
    check(Neighboring::Own, "10.0.0.1:0", None, (true, false));
    check(Neighboring::Own, "0.0.0.0:0", None, (true, true));
}
