//! Where frames go of which the owner's host knows nothing.

use super::*;
use crate::handover::waiting_frames::COUNT_MAX as WAITING_MAX;
use crate::handover::{Aim, Asked, Message, OwnershipLock, ProcessNumber, next_message};
use mill_stack::flow::Flow;
use mill_stack::flow_directory::FlowDirectory;
use mill_stack::link::{Burst, FrameId, ReceivedChecksum, Service};
use mill_stack::memory_link::MemoryLink;
use mill_sys::descriptor;
use mill_wire::protocol::Protocol;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// The owner of a device, and another process.
fn processes() -> (Box<Owner<()>>, Endpoint) {
    let ([first, second], _) = of_one_device();
    (owner(first), second)
}

/// Two of its processes, the first of which has the lock, and a third one.
fn of_one_device() -> ([Endpoint; 2], Endpoint) {
    with_numbers([0; 3])
}

fn with_numbers(numbers: [ProcessNumber; 3]) -> ([Endpoint; 2], Endpoint) {
    let ownership = OwnershipLock::new().unwrap();
    let endpoint = |number| {
        let copy = ownership.try_map(OwnedFd::try_clone).unwrap();
        Endpoint::new(copy, number).unwrap()
    };
    let [(first, is_ours), (second, _), (third, _)] = numbers.map(endpoint);
    assert!(is_ours);
    ([first, second], third)
}

fn owner(endpoint: Endpoint) -> Box<Owner<()>> {
    Owner::new(Member::new(endpoint, Aim::Take), (), None)
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
fn a_frame_of_a_listed_flow_waits_for_a_way_as_long_as_its_process_lives() {
    let ([first, other], third) = of_one_device();
    let mut owner = owner(first);
    let listed = flow(1);
    let mut directory = other.directory();
    directory.insert(&listed);
    other.appear();
    third.appear();
    let (segment, opening) = (Stray::Segment(&listed), Stray::Opening(&listed));
    let all_are = |owner: &mut Owner<()>, expected| {
        for stray in [&segment, &opening] {
            assert_eq!(give(owner, stray, &serving()), expected);
        }
    };
    // It is about to find its way, or was stopped before the former owner ended.
    let soon = Duration::from_millis(600);
    for time in [Duration::ZERO, soon, Duration::from_secs(15)] {
        other.note_change_before(time);
        all_are(&mut owner, Delivery::NoWay);
    }
    let mut way = join(&mut owner, &other);
    all_are(&mut owner, Delivery::Done);
    owner.member.peers.publish();
    assert_eq!(come(&mut way), 2);
    // It ends, and others live or do not.
    drop(way);
    let tag = other.directory().own();
    drop(other);
    let Member {
        endpoint, peers, ..
    } = &mut owner.member;
    peers.drop_all(endpoint, &[tag]);
    assert_eq!(give(&mut owner, &segment, &serving()), Delivery::NoWay);
    assert_eq!(give(&mut owner, &opening, &serving()), Delivery::None);
    for time in [soon, Duration::from_secs(15), Duration::from_secs(16)] {
        third.note_change_before(time);
        all_are(&mut owner, Delivery::None);
    }
    drop(third);
    owner
        .member
        .endpoint
        .note_change_before(Duration::from_secs(17));
    assert!(owner.member.endpoint.is_alone());
    all_are(&mut owner, Delivery::None);
}

/// A turn without frames of others.
fn turn(owner: &mut Owner<()>) {
    owner.carry(&mut MemoryLink::ethernet(1), 2000);
}

/// Turns until frames that have waited come by a way; how many do.
fn come_later(owner: &mut Owner<()>, way: &mut PeerProcess) -> usize {
    let counts = core::iter::repeat_with(|| {
        turn(owner);
        come(way)
    });
    counts.take(1_000_000).find(|count| *count > 0).unwrap_or(0)
}

#[test]
fn a_frame_for_a_process_that_has_no_way_yet_is_given_to_it_once_it_has() {
    let ([first, second], _third) = with_numbers([1, 2, 3]);
    let mut owner = owner(first);
    let listed = flow(1);
    second.directory().insert(&listed);
    second.appear();
    second.note_change();
    let segment = Stray::Segment(&listed);
    assert_eq!(give(&mut owner, &segment, &serving()), Delivery::Done);
    turn(&mut owner);
    let mut way = join(&mut owner, &second);
    assert_eq!(come(&mut way), 0);
    assert_eq!(come_later(&mut owner, &mut way), 1);
    turn(&mut owner);
    assert_eq!(come(&mut way), 0);
}

/// A flow whose connection is on the way from this process to another one.
fn moving_from(former: &Endpoint) -> Flow {
    let moving = flow(1);
    let mut directory = former.directory();
    directory.insert(&moving);
    directory.note_moving(&moving);
    former.note_change();
    moving
}

#[test]
fn a_frame_of_a_connection_that_moves_is_given_to_the_process_that_has_it_next() {
    let ([first, second], third) = with_numbers([1, 2, 3]);
    let mut owner = owner(first);
    let moving = moving_from(&second);
    let mut ways = [join(&mut owner, &second), join(&mut owner, &third)];
    for _ in 0..WAITING_MAX + 9 {
        let segment = Stray::Segment(&moving);
        assert_eq!(give(&mut owner, &segment, &serving()), Delivery::Done);
    }
    turn(&mut owner);
    assert_eq!(ways.each_mut().map(come), [0, 0]);
    third.directory().insert(&moving);
    assert_eq!(come_later(&mut owner, &mut ways[1]), WAITING_MAX);
    assert_eq!(come(&mut ways[0]), 0);
}

/// An owner, and a frame that has come to it of a connection which moves.
fn with_frame_of_a_moving_connection() -> (Box<Owner<()>>, Endpoint, Flow) {
    let ([first, second], _third) = with_numbers([1, 2, 3]);
    let mut owner = owner(first);
    let moving = moving_from(&second);
    let segment = Stray::Segment(&moving);
    assert_eq!(give(&mut owner, &segment, &serving()), Delivery::Done);
    turn(&mut owner);
    assert!(
        owner.returned().is_empty() && owner.has_backlog(),
        "turns go on while it waits"
    );
    (owner, second, moving)
}

#[test]
fn a_frame_of_a_connection_that_has_come_to_the_owner_is_received_once_more() {
    for is_over in [false, true] {
        let (mut owner, second, moving) = with_frame_of_a_moving_connection();
        let mut directory = owner.member.endpoint.directory();
        directory.insert(&moving);
        if is_over {
            directory.remove(&moving);
        }
        let turns = core::iter::repeat_with(|| {
            turn(&mut owner);
            !owner.returned().is_empty()
        });
        assert!(turns.take(1_000_000).any(|has_come| has_come));
        let mut burst = Burst::new(8);
        owner.returned().receive(&mut burst);
        let [frame] = burst.as_slice() else {
            panic!("one frame has waited");
        };
        assert_eq!(owner.returned_copy(frame.id).unwrap(), b"frame");
        drop(second);
    }
}

#[test]
fn frames_that_wait_go_to_the_next_owner() {
    let (mut owner, second, _) = with_frame_of_a_moving_connection();
    let channel = second.send_request(RequestKind::Take, Aim::Take).unwrap();
    owner.read_requests(&Wanted::default());
    let heir = owner.accept_heir().unwrap();
    let arrived = Note::arrived(ReceivedChecksum::Verified, 1);
    assert!(owner.returned().keep(arrived, b"again", 60));
    let around = (Wanted::default(), Box::new(|_| {}) as FaultCallback);
    let _former = owner.stand_by(heir, around, |()| Origin::Device {
        open: Box::new(|| Err(io::ErrorKind::NotFound.into())),
        properties: *MemoryLink::ethernet(1).properties(),
        kind: "tap",
    });
    let Some(Message::Given { way, .. }) = next_message(&channel) else {
        panic!("another message");
    };
    let mut way = PeerProcess::joined(channel, way).unwrap();
    assert_eq!(way.relay.waiting(), Some(5));
    for expected in [b"frame", b"again"] {
        let mut bytes = [0; 5];
        let note = way.relay.take(&mut bytes).unwrap();
        assert_eq!((note.returns, &bytes), (1, expected));
    }
}

/// Another process gives the first one back, and ends before it has taken the others.
#[test]
fn frames_that_come_back_are_received_once_more() {
    let ([first, second], _third) = with_numbers([1, 2, 3]);
    let mut owner = owner(first);
    let mut way = join(&mut owner, &second);
    let arrived = Note::arrived(ReceivedChecksum::Verified, 2);
    let returned = Note {
        returns: 1,
        ..arrived
    };
    way.relay.put(&returned, b"first");
    way.relay.publish();
    let mut device = MemoryLink::ethernet(1);
    assert!(owner.carry(&mut device, 60) && owner.has_backlog());
    let tag = second.directory().own();
    for frame in [b"other", b"third"] {
        assert!(owner.member.peers.put(tag, &arrived, frame));
    }
    drop((way, second));
    owner.drop_peers(&mut device, 60, (None, &[tag]));
    assert!(device.sent.is_empty(), "none of them is another host's");
    let mut burst = Burst::new(8);
    owner.returned().receive(&mut burst);
    let frames = burst.as_slice().iter();
    let frames: Vec<Vec<u8>> = frames
        .map(|frame| {
            assert_eq!(
                (frame.checksum, frame.merged),
                (arrived.checksum, arrived.merged)
            );
            owner.returned_copy(frame.id).unwrap()
        })
        .collect();
    assert_eq!(frames, [b"first", b"other", b"third"]);
    assert!(!owner.has_backlog());
}

#[test]
fn connections_on_the_way_between_processes_are_waited_for() {
    let (mut owner, other) = processes();
    let moving = flow(1);
    let mut directory = other.directory();
    directory.insert(&moving);
    directory.note_moving(&moving);
    other.appear();
    let segment = Stray::Segment(&moving);
    for (time, expected) in [(2, Delivery::Done), (15, Delivery::None)] {
        other.note_change_before(Duration::from_secs(time));
        assert_eq!(give(&mut owner, &segment, &serving()), expected);
    }
}

#[test]
fn a_process_gets_its_way_once_the_owner_has_listed_its_flows() {
    let (mut owner, other) = processes();
    assert!(owner.flow_directory().is_none() && !owner.has_requests());
    let channel = other.send_request(RequestKind::Join, Aim::Join).unwrap();
    owner.read_requests(&serving());
    assert!(owner.has_requests() && next_message(&channel).is_none());
    assert!(
        owner.flow_directory().is_some(),
        "its host is to list them now"
    );
    owner.admit(None, &serving());
    assert!(matches!(next_message(&channel), Some(Message::Welcome(_))));
    assert!(!owner.has_requests() && owner.flow_directory().is_some());
}

#[test]
fn a_process_that_connects_before_it_serves_keeps_its_way_if_it_does_not_get_the_device() {
    for (number, is_given) in [(4, false), (6, true)] {
        let ([first, other], _) = with_numbers([5, number, 9]);
        let mut owner = owner(first);
        let way = join(&mut owner, &other);
        let asked = other.send_request(RequestKind::Take, Aim::Take).unwrap();
        owner.read_requests(&serving());
        assert_eq!(owner.take_request.is_some(), is_given);
        if !is_given {
            wait_for_end(&asked);
        }
        assert!(way.next_message().is_none(), "the way is there still");
    }
}

/// Processes that other tests start have a duplicate of the other end for a moment.
fn wait_for_end(channel: &OwnedFd) {
    let patience = Some(Duration::from_secs(5));
    descriptor::wait_readable(&[channel.as_fd()], patience).unwrap();
    assert!(matches!(next_message(channel), Some(Message::End)));
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
        owner.read_requests(&wanted);
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
