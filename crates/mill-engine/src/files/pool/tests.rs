//! Calls, threads, and what is reported to a worker.

use super::*;
use mill_runtime::time::{Instant, UnixTime};
use mill_sys::descriptor;
use std::sync::mpsc::{self, Receiver, Sender};
use std::task::Waker;

fn pool(threads_max: usize, queue_max: usize) -> (Pool, Rc<Scheduler>) {
    let limits = PoolLimits {
        threads_max,
        queue_max,
    };
    let scheduler = Scheduler::new(Instant::from_nanos(0), UnixTime::default());
    (Pool::new(limits).unwrap(), scheduler)
}

/// A call that reports its start, and ends when the test allows it.
fn held() -> (impl FnOnce() + Send + 'static, Receiver<()>, Sender<()>) {
    let (has_begun, begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel();
    let call = move || {
        has_begun.send(()).unwrap();
        // The test may have ended.
        let _ = may_end.recv();
    };
    (call, begun, end)
}

fn poll<T>(answer: &mut Answer<T>) -> Poll<T> {
    Pin::new(answer).poll(&mut Context::from_waker(Waker::noop()))
}

/// Waits as a worker does until the pool reports completed calls.
fn collect(pool: &Pool) -> Vec<TaskId> {
    descriptor::wait_readable(&[pool.signal()], None).unwrap();
    let mut tasks = Vec::new();
    pool.collect(&mut tasks);
    tasks
}

#[test]
fn the_task_that_polled_last_is_told_and_finds_the_result() {
    let (pool, scheduler) = pool(1, 1);
    let mut answer = pool.submit(&scheduler, || 7).ok().unwrap();
    assert_eq!(collect(&pool), [scheduler.current()]);
    assert_eq!(poll(&mut answer), Poll::Ready(7));
}

#[test]
fn a_call_that_waits_for_a_thread_is_done_when_one_is_free() {
    let (pool, scheduler) = pool(1, 1);
    let (call, begun, end) = held();
    let mut first = pool.submit(&scheduler, call).ok().unwrap();
    begun.recv().unwrap();
    let mut second = pool.submit(&scheduler, || 2).ok().unwrap();
    assert_eq!(poll(&mut first), Poll::Pending);
    assert_eq!(poll(&mut second), Poll::Pending);
    assert_eq!(pool.threads.get(), 1);
    end.send(()).unwrap();
    let mut told = 0;
    while told < 2 {
        told += collect(&pool).len();
    }
    assert_eq!(poll(&mut first), Poll::Ready(()));
    assert_eq!(poll(&mut second), Poll::Ready(2));
}

#[test]
fn threads_are_started_as_they_are_needed_up_to_their_number() {
    let (pool, scheduler) = pool(2, 9);
    let calls: Vec<_> = (0..3).map(|_| held()).collect();
    let mut ends = Vec::new();
    let mut answers = Vec::new();
    for (number, (call, begun, end)) in calls.into_iter().enumerate() {
        answers.push(pool.submit(&scheduler, call).ok().unwrap());
        if number < 2 {
            begun.recv().unwrap();
        }
        assert_eq!(pool.threads.get(), (number + 1).min(2));
        ends.push(end);
    }
}

#[test]
fn a_call_is_refused_while_as_many_wait_as_may() {
    let (pool, scheduler) = pool(1, 2);
    let (call, begun, _end) = held();
    let _first = pool.submit(&scheduler, call).ok().unwrap();
    begun.recv().unwrap();
    let _second = pool.submit(&scheduler, || ()).ok().unwrap();
    let _third = pool.submit(&scheduler, || ()).ok().unwrap();
    assert!(pool.submit(&scheduler, || ()).is_err());
}

#[test]
fn calls_for_which_threads_are_free_need_no_place_in_the_queue() {
    let (pool, scheduler) = pool(2, 0);
    let (first, _first_begun, _end_first) = held();
    let (second, _second_begun, _end_second) = held();
    let _first = pool.submit(&scheduler, first).ok().unwrap();
    // The first thread may not have begun yet.
    let _second = pool.submit(&scheduler, second).ok().unwrap();
    assert!(pool.submit(&scheduler, || ()).is_err());
}

#[test]
fn without_a_queue_a_thread_that_is_done_takes_the_next_call() {
    let (pool, scheduler) = pool(1, 0);
    for _ in 0..9 {
        let (call, begun, end) = held();
        let mut answer = pool.submit(&scheduler, call).ok().unwrap();
        begun.recv().unwrap();
        assert!(pool.submit(&scheduler, || ()).is_err());
        end.send(()).unwrap();
        while collect(&pool).is_empty() {}
        assert_eq!(poll(&mut answer), Poll::Ready(()));
    }
}

#[test]
fn a_call_that_nothing_waits_for_any_more_is_not_done() {
    let (pool, scheduler) = pool(1, 9);
    let (call, begun, end) = held();
    let first = pool.submit(&scheduler, call).ok().unwrap();
    begun.recv().unwrap();
    let (was_done, done) = mpsc::channel();
    let abandoned = pool.submit(&scheduler, move || was_done.send(()));
    drop(abandoned);
    // Nor is its task told of one that was begun.
    drop(first);
    let mut last = pool.submit(&scheduler, || 3).ok().unwrap();
    end.send(()).unwrap();
    assert_eq!(collect(&pool).len(), 1);
    assert_eq!(poll(&mut last), Poll::Ready(3));
    assert!(done.recv().is_err());
}

#[test]
fn a_pool_that_is_dropped_waits_for_nothing() {
    let (pool, scheduler) = pool(1, 9);
    let (call, begun, _end) = held();
    let _first = pool.submit(&scheduler, call).ok().unwrap();
    begun.recv().unwrap();
    let (was_done, done) = mpsc::channel();
    let _second = pool.submit(&scheduler, move || was_done.send(()));
    drop(pool);
    assert!(done.recv().is_err());
}
