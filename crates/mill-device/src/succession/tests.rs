//! Seats on threads whose tables of descriptors are their own, as processes' are.

use super::*;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A thread that sits at the chair and does what it is told, until it is told no more.
struct Process {
    orders: Sender<Order>,
    thread: JoinHandle<()>,
}

type Order = Box<dyn FnOnce(&mut Seat) + Send>;

impl Process {
    fn at(chair: &Chair) -> Self {
        let chair = chair.try_map(OwnedFd::try_clone).unwrap();
        let (orders, inbox): (_, Receiver<Order>) = channel();
        let thread = std::thread::spawn(move || {
            descriptor::unshare_table().unwrap();
            let (mut seat, _) = Seat::at(chair).unwrap();
            while let Ok(order) = inbox.recv() {
                order(&mut seat);
            }
        });
        Self { orders, thread }
    }

    fn order<T: Send + 'static>(&self, order: impl FnOnce(&mut Seat) -> T + Send + 'static) -> T {
        let (done, wait) = channel();
        let order = move |seat: &mut Seat| done.send(order(seat)).unwrap();
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
    let chair = Chair::new().unwrap();
    let [one, two] = [Process::at(&chair), Process::at(&chair)];
    // Whoever was first.
    assert!(one.order(Seat::lock) != two.order(Seat::lock));
    let (one, two) = if one.order(Seat::lock) {
        (one, two)
    } else {
        (two, one)
    };
    one.order(Seat::unlock);
    assert!(two.order(Seat::lock));
    assert!(!one.order(Seat::lock));
    two.end();
    wait_for(|| one.order(Seat::lock));
}

/// Ends a conversation, also where a process that another test is just starting has the descriptor for a moment.
fn end(conversation: OwnedFd) {
    UnixStream::from(conversation)
        .shutdown(Shutdown::Both)
        .unwrap();
}

#[test]
fn requests_wait_for_whoever_has_the_device() {
    let chair = Chair::new().unwrap();
    let seat = || Seat::at(chair.try_map(OwnedFd::try_clone).unwrap()).unwrap();
    // Of one table of descriptors, which makes no difference to what is said.
    let [(mut owner, is_ours), (other, _)] = [seat(), seat()];
    assert!(is_ours);
    assert!(!owner.look().at(Door::Requests));
    let first = other.ask(Wish::Take).unwrap();
    let second = other.ask(Wish::Join).unwrap();
    assert!(owner.look().at(Door::Requests));
    owner.unlock();
    assert!(!owner.look().at(Door::Requests));
    assert!(owner.lock() && owner.look().at(Door::Requests));
    let take = owner.request().unwrap();
    assert_eq!(take.wish, Wish::Take);
    assert!(word(&first).is_none());
    let mut behind = Neighbor::admit(take).unwrap();
    let Some(Word::Given(far)) = word(&first) else {
        panic!("another word");
    };
    let mut before = Neighbor::joined(first, far).unwrap();
    assert!(behind.relay.put(&crate::relay::Note::default(), b"frame"));
    behind.relay.publish();
    assert_eq!(before.relay.waiting(), Some(5));
    let join = owner.request().unwrap();
    assert_eq!(join.wish, Wish::Join);
    before.pass_on(&join);
    assert!(matches!(behind.word(), Some(Word::Join(_))));
    behind.say_leaving();
    assert!(matches!(before.word(), Some(Word::Leaving)));
    assert!(before.word().is_none());
    end(behind.conversation);
    assert!(matches!(before.word(), Some(Word::End)));
    end(join.conversation);
    assert!(matches!(word(&second), Some(Word::End)));
    assert!(owner.request().is_none());
}

#[test]
fn who_has_asked_and_is_gone_gets_nothing() {
    let chair = Chair::new().unwrap();
    let seat = || {
        Seat::at(chair.try_map(OwnedFd::try_clone).unwrap())
            .unwrap()
            .0
    };
    let [owner, other] = [seat(), seat()];
    for wish in [Wish::Take, Wish::Join] {
        end(other.ask(wish).unwrap());
    }
    let still_there = other.ask(Wish::Take).unwrap();
    end(other.ask(Wish::Take).unwrap());
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
        assert!(matches!(word(&near), Some(Word::End)), "{datagram:?}");
    }
    let chair = Chair::new().unwrap();
    let (seat, is_ours) = Seat::at(chair.try_map(OwnedFd::try_clone).unwrap()).unwrap();
    assert!(is_ours);
    for datagram in [&[VERSION, TAKE][..], &[VERSION, 77]] {
        passing::send(chair.asking.as_fd(), datagram, &[]).unwrap();
        assert!(seat.request().is_none());
    }
    let _conversation = seat.ask(Wish::Take).unwrap();
    assert!(seat.request().is_some());
}
