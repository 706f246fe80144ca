//! When a process that does not own the device asks for it.

use super::*;
use crate::handover::member::Member;
use crate::handover::{Aim, Asked, Endpoint, OwnershipLock, ProcessNumber, Request, RequestKind};
use crate::wanted::Wanted;
use mill_stack::flow::Flow;
use mill_stack::link::ReceivedChecksum;
use mill_stack::memory_link::MemoryLink;
use mill_wire::protocol::Protocol;
use std::net::{Ipv4Addr, SocketAddr};

/// The owner's endpoint, and a process that waits for the device.
fn waiting(aim: Aim) -> (Endpoint, StandbyLink) {
    with_numbers([0; 2], aim)
}

fn with_numbers(numbers: [ProcessNumber; 2], aim: Aim) -> (Endpoint, StandbyLink) {
    let ownership = OwnershipLock::new().unwrap();
    let endpoint = |number| {
        let copy = ownership.try_map(OwnedFd::try_clone).unwrap();
        Endpoint::new(copy, number).unwrap()
    };
    let [(owner, is_ours), (other, _)] = numbers.map(endpoint);
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

fn request(owner: &Endpoint) -> Option<Request> {
    match owner.request()? {
        Asked::Request(request) => Some(request),
        Asked::Waiting(connections) => panic!("connections: {connections:?}"),
    }
}

fn requested(owner: &Endpoint) -> Option<RequestKind> {
    request(owner).map(|request| request.request_kind)
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

/// Another worker of this process, which has its part of the device already, forwards segments of all flows that it does not have.
#[test]
fn a_segment_is_not_answered_before_the_owner_has_said_which_flows_it_has() {
    let (owner, mut link) = waiting(Aim::Take);
    let flow = Flow {
        local: Ipv4Addr::new(10, 0, 0, 1).into(),
        remote: Ipv4Addr::new(10, 0, 0, 2).into(),
        local_port: 20_000,
        remote_port: 80,
    };
    assert_eq!(link.look_up(&Stray::Segment(&flow)), Delivery::NoWay);
    link.serve(SERVICE, true);
    assert_eq!(link.look_up(&Stray::Segment(&flow)), Delivery::NoWay);
    let process = PeerProcess::admit(request(&owner).unwrap()).unwrap();
    assert_eq!(link.look_up(&Stray::Segment(&flow)), Delivery::NoWay);
    link.poll();
    assert_eq!(link.look_up(&Stray::Segment(&flow)), Delivery::None);
    assert_eq!(link.look_up(&Stray::Opening(&flow)), Delivery::None);
    drop(process);
    link.poll();
    assert_eq!(link.look_up(&Stray::Segment(&flow)), Delivery::NoWay);
}

/// The owner's answer to the next request, a way.
fn admit(owner: &Endpoint, link: &mut StandbyLink, expected: RequestKind) -> PeerProcess {
    let request = request(owner).unwrap();
    assert_eq!(request.request_kind, expected);
    let process = PeerProcess::admit(request).unwrap();
    link.poll();
    assert!(link.owner.is_some());
    process
}

#[test]
fn a_process_that_connects_first_asks_for_the_device_when_it_begins_to_serve() {
    for (aim, expected) in [(Aim::Take, Some(RequestKind::Take)), (Aim::Join, None)] {
        let (owner, mut link) = waiting(aim);
        link.open_ports();
        link.poll();
        let way = admit(&owner, &mut link, RequestKind::Join);
        link.serve(SERVICE, true);
        assert_eq!(requested(&owner), expected);
        link.serve(SERVICE, true);
        assert_eq!(requested(&owner), None);
        // The owner has refused: it has dropped the request, and this process keeps its way.
        link.poll();
        assert!(link.owner.is_some() && !link.wants_part);
        drop(way);
    }
}

#[test]
fn a_process_that_begins_to_serve_while_it_asks_for_a_way_asks_for_the_device_then() {
    let (owner, mut link) = waiting(Aim::Take);
    link.open_ports();
    link.poll();
    link.serve(SERVICE, true);
    let _way = admit(&owner, &mut link, RequestKind::Join);
    link.poll();
    assert_eq!(requested(&owner), Some(RequestKind::Take));
    link.poll();
    assert_eq!(requested(&owner), None);
}

/// A child of the former owner may have its end of the way, too.
#[test]
fn a_process_that_is_given_the_device_takes_it_although_its_way_has_not_ended() {
    let (mut owner, mut link) = waiting(Aim::Take);
    link.open_ports();
    link.poll();
    let _way = admit(&owner, &mut link, RequestKind::Join);
    link.serve(SERVICE, true);
    let take = request(&owner).unwrap();
    let identity = take.identity;
    let relay = Relay::new().unwrap();
    let _given = PeerProcess::give(take, relay, (owner.names(), 0)).unwrap();
    link.poll();
    assert!(!link.is_owner());
    owner.unlock_for(identity);
    link.poll();
    assert!(link.is_owner());
}

fn send(link: &mut StandbyLink, byte: u8) {
    link.reserve(60).unwrap().fill(byte);
    link.transmit(60, Offload::default());
    link.flush();
}

/// The first bytes of the frames that have come.
fn received(link: &mut StandbyLink) -> Vec<u8> {
    let mut burst = Burst::new(8);
    link.receive(&mut burst);
    let first = |frame: &Received| link.frame(frame.id)[0];
    burst.as_slice().iter().map(first).collect()
}

fn taken(relay: &mut Relay) -> Vec<u8> {
    let mut frames = Vec::new();
    while relay.waiting().is_some() {
        let mut frame = [0; 60];
        relay.take(&mut frame).unwrap();
        frames.push(frame[0]);
    }
    frames
}

/// A process with a way to an owner that ends with frames in both directions on the way.
fn left(aim: Aim) -> (Endpoint, StandbyLink) {
    let (owner, mut link) = waiting(aim);
    link.open_ports();
    link.poll();
    let mut way = admit(&owner, &mut link, RequestKind::Join);
    send(&mut link, 1);
    assert_eq!(taken(&mut way.relay), [1]);
    way.relay.release();
    send(&mut link, 2);
    way.relay.put(&Note::default(), &[3; 60]);
    way.relay.publish();
    (owner, link)
}

#[test]
fn frames_that_an_owner_leaves_go_on_by_the_next_one() {
    let (owner, mut link) = left(Aim::Join);
    link.poll();
    assert_eq!(received(&mut link), [3]);
    link.poll();
    let mut next = admit(&owner, &mut link, RequestKind::Join);
    send(&mut link, 4);
    assert_eq!(taken(&mut next.relay), [2, 4]);
    assert_eq!(received(&mut link), []);
}

#[test]
fn frames_that_an_owner_leaves_go_on_by_the_device_itself() {
    let (mut owner, mut link) = left(Aim::Take);
    owner.unlock();
    link.poll();
    assert!(!link.is_owner(), "what the former one has given is first");
    assert_eq!(received(&mut link), [3]);
    link.poll();
    assert!(link.is_owner());
    let parts = link.into_parts();
    let mut unsent = parts.member.unsent;
    assert_eq!(unsent.iter_mut().flat_map(taken).collect::<Vec<_>>(), [2]);
}

/// The owner had given it the frame before the directory named another process, or before the program closed its listener.
#[test]
fn a_frame_of_a_flow_that_another_process_has_by_now_goes_back() {
    let flow = |remote_port| Flow {
        local: Ipv4Addr::LOCALHOST.into(),
        remote: Ipv4Addr::LOCALHOST.into(),
        local_port: 80,
        remote_port,
    };
    let (others, unknown) = (flow(1), flow(2));
    for (numbers, expected) in [([1, 2], true), ([0, 0], false)] {
        let (owner, mut link) = with_numbers(numbers, Aim::Join);
        link.open_ports();
        link.poll();
        let mut way = admit(&owner, &mut link, RequestKind::Join);
        let arrived = Note::arrived(ReceivedChecksum::Verified, 1);
        way.relay.put(&arrived, &[7; 60]);
        way.relay.publish();
        owner.directory().insert(&others);
        let mut burst = Burst::new(8);
        link.receive(&mut burst);
        let [frame] = burst.as_slice() else {
            panic!("one frame was given");
        };
        assert!(!link.hand_over(frame, &Stray::Segment(&unknown)));
        assert!(!link.hand_over(frame, &Stray::Opening(&others)));
        assert_eq!(
            link.hand_over(frame, &Stray::Segment(&others)),
            expected,
            "{numbers:?}"
        );
        assert_eq!(link.give_back(frame), expected);
        link.flush();
        for _ in 0..if expected { 2 } else { 0 } {
            assert_eq!(way.relay.waiting(), Some(60));
            let mut bytes = [0; 60];
            let note = way.relay.take(&mut bytes).unwrap();
            let returned = Note {
                returns: 1,
                ..arrived
            };
            assert_eq!((note, bytes), (returned, [7; 60]));
        }
        assert_eq!(way.relay.waiting(), None);
    }
}

/// Its connection moves from process to process; or the owner gives it to this one again and again, as that is in the group of those that
/// listen there.
#[test]
fn a_frame_goes_back_a_limited_number_of_times() {
    let (owner, mut link) = with_numbers([1, 2], Aim::Join);
    link.open_ports();
    link.poll();
    let mut way = admit(&owner, &mut link, RequestKind::Join);
    let mut note = Note::arrived(ReceivedChecksum::Verified, 1);
    for returns in 0..=RETURNS_MAX {
        assert_eq!(note.returns, returns);
        way.relay.put(&note, &[7; 60]);
        way.relay.publish();
        let mut burst = Burst::new(8);
        link.receive(&mut burst);
        let frame = burst.as_slice()[0];
        assert_eq!(link.frame(frame.id), [7; 60]);
        assert_eq!(link.give_back(&frame), returns < RETURNS_MAX);
        link.release(frame.id);
        link.flush();
        let back = way.relay.take(&mut [0; 60]);
        assert_eq!(back.is_some(), returns < RETURNS_MAX);
        note = back.unwrap_or(note);
    }
}
