//! TAP devices in network namespaces; skipped without the privilege to make one.

use super::*;
use crate::{clock, interface, namespace, netlink};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::Duration;

/// Runs a test on a thread in a network namespace that vanishes with it.
fn in_namespace(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if namespace::leave_network().is_ok() {
                test();
            }
        });
        thread.join().unwrap();
    });
}

/// Waits until the device is gone: a process that another test starts has duplicates of all descriptors until it runs its
/// program.
fn assert_vanishes(name: &str) {
    let limit = clock::monotonic() + Duration::from_secs(10);
    while interface::index(name).is_ok() {
        assert!(clock::monotonic() < limit, "{name} stays");
        std::thread::yield_now();
    }
}

#[test]
fn a_device_has_its_name_and_vanishes_with_its_descriptor() {
    in_namespace(|| {
        let device = create("mill%d", Offload::Nothing).unwrap();
        assert_eq!(name(device.as_fd()).unwrap(), "mill0");
        let other = create("", Offload::Nothing).unwrap();
        assert_eq!(name(other.as_fd()).unwrap(), "tap0");
        let busy = create("mill0", Offload::Nothing).unwrap_err();
        assert_eq!(busy.call, "ioctl(TUNSETIFF)");
        assert_eq!(busy.error.raw_os_error(), Some(libc::EBUSY));
        drop(device);
        assert_vanishes("mill0");
        create("mill0", Offload::ChecksumAndSegmentation).unwrap();
    });
}

#[test]
fn a_device_of_several_queues_vanishes_with_the_last() {
    in_namespace(|| {
        let mut queues = create_queues("mill0", Offload::Nothing, 3).unwrap();
        assert_eq!(queues.len(), 3);
        for queue in &queues {
            assert_eq!(name(queue.as_fd()).unwrap(), "mill0");
        }
        let busy = create_queues("mill0", Offload::Nothing, 2).unwrap_err();
        assert_eq!(busy.error.raw_os_error(), Some(libc::EBUSY));
        while queues.pop().is_some() {
            if queues.is_empty() {
                assert_vanishes("mill0");
            } else {
                interface::index("mill0").unwrap();
            }
        }
    });
}

#[test]
fn a_name_that_is_too_long_or_in_use_is_refused() {
    in_namespace(|| {
        for name in ["lo", "sixteen-letters!", "a/b"] {
            assert!(create(name, Offload::Nothing).is_err(), "{name}");
        }
    });
}

/// Frames that the kernel sends by itself (router solicitations, group memberships) are skipped.
fn next_frame(device: &OwnedFd, ethertype: [u8; 2]) -> Vec<u8> {
    let mut buffer = vec![0; 70_000];
    loop {
        let len = read(device.as_fd(), &mut buffer).unwrap();
        let frame = buffer.get(VNET_HEADER_LEN..len).unwrap();
        if frame.get(12..14) == Some(&ethertype) {
            return frame.to_vec();
        }
    }
}

#[test]
fn linux_resolves_the_stacks_address_and_then_sends_the_packet() {
    in_namespace(|| {
        let device = create("mill0", Offload::ChecksumAndSegmentation).unwrap();
        interface::set_mtu("mill0", 9000).unwrap();
        let host = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
        netlink::add_address("mill0", host, 24).unwrap();
        let again = netlink::add_address("mill0", host, 24).unwrap_err();
        assert_eq!(again.raw_os_error(), Some(libc::EEXIST));
        interface::set_up("mill0").unwrap();
        let hardware = interface::hardware_address("mill0").unwrap();
        let socket = UdpSocket::bind((host, 0)).unwrap();
        socket.send_to(&[7; 8000], "10.77.0.2:9").unwrap();
        let request = next_frame(&device, [0x08, 0x06]);
        assert_eq!(request.get(22..28), Some(&hardware[..]), "sender");
        assert_eq!(request.get(38..42), Some(&[10, 77, 0, 2][..]), "target");
        let mut answer = vec![0; VNET_HEADER_LEN];
        answer.extend_from_slice(&hardware);
        answer.extend_from_slice(&OURS);
        answer.extend_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
        answer.extend_from_slice(&OURS);
        answer.extend_from_slice(&[10, 77, 0, 2]);
        answer.extend_from_slice(&hardware);
        answer.extend_from_slice(&[10, 77, 0, 1]);
        write(device.as_fd(), &answer).unwrap();
        let datagram = next_frame(&device, [0x08, 0x00]);
        assert_eq!(datagram.get(..6), Some(&OURS[..]));
        assert_eq!(datagram.len(), 14 + 20 + 8 + 8000);
        let nothing = read(device.as_fd(), &mut [0; 2000]).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    });
}

#[test]
fn ipv6_addresses_are_usable_at_once() {
    in_namespace(|| {
        let _device = create("mill0", Offload::Nothing).unwrap();
        interface::set_up("mill0").unwrap();
        let address: IpAddr = "fd00::1".parse().unwrap();
        if netlink::add_address("mill0", address, 64).is_err() {
            // A machine may have no IPv6.
            return;
        }
        UdpSocket::bind((address, 0)).expect("no duplicate address detection");
        let found = interface::addresses().unwrap();
        assert!(found.iter().any(|found| found.address == address));
    });
}

const OURS: [u8; 6] = [2, 0, 0, 0, 0, 7];
