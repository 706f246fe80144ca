//! Requests and answers, and what happens when one side is dropped.

use super::*;
use crate::scripted_engine::Tasks;
use core::cell::Cell;
use core::task::Waker;

#[test]
fn an_answer_reaches_the_task_that_waits_in_the_same_turn() {
    let mut tasks = Tasks::new();
    let pool = OneshotPool::new(&tasks.scheduler);
    let (sender, receiver) = pool.oneshot();
    let answer = Rc::new(Cell::new(None));
    let seen = Rc::clone(&answer);
    tasks.spawn(async move { seen.set(Some(receiver.await)) });
    tasks.turns(1);
    assert_eq!(answer.get(), None);
    tasks.spawn(async move { sender.send(42).unwrap() });
    tasks.turns(1);
    assert_eq!(answer.get(), Some(Ok(42)));
}

#[test]
fn a_receiver_learns_that_the_sender_is_gone() {
    let mut tasks = Tasks::new();
    let pool = OneshotPool::<u8>::new(&tasks.scheduler);
    let (sender, receiver) = pool.oneshot();
    let answer = Rc::new(Cell::new(None));
    let seen = Rc::clone(&answer);
    tasks.spawn(async move { seen.set(Some(receiver.await)) });
    tasks.turns(1);
    drop(sender);
    tasks.turns(1);
    assert_eq!(answer.get(), Some(Err(Unanswered)));
}

#[test]
fn an_answer_without_receiver_comes_back() {
    let tasks = Tasks::new();
    let pool = OneshotPool::new(&tasks.scheduler);
    let (sender, receiver) = pool.oneshot();
    drop(receiver);
    assert_eq!(sender.send("late"), Err("late"));
    // An answer that was sent and not taken is dropped with its receiver.
    let held = Rc::new(());
    let pool = OneshotPool::new(&tasks.scheduler);
    let (sender, receiver) = pool.oneshot();
    sender.send(Rc::clone(&held)).unwrap();
    drop(receiver);
    assert_eq!(Rc::strong_count(&held), 1);
}

#[test]
fn slots_are_used_again_when_both_sides_are_gone() {
    let tasks = Tasks::new();
    let pool = OneshotPool::new(&tasks.scheduler);
    let mut context = Context::from_waker(Waker::noop());
    for round in 0..100 {
        let (one, mut other) = (pool.oneshot(), pool.oneshot());
        drop(one.0);
        other.0.send(round).unwrap();
        assert_eq!(
            Pin::new(&mut other.1).poll(&mut context),
            Poll::Ready(Ok(round))
        );
    }
    assert_eq!(pool.places_made(), 2);
}
