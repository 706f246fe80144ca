//! Where frames go of which the owner's host knows nothing.

use super::*;
use crate::handover::{Aim, Asked, Message, OwnershipLock, next_message};
use mill_stack::flow::Flow;
use mill_stack::flow_directory::FlowDirectory;
use mill_stack::link::{FrameId, ReceivedChecksum, Service};
use mill_stack::memory_link::MemoryLink;
use mill_wire::protocol::Protocol;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// The owner of a device, and another process.
fn processes() -> (Box<Owner<()>>, Endpoint) {
    let ownership = OwnershipLock::new().unwrap();
    let endpoint = || Endpoint::new(ownership.try_map(OwnedFd::try_clone).unwrap()).unwrap();
    let [(owner, is_ours), (other, _)] = [endpoint(), endpoint()];
    assert!(is_ours);
    (Owner::new(Member::new(owner, Aim::Take), (), None), other)
}

/// The way of `other` to the owner, which then has one to it.
fn join(owner: &mut Owner<()>, other: &Endpoint) -> PeerProcess {
    let channel = other.send_request(RequestKind::Join, Aim::Join).unwrap();
    let Some(Asked::Request(request)) = owner.member.endpoint.request() else {
        panic!("another process asks for a way");
    };
    let names = (request.number, request.identity);
    let Member {
        endpoint, peers, ..
    } = &mut owner.member;
    peers.add(endpoint, names, PeerProcess::admit(request).unwrap());
    let Some(Message::Welcome(way)) = next_message(&channel) else {
        panic!("another message");
    };
    PeerProcess::joined(channel, way).unwrap()
}

fn flow(remote_port: u16) -> Flow {
    Flow {
        local: IpAddr::from([10, 0, 0, 1]),
        remote: IpAddr::from([10, 0, 0, 2]),
        local_port: 80,
        remote_port,
    }
}

/// What becomes of a frame.
fn give(owner: &mut Owner<()>, stray: &Stray<'_>, wanted: &Wanted) -> Delivery {
    let received = Received {
        id: FrameId(7),
        checksum: ReceivedChecksum::Verified,
        merged: 1,
    };
    owner.give_listed(&received, b"frame", (stray, wanted))
}

fn serving() -> Wanted {
    let mut wanted = Wanted::default();
    let service = Service {
        address: "0.0.0.0:80".parse().unwrap(),
        protocol: Protocol::TCP,
    };
    wanted.serve(service, true);
    wanted
}

/// The frames that have come by a way.
fn come(way: &mut PeerProcess) -> usize {
    let mut count = 0;
    way.relay.carry(|relay, len| {
        count += 1;
        relay.take(&mut vec![0; len]).is_some()
    });
    count
}

#[test]
fn a_frame_of_a_listed_flow_waits_for_a_way_while_processes_look_for_theirs() {
    let (mut owner, other) = processes();
    let listed = flow(1);
    let mut directory = other.directory();
    directory.insert(&listed);
    let (segment, opening) = (Stray::Segment(&listed), Stray::Opening(&listed));
    // The other process has ended long ago, or is about to find its way.
    for stray in [&segment, &opening] {
        assert_eq!(give(&mut owner, stray, &serving()), Delivery::None);
    }
    other.note_change();
    for stray in [&segment, &opening] {
        assert_eq!(give(&mut owner, stray, &serving()), Delivery::NoWay);
    }
    let mut way = join(&mut owner, &other);
    for stray in [&segment, &opening] {
        assert_eq!(give(&mut owner, stray, &serving()), Delivery::Done);
    }
    owner.member.peers.publish();
    assert_eq!(come(&mut way), 2);
}

#[test]
fn what_no_process_has_listed_is_the_owners_and_what_all_are_to_have_goes_to_each() {
    let (mut owner, other) = processes();
    let mut way = join(&mut owner, &other);
    let unlisted = flow(2);
    owner.member.endpoint.directory().insert(&flow(3));
    let own = flow(3);
    for stray in [Stray::Segment(&unlisted), Stray::Segment(&own)] {
        assert_eq!(give(&mut owner, &stray, &serving()), Delivery::None);
    }
    assert_eq!(give(&mut owner, &Stray::Shared, &serving()), Delivery::Done);
    owner.member.peers.publish();
    assert_eq!(come(&mut way), 1);
}

#[test]
fn new_connections_are_the_former_owners_while_this_one_leaves() {
    let (mut owner, other) = processes();
    let mut way = join(&mut owner, &other);
    let new = flow(4);
    let opening = Stray::Opening(&new);
    assert_eq!(give(&mut owner, &opening, &serving()), Delivery::None);
    let mut leaving = serving();
    let service = leaving.services[0];
    leaving.serve(service, false);
    assert_eq!(give(&mut owner, &opening, &leaving), Delivery::Done);
    // A segment of no connection is answered with a reset here.
    let segment = Stray::Segment(&new);
    assert_eq!(give(&mut owner, &segment, &leaving), Delivery::None);
    owner.member.peers.publish();
    assert_eq!(come(&mut way), 1);
}

#[test]
fn the_next_owner_is_told_that_connections_were_opened() {
    for [by_this, by_others] in [[false; 2], [true, false], [false, true]] {
        let (mut owner, other) = processes();
        let mut wanted = Wanted::default();
        wanted.opens_ports = by_this;
        owner.member.opens_ports = by_others;
        let channel = other.send_request(RequestKind::Take, Aim::Take).unwrap();
        owner.read_requests(None, &wanted);
        let heir = owner.accept_heir().unwrap();
        let origin = |()| Origin::Device {
            open: Box::new(|| Err(io::ErrorKind::NotFound.into())),
            properties: *MemoryLink::ethernet(1).properties(),
            kind: "tap",
        };
        let on_fault: FaultCallback = Box::new(|fault| panic!("{fault:?}"));
        let _former = owner.stand_by(heir, (wanted, on_fault), origin);
        let Some(Message::Given { way, .. }) = next_message(&channel) else {
            panic!("another message");
        };
        let former = PeerProcess::joined(channel, way).unwrap();
        let is_told = matches!(former.next_message(), Some(Message::OpenPorts));
        assert_eq!(is_told, by_this || by_others);
    }
}
