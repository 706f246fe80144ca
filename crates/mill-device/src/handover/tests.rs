//! Endpoints on threads whose tables of descriptors are their own, as processes' are.

use super::*;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A thread that has an endpoint and does what it is told, until it is told no more.
struct Process {
    orders: Sender<Order>,
    thread: JoinHandle<()>,
}

type Order = Box<dyn FnOnce(&mut Endpoint) + Send>;

impl Process {
    fn at(ownership: &OwnershipLock) -> Self {
        let ownership = ownership.try_map(OwnedFd::try_clone).unwrap();
        let (orders, inbox): (_, Receiver<Order>) = channel();
        let thread = std::thread::spawn(move || {
            descriptor::unshare_table().unwrap();
            let (mut endpoint, _) = Endpoint::at(ownership).unwrap();
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

/// Until the kernel has noticed that a thread is gone.
fn wait_for(mut holds: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        descriptor::wait_readable(&[], Some(Duration::from_millis(5))).unwrap();
    }
    panic!("it does not come about");
}

#[test]
fn one_has_the_device_and_the_next_gets_it_when_it_is_given_or_left() {
    let ownership = OwnershipLock::new().unwrap();
    let [one, two] = [Process::at(&ownership), Process::at(&ownership)];
    // Whoever was first.
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

/// Ends a channel, also where a process that another test is just starting has the descriptor for a moment.
fn end(channel: OwnedFd) {
    UnixStream::from(channel).shutdown(Shutdown::Both).unwrap();
}

#[test]
fn requests_wait_for_whoever_has_the_device() {
    let ownership = OwnershipLock::new().unwrap();
    let endpoint = || Endpoint::at(ownership.try_map(OwnedFd::try_clone).unwrap()).unwrap();
    // Of one table of descriptors, which makes no difference to what is said.
    let [(mut owner, is_ours), (other, _)] = [endpoint(), endpoint()];
    assert!(is_ours);
    assert!(!owner.look().at(EventSource::Requests));
    let first = other.ask(RequestKind::Take).unwrap();
    let second = other.ask(RequestKind::Join).unwrap();
    assert!(owner.look().at(EventSource::Requests));
    owner.unlock();
    assert!(!owner.look().at(EventSource::Requests));
    assert!(owner.lock() && owner.look().at(EventSource::Requests));
    let take = owner.request().unwrap();
    assert_eq!(take.request_kind, RequestKind::Take);
    assert!(next_message(&first).is_none());
    let mut behind = PeerProcess::admit(take).unwrap();
    let Some(Message::Given(far)) = next_message(&first) else {
        panic!("another message");
    };
    let mut before = PeerProcess::joined(first, far).unwrap();
    assert!(behind.relay.put(&crate::relay::Note::default(), b"frame"));
    behind.relay.publish();
    assert_eq!(before.relay.waiting(), Some(5));
    let join = owner.request().unwrap();
    assert_eq!(join.request_kind, RequestKind::Join);
    before.pass_on(&join);
    assert!(matches!(behind.next_message(), Some(Message::Join(_))));
    behind.say_leaving();
    assert!(matches!(before.next_message(), Some(Message::Leaving)));
    assert!(before.next_message().is_none());
    end(behind.channel);
    assert!(matches!(before.next_message(), Some(Message::End)));
    end(join.channel);
    assert!(matches!(next_message(&second), Some(Message::End)));
    assert!(owner.request().is_none());
}

#[test]
fn who_has_asked_and_is_gone_gets_nothing() {
    let ownership = OwnershipLock::new().unwrap();
    let endpoint = || {
        Endpoint::at(ownership.try_map(OwnedFd::try_clone).unwrap())
            .unwrap()
            .0
    };
    let [owner, other] = [endpoint(), endpoint()];
    for request_kind in [RequestKind::Take, RequestKind::Join] {
        end(other.ask(request_kind).unwrap());
    }
    let still_there = other.ask(RequestKind::Take).unwrap();
    end(other.ask(RequestKind::Take).unwrap());
    let request = owner.request().unwrap();
    assert!(!request.is_over());
    assert!(owner.request().is_none());
    end(still_there);
    assert!(request.is_over(), "before it was given");
}

#[test]
fn who_speaks_otherwise_is_not_understood() {
    let (near, far) = passing::pair().unwrap();
    for datagram in [
        &[VERSION + 1, GIVEN][..],
        &[VERSION, 77],
        &[VERSION],
        &[VERSION, GIVEN],
    ] {
        passing::send(far.as_fd(), datagram, &[]).unwrap();
        assert!(
            matches!(next_message(&near), Some(Message::End)),
            "{datagram:?}"
        );
    }
    let ownership = OwnershipLock::new().unwrap();
    let (endpoint, is_ours) = Endpoint::at(ownership.try_map(OwnedFd::try_clone).unwrap()).unwrap();
    assert!(is_ours);
    for datagram in [&[VERSION, TAKE][..], &[VERSION, 77]] {
        passing::send(ownership.asking.as_fd(), datagram, &[]).unwrap();
        assert!(endpoint.request().is_none());
    }
    let _conversation = endpoint.ask(RequestKind::Take).unwrap();
    assert!(endpoint.request().is_some());
}
