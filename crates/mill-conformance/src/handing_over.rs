//! A stream goes from one task to another.

use crate::content::{pattern, take_all};
use crate::server::StreamOf;
use crate::story::Story;
use crate::{Around, End, Server, Testbed};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::spawned::Purpose;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::tasks::TaskId;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;

/// A task that waits for a stream.
struct NewTask<T: Testbed> {
    task: TaskId,
    place: Rc<RefCell<Option<StreamOf<T>>>>,
    scheduler: Rc<Scheduler>,
}

impl<T: Testbed> NewTask<T> {
    /// Spawns the task, which goes on with `work` once it has a stream.
    fn spawn<F>(scheduler: &Rc<Scheduler>, work: impl FnOnce(StreamOf<T>) -> F + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        let place = Rc::new(RefCell::new(None));
        let taken_from = Rc::clone(&place);
        let task = scheduler.spawn(Purpose::Finishing, async move {
            let handed_over = poll_fn(|_| match taken_from.borrow_mut().take() {
                Some(stream) => Poll::Ready(stream),
                None => Poll::Pending,
            });
            work(handed_over.await).await;
        });
        let task = task.unwrap_or_else(|_| panic!("few tasks live"));
        let scheduler = Rc::clone(scheduler);
        Self {
            task,
            place,
            scheduler,
        }
    }

    /// Hands the stream over, and has the task look at it.
    fn give(&self, stream: StreamOf<T>) {
        stream.set_task(self.task);
        *self.place.borrow_mut() = Some(stream);
        self.scheduler.wake_soon(self.task);
    }
}

/// Waits for something that never happens, and notes each time that it is polled.
async fn note_polls(polls: Story<()>) {
    poll_fn(|_| {
        polls.tell(());
        Poll::<()>::Pending
    })
    .await;
}

async fn turns(scheduler: &Scheduler, count: usize) {
    for _ in 0..count {
        scheduler.yield_now().await;
    }
}

pub fn a_stream_wakes_the_task_that_it_was_handed_to_and_no_longer_the_former_one<T: Testbed>() {
    let polls = Story::default();
    let noted = polls.clone();
    let mut server = Server::<T>::start(move |stream, around| {
        let polls = noted.clone();
        async move {
            stream.readable(1).await.unwrap();
            stream.write(Payload::Copy(&take_all(&stream)));
            let new_task = NewTask::<T>::spawn(&around.scheduler, crate::serving::echo);
            turns(&around.scheduler, 1).await;
            new_task.give(stream);
            turns(&around.scheduler, 2).await;
            note_polls(polls).await;
        }
    });
    let mut client = server.connect();
    let mut expected = Vec::new();
    for byte in 0..20 {
        client.send([byte]);
        expected.push(byte);
        server.run_until("the byte", || client.has(&expected));
    }
    assert_eq!(polls.count(), 1, "the former task is polled no more");
}

pub fn what_arrived_before_the_hand_over_is_there_for_the_new_task<T: Testbed>() {
    // The report of the bytes comes to the former task, which does not look at them.
    let mut server = Server::<T>::start(|stream, around: Around<T::Engine>| async move {
        let new_task = NewTask::<T>::spawn(&around.scheduler, crate::serving::echo);
        stream.readable(1).await.unwrap();
        turns(&around.scheduler, 3).await;
        new_task.give(stream);
        std::future::pending().await
    });
    let mut client = server.connect();
    client.send("before");
    server.run_until("the answer", || client.has(b"before"));
}

pub fn a_queue_that_empties_wakes_the_new_task<T: Testbed>() {
    let story = Story::default();
    let teller = story.clone();
    let mut server = Server::<T>::start_narrow(1, move |stream, around| {
        let teller = teller.clone();
        async move {
            stream.write(Payload::Copy(&pattern(3_000_000)));
            assert!(stream.poll_drained(0).is_pending());
            let new_task =
                NewTask::<T>::spawn(&around.scheduler, |stream: StreamOf<T>| async move {
                    teller.tell(stream.drained(0).await);
                });
            new_task.give(stream);
        }
    });
    let mut client = server.connect_small();
    server.run_on();
    assert_eq!(story.told(), [], "the peer has not read");
    server.run_until("the end", || client.ended(End::Fin));
    assert!(client.received == pattern(3_000_000));
    assert_eq!(story.told(), [Ok(())]);
}

pub fn a_task_that_waits_for_a_reset_stream_learns_of_it_after_the_hand_over<T: Testbed>() {
    let story = Story::default();
    let teller = story.clone();
    let mut server = Server::<T>::start(move |stream, around| {
        let teller = teller.clone();
        async move {
            let new_task =
                NewTask::<T>::spawn(&around.scheduler, |stream: StreamOf<T>| async move {
                    teller.tell(stream.readable(1).await.err());
                });
            assert_eq!(stream.readable(1).await.err(), Some(StreamError::Reset));
            new_task.give(stream);
        }
    });
    let client = server.connect();
    server.run_until_tasks(1);
    server.run_on();
    client.reset();
    server.run_until("the error", || story.count() == 1);
    assert_eq!(story.told(), [Some(StreamError::Reset)]);
}

pub fn what_is_written_in_the_turn_of_the_hand_over_leaves_whole<T: Testbed>() {
    let mut server = Server::<T>::start(|stream, around| async move {
        let new_task = NewTask::<T>::spawn(&around.scheduler, |stream| async move {
            std::future::pending::<()>().await;
            drop(stream);
        });
        stream.set_task(new_task.task);
        stream.write(Payload::Copy(b"head"));
        stream.write(Payload::Shared(pattern(100_000).into(), 0..100_000));
        *new_task.place.borrow_mut() = Some(stream);
        std::future::pending().await
    });
    let mut client = server.connect();
    let expected = [b"head", &pattern(100_000)[..]].concat();
    server.run_until("the answer", || client.has(&expected));
}
