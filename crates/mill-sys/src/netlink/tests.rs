//! Answers of the kernel to a few requests.

use super::*;
use crate::interface;
use std::net::IpAddr;

/// RTM_GETLINK for the interface with this index: struct nlmsghdr, then struct ifinfomsg.
fn get_link(index: u32) -> Vec<u8> {
    let mut message = 32_u32.to_ne_bytes().to_vec();
    message.extend_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
    message.extend_from_slice(&1_u16.to_ne_bytes());
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(&[0; 4]);
    message.extend_from_slice(&index.to_ne_bytes());
    message.extend_from_slice(&[0; 8]);
    message
}

#[test]
fn the_kernel_answers_a_request() {
    let socket = Netlink::open().unwrap();
    socket
        .send(&get_link(interface::index("lo").unwrap()))
        .unwrap();
    let mut buffer = vec![0; 32768];
    let Received::Messages(len) = socket.receive(&mut buffer).unwrap() else {
        panic!("32 KiB are enough for an interface");
    };
    assert_eq!(
        buffer[4..6],
        libc::RTM_NEWLINK.to_ne_bytes(),
        "{:?}",
        &buffer[..len]
    );
}

#[test]
fn an_answer_longer_than_the_buffer_is_an_overrun() {
    let socket = Netlink::open().unwrap();
    socket
        .send(&get_link(interface::index("lo").unwrap()))
        .unwrap();
    assert_eq!(socket.receive(&mut [0; 20]).unwrap(), Received::Overrun);
}

#[test]
fn a_subscriber_gets_notifications_and_nothing_else() {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if let Err(error) = crate::namespace::leave_network() {
                println!("not tested, since there can be no network namespace: {error}");
                return;
            }
            let socket = Netlink::subscribe(&[Group::AddressesV4]).unwrap();
            let mut buffer = [0; 4096];
            let nothing = socket.receive(&mut buffer).unwrap_err();
            assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
            let address: IpAddr = "10.77.0.1".parse().unwrap();
            add_address("lo", address, 24).unwrap();
            let received = socket.receive(&mut buffer).unwrap();
            assert!(matches!(received, Received::Messages(1..)), "{received:?}");
            assert_eq!(buffer[4..6], libc::RTM_NEWADDR.to_ne_bytes());
        });
        thread.join().unwrap();
    });
}
