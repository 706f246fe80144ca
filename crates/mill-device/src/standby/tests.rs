//! When a process that does not own the device asks for it.

use super::*;
use crate::handover::member::Member;
use crate::handover::{Aim, Asked, Endpoint, OwnershipLock, RequestKind};
use crate::wanted::Wanted;
use mill_stack::memory_link::MemoryLink;
use mill_wire::protocol::Protocol;
use std::net::{Ipv4Addr, SocketAddr};

/// The owner's endpoint, and a process that waits for the device.
fn waiting(aim: Aim) -> (Endpoint, StandbyLink) {
    let ownership = OwnershipLock::new().unwrap();
    let endpoint = || Endpoint::new(ownership.try_map(OwnedFd::try_clone).unwrap()).unwrap();
    let [(owner, is_ours), (other, _)] = [endpoint(), endpoint()];
    assert!(is_ours);
    let link = StandbyLink::waiting(Parts {
        member: Member::new(other, aim),
        origin: Origin::Device {
            open: Box::new(|| Err(io::ErrorKind::NotFound.into())),
            properties: *MemoryLink::ethernet(1).properties(),
            kind: "tap",
        },
        on_fault: Box::new(|fault| panic!("{fault:?}")),
        wanted: Wanted::default(),
        has_failed: false,
    });
    (owner, link)
}

fn requested(owner: &Endpoint) -> Option<RequestKind> {
    match owner.request()? {
        Asked::Request(request) => Some(request.request_kind),
        Asked::Waiting(connections) => panic!("connections: {connections:?}"),
    }
}

const SERVICE: Service = Service {
    address: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 80),
    protocol: Protocol::TCP,
};

/// Checks what a process with this aim asks for, once, as it begins to serve and before its next turn.
fn check(aim: Aim, expected: RequestKind) {
    let (owner, mut link) = waiting(aim);
    assert_eq!(requested(&owner), None);
    link.serve(SERVICE, true);
    assert_eq!(requested(&owner), Some(expected));
    link.serve(SERVICE, true);
    assert_eq!(requested(&owner), None);
}

#[test]
fn a_process_that_begins_to_serve_asks_for_the_device_at_once() {
    check(Aim::Take, RequestKind::Take);
}

#[test]
fn a_process_that_leaves_the_device_to_others_asks_for_a_way_at_once() {
    check(Aim::Join, RequestKind::Join);
}
