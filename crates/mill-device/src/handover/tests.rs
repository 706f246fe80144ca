//! Endpoints on threads that have descriptor tables of their own, as processes have.

use super::directory::ProcessTag;
use super::message::{GIVEN, SAID_BYTES};
use super::peers::Peers;
use super::*;
use crate::relay::Relay;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A thread that owns an endpoint and runs orders on it until [`Process::end`].
struct Process {
    orders: Sender<Order>,
    thread: JoinHandle<()>,
}

type Order = Box<dyn FnOnce(&mut Endpoint) + Send>;

impl Process {
    fn at(ownership: &OwnershipLock, number: ProcessNumber) -> Self {
        let ownership = ownership.try_map(OwnedFd::try_clone).unwrap();
        let (orders, inbox): (_, Receiver<Order>) = channel();
        let thread = std::thread::spawn(move || {
            descriptor::unshare_table().unwrap();
            let (mut endpoint, _) = Endpoint::new(ownership, number).unwrap();
            while let Ok(order) = inbox.recv() {
                order(&mut endpoint);
            }
        });
        Self { orders, thread }
    }

    fn order<T: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Endpoint) -> T + Send + 'static,
    ) -> T {
        let (done, wait) = channel();
        let order = move |endpoint: &mut Endpoint| done.send(order(endpoint)).unwrap();
        self.orders.send(Box::new(order)).unwrap();
        wait.recv().unwrap()
    }

    fn end(self) {
        drop(self.orders);
        self.thread.join().unwrap();
    }
}

/// Waits until the kernel has released what an ended thread held.
fn wait_for(mut holds: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        descriptor::wait_readable(&[], Some(Duration::from_millis(5))).unwrap();
    }
    panic!("the kernel did not release the lock");
}

#[test]
fn ownership_moves_when_the_owner_unlocks_or_ends() {
    let ownership = OwnershipLock::new().unwrap();
    let [one, two] = [Process::at(&ownership, 0), Process::at(&ownership, 0)];
    // Either thread may have been the first.
    assert!(one.order(Endpoint::lock) != two.order(Endpoint::lock));
    let (one, two) = if one.order(Endpoint::lock) {
        (one, two)
    } else {
        (two, one)
    };
    one.order(Endpoint::unlock);
    assert!(two.order(Endpoint::lock));
    assert!(!one.order(Endpoint::lock));
    two.end();
    wait_for(|| one.order(Endpoint::lock));
}

/// The next request.
fn request(owner: &Endpoint) -> Option<Request> {
    match owner.request()? {
        Asked::Request(request) => Some(request),
        Asked::Waiting(connections) => panic!("connections: {connections:?}"),
    }
}

/// Shuts a channel down, which also works while a process that another test is starting holds a duplicate.
fn end(channel: OwnedFd) {
    UnixStream::from(channel).shutdown(Shutdown::Both).unwrap();
}

#[test]
fn requests_wait_until_the_owner_reads_them() {
    let ownership = OwnershipLock::new().unwrap();
    let endpoint = || Endpoint::new(ownership.try_map(OwnedFd::try_clone).unwrap(), 0).unwrap();
    // Both share one descriptor table, which makes no difference to messages.
    let [(mut owner, is_ours), (other, _)] = [endpoint(), endpoint()];
    assert!(is_ours);
    assert!(!owner.poll().at(EventSource::Requests));
    let first = other.send_request(RequestKind::Take, Aim::Take).unwrap();
    let second = other.send_request(RequestKind::Join, Aim::Take).unwrap();
    assert!(owner.poll().at(EventSource::Requests));
    owner.unlock();
    assert!(!owner.poll().at(EventSource::Requests));
    assert!(owner.lock() && owner.poll().at(EventSource::Requests));
    let take = request(&owner).unwrap();
    assert_eq!(take.request_kind, RequestKind::Take);
    assert!(next_message(&first).is_none());
    let mut peer = give(&owner, take, 0);
    let Some(Message::Given { former, way, ways }) = next_message(&first) else {
        panic!("another message");
    };
    assert_eq!((former, ways), (owner.names(), 0));
    let mut heir = PeerProcess::joined(first, way).unwrap();
    carry(&mut peer, &mut heir, b"frame");
    let join = request(&owner).unwrap();
    assert_eq!(join.request_kind, RequestKind::Join);
    heir.send_leaving();
    assert!(matches!(peer.next_message(), Some(Message::Leaving)));
    assert!(peer.next_message().is_none());
    end(heir.channel);
    assert!(matches!(peer.next_message(), Some(Message::End)));
    end(join.channel);
    assert!(matches!(next_message(&second), Some(Message::End)));
    assert!(owner.request().is_none());
}

/// Answers TAKE.
fn give(owner: &Endpoint, request: Request, ways: u32) -> PeerProcess {
    PeerProcess::give(request, Relay::new().unwrap(), (owner.names(), ways)).unwrap()
}

/// A frame goes from one end of a way to the other one.
fn carry(from: &mut PeerProcess, to: &mut PeerProcess, frame: &[u8]) {
    assert!(from.relay.put(&crate::relay::Note::default(), frame));
    from.relay.publish();
    assert_eq!(to.relay.waiting(), Some(frame.len()));
    let mut room = vec![0; frame.len()];
    assert!(to.relay.take(&mut room).is_some());
    to.relay.release();
    assert_eq!(room, frame);
}

/// What stands by notices nothing: frames that were under way arrive, and those that follow.
#[test]
fn ways_go_to_the_next_owner_as_they_are() {
    let ownership = OwnershipLock::new().unwrap();
    let endpoint = || {
        Endpoint::new(ownership.try_map(OwnedFd::try_clone).unwrap(), 0)
            .unwrap()
            .0
    };
    let [owner, heir, other, third] = [(); 4].map(|()| endpoint());
    let mut peers = Peers::default();
    let mut ends = Vec::new();
    for standby in [&other, &third] {
        let channel = standby.send_request(RequestKind::Join, Aim::Take).unwrap();
        let join = request(&owner).unwrap();
        assert_eq!(join.identity, standby.names().1);
        let names = (join.number, join.identity);
        peers.add(&owner, names, PeerProcess::admit(join).unwrap());
        let Some(Message::Welcome(way)) = next_message(&channel) else {
            panic!("another message");
        };
        ends.push(PeerProcess::joined(channel, way).unwrap());
    }
    let tag = ProcessTag::of(other.names().1);
    let note = crate::relay::Note::default();
    assert!(peers.put(tag, &note, b"to it, not published yet"));
    ends[0].relay.put(&note, b"from it");
    ends[0].relay.publish();
    let channel = heir.send_request(RequestKind::Take, Aim::Take).unwrap();
    let take = request(&owner).unwrap();
    peers.forget(&owner, &take);
    assert_eq!((peers.len(), peers.former().is_some()), (2, true));
    let way = give(&owner, take, 2);
    peers.pass_all(&owner, way.channel());
    assert!(peers.is_empty());
    let Some(Message::Given { ways, way, .. }) = next_message(&channel) else {
        panic!("another message");
    };
    assert_eq!(ways, 2);
    let given = PeerProcess::joined(channel, way).unwrap();
    let mut passed = Peers::default();
    for _ in 0..ways {
        let Some(Message::Passed(names, way, channel)) = given.next_message() else {
            panic!("another message");
        };
        passed.add(&heir, names, PeerProcess::joined(channel, *way).unwrap());
    }
    let mut got = Vec::new();
    passed.carry(|relay, len| {
        let mut room = vec![0; len];
        assert!(relay.take(&mut room).is_some());
        got.push(room);
        true
    });
    assert_eq!(got, [b"from it"]);
    assert!(passed.put(tag, &note, b"and this"));
    passed.publish();
    let mut room = [0; 24];
    for expected in [&b"to it, not published yet"[..], b"and this"] {
        assert_eq!(ends[0].relay.waiting(), Some(expected.len()));
        ends[0].relay.take(&mut room).unwrap();
        assert_eq!(&room[..expected.len()], expected);
    }
    assert!(ends[0].next_message().is_none(), "its channel lives");
    end(ends.remove(1).channel);
    let (_, ended) = passed.read();
    assert_eq!(ended, [ProcessTag::of(third.names().1)]);
    passed.drop_all(&heir, &ended);
    assert_eq!(passed.len(), 1);
}

#[test]
fn a_request_whose_sender_is_gone_is_dropped() {
    let ownership = OwnershipLock::new().unwrap();
    let endpoint = || {
        Endpoint::new(ownership.try_map(OwnedFd::try_clone).unwrap(), 0)
            .unwrap()
            .0
    };
    let [owner, other] = [endpoint(), endpoint()];
    for request_kind in [RequestKind::Take, RequestKind::Join] {
        end(other.send_request(request_kind, Aim::Take).unwrap());
    }
    let standing = other.send_request(RequestKind::Take, Aim::Take).unwrap();
    end(other.send_request(RequestKind::Take, Aim::Take).unwrap());
    let request = request(&owner).unwrap();
    assert!(!request.is_over());
    assert!(owner.request().is_none());
    end(standing);
    assert!(request.is_over(), "it ended predecessor the answer");
}

#[test]
fn connections_that_wait_are_the_next_owners_if_this_one_ends() {
    let ownership = OwnershipLock::new().unwrap();
    let [one, two] = [Process::at(&ownership, 0), Process::at(&ownership, 0)];
    let (owner, other) = match one.order(Endpoint::lock) {
        true => (one, two),
        false => (two, one),
    };
    assert!(other.order(|other| other.send_waiting(b"first") && other.send_waiting(b"")));
    owner.end();
    wait_for(|| other.order(Endpoint::lock));
    let read = other.order(|owner| [owner.request(), owner.request(), owner.request()]);
    let [
        Some(Asked::Waiting(first)),
        Some(Asked::Waiting(second)),
        None,
    ] = read
    else {
        panic!("{read:?}");
    };
    assert_eq!((&*first, &*second), (&b"first"[..], &b""[..]));
}

#[test]
fn a_request_says_which_process_it_is_from() {
    let ownership = OwnershipLock::new().unwrap();
    let endpoint = |number| {
        let copy = ownership.try_map(OwnedFd::try_clone).unwrap();
        Endpoint::new(copy, number).unwrap().0
    };
    let owner = endpoint(5);
    for (number, is_later) in [(4, true), (5, false), (6, false), (0, true)] {
        let channel = endpoint(number).send_request(RequestKind::TakeAhead, Aim::Take);
        let request = request(&owner).unwrap();
        assert_eq!(request.request_kind, RequestKind::TakeAhead);
        assert_eq!(owner.is_later_than(&request), is_later, "{number}");
        drop(channel);
    }
}

#[test]
fn the_device_is_reserved_for_the_process_that_it_was_given_to() {
    let ownership = OwnershipLock::new().unwrap();
    let [one, two, three] = [1, 2, 3].map(|number| Process::at(&ownership, number));
    let processes = [(1, &one), (2, &two), (3, &three)];
    let found = processes
        .into_iter()
        .find(|(_, it)| it.order(Endpoint::lock));
    let (number, owner) = found.unwrap();
    let heir = number % 3 + 1;
    owner.order(move |owner| owner.unlock_for(heir));
    for (number, process) in processes {
        if number != heir {
            assert!(!process.order(Endpoint::lock), "{number}");
        }
    }
    let heir = processes.into_iter().find(|(number, _)| *number == heir);
    assert!(heir.unwrap().1.order(Endpoint::lock));
}

/// A worker may get the device and end within a moment: the next one, which had no way to it, is not kept from the device.
#[test]
fn the_reservation_ends_when_the_process_has_what_it_was_given() {
    let ownership = OwnershipLock::new().unwrap();
    let processes = [1, 2, 3].map(|number| Process::at(&ownership, number));
    let owner = processes.iter().position(|it| it.order(Endpoint::lock));
    let owner = owner.unwrap();
    let [heir, other] = [1, 2].map(|step| (owner + step) % 3);
    let number = u64::try_from(heir + 1).unwrap();
    processes[owner].order(move |owner| owner.unlock_for(number));
    let is_kept = || processes[other].order(|it| it.shared.is_reserved_from(it.identity));
    assert!(is_kept());
    assert!(processes[heir].order(Endpoint::lock));
    assert!(!is_kept());
}

/// Numbers begin as drawn identities do.
#[test]
fn processes_that_ask_for_a_part_are_seen_to_live_until_they_end() {
    let ownership = OwnershipLock::new().unwrap();
    let [one, other, idle] = [1, 2, 3].map(|number| Process::at(&ownership, number));
    let processes = [(1, &one), (2, &other), (3, &idle)];
    let found = processes
        .into_iter()
        .find(|(_, it)| it.order(Endpoint::lock));
    let (owns, owner) = found.unwrap();
    let sees = |number| owner.order(move |owner| owner.lives(ProcessTag::of(number)));
    assert!(!owner.order(|owner| owner.has_company()), "none has asked");
    let asks = owns % 3 + 1;
    let (_, asking) = processes[usize::try_from(asks - 1).unwrap()];
    // The channel is one of that thread's table, which ends with it.
    asking.order(|it| std::mem::forget(it.send_request(RequestKind::Join, Aim::Join).unwrap()));
    assert!(sees(asks) && owner.order(|owner| owner.has_company()));
    assert!(!sees(asks % 3 + 1), "it has not asked");
    assert!(asking.order(move |it| it.lives(ProcessTag::of(owns))));
    let mut ends = [one, other, idle].map(Some);
    let at = |number: u64| usize::try_from(number - 1).unwrap();
    let owner = ends[at(owns)].take().unwrap();
    ends[at(asks)].take().unwrap().end();
    wait_for(|| owner.order(|owner| !owner.has_company()));
}

#[test]
fn an_ownership_that_has_changed_is_settled_only_later() {
    let ownership = OwnershipLock::new().unwrap();
    let endpoint = || {
        Endpoint::new(ownership.try_map(OwnedFd::try_clone).unwrap(), 0)
            .unwrap()
            .0
    };
    let [one, other] = [endpoint(), endpoint()];
    assert!(one.is_settled());
    other.note_change();
    assert!(!one.is_settled() && !other.is_settled());
}

/// A datagram of the length of all messages.
fn padded(start: &[u8]) -> Vec<u8> {
    [start, &[0; SAID_BYTES][start.len()..]].concat()
}

#[test]
fn messages_of_another_version_end_the_channel() {
    let (near, far) = passing::pair().unwrap();
    for datagram in [
        &*padded(&[VERSION + 1, GIVEN]),
        &padded(&[VERSION, 77]),
        &[VERSION],
        &[VERSION, GIVEN],
        &padded(&[VERSION, GIVEN]),
    ] {
        passing::send(far.as_fd(), datagram, &[]).unwrap();
        assert!(
            matches!(next_message(&near), Some(Message::End)),
            "{datagram:?}"
        );
    }
    let ownership = OwnershipLock::new().unwrap();
    let (endpoint, is_ours) =
        Endpoint::new(ownership.try_map(OwnedFd::try_clone).unwrap(), 0).unwrap();
    assert!(is_ours);
    for datagram in [
        &[VERSION, TAKE][..],
        &padded(&[VERSION, TAKE]),
        &padded(&[VERSION, WAITING]),
        &padded(&[VERSION, 77]),
    ] {
        passing::send(ownership.request_sender.as_fd(), datagram, &[]).unwrap();
        assert!(endpoint.request().is_none());
    }
    let _channel = endpoint.send_request(RequestKind::Take, Aim::Take).unwrap();
    assert!(endpoint.request().is_some());
}
