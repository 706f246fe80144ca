//! Order, capacity and the ends of a channel.

use super::*;
use crate::scripted_engine::Tasks;
use alloc::vec::Vec;

#[test]
fn values_come_out_in_the_order_in_which_they_went_in() {
    let mut tasks = Tasks::new();
    let (sender, receiver) = channel(&tasks.scheduler, 3);
    let received: Rc<RefCell<Vec<u32>>> = Rc::default();
    tasks.spawn(async move {
        for number in 0..100 {
            sender.send(number).await.unwrap();
        }
    });
    let seen = Rc::clone(&received);
    tasks.spawn(async move {
        while let Some(number) = receiver.receive().await {
            seen.borrow_mut().push(number);
        }
        seen.borrow_mut().push(u32::MAX);
    });
    tasks.turns(20);
    let expected: Vec<u32> = (0..100).chain([u32::MAX]).collect();
    assert_eq!(*received.borrow(), expected);
}

#[test]
fn a_sender_waits_where_there_is_no_room_and_others_behind_it() {
    let mut tasks = Tasks::new();
    let (sender, receiver) = channel(&tasks.scheduler, 2);
    for number in 0..4 {
        let sender = sender.clone();
        tasks.spawn(async move { sender.send(number).await.unwrap() });
    }
    tasks.turns(1);
    assert_eq!(sender.try_send(9), Err(NotSent::Full(9)));
    assert_eq!(receiver.try_receive(), Some(0));
    // The room is for the next waiter, not for a later sender.
    assert_eq!(sender.try_send(9), Err(NotSent::Full(9)));
    tasks.turns(1);
    let rest: Vec<_> = core::iter::from_fn(|| {
        let value = receiver.try_receive();
        tasks.turns(1);
        value
    })
    .collect();
    assert_eq!(rest, [1, 2, 3]);
    assert_eq!(sender.try_send(9), Ok(()));
}

#[test]
fn without_a_receiver_values_come_back() {
    let mut tasks = Tasks::new();
    let (sender, receiver) = channel(&tasks.scheduler, 1);
    let held = Rc::new(());
    sender.try_send(Rc::clone(&held)).unwrap();
    let (waiting, value) = (sender.clone(), Rc::clone(&held));
    let refused = Rc::new(Cell::new(false));
    let seen = Rc::clone(&refused);
    tasks.spawn(async move { seen.set(waiting.send(value).await.is_err()) });
    tasks.turns(1);
    drop(receiver);
    tasks.turns(1);
    assert!(refused.get());
    assert_eq!(Rc::strong_count(&held), 1, "what lay in it is dropped");
    assert!(matches!(sender.try_send(held), Err(NotSent::Closed(_))));
}

#[test]
fn a_sender_that_is_gone_leaves_the_queue() {
    let mut tasks = Tasks::new();
    let (sender, receiver) = channel(&tasks.scheduler, 1);
    sender.try_send(0).unwrap();
    let send = |number| {
        let sender = sender.clone();
        tasks.spawn(async move { sender.send(number).await.unwrap() })
    };
    let (gone, _) = (send(1), send(2));
    tasks.turns(1);
    tasks.scheduler.end(gone);
    assert_eq!(receiver.try_receive(), Some(0));
    tasks.turns(1);
    assert_eq!(receiver.try_receive(), Some(2));
}
