//! Reuse of slots.

use crate::client::Client;
use crate::server::start;
use mill_conformance::End;
use mill_conformance::content::{pattern, take_all};
use mill_conformance::story::Story;
use mill_engine::KernelStream;
use mill_runtime::engine::{Accept, Engine, Events, Park};
use mill_runtime::payload::{Payload, Shared};
use mill_runtime::stream::Stream;
use mill_runtime::tasks::TaskId;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Poll;

#[test]
fn a_new_connection_inherits_nothing_from_the_slots_former_one() {
    let story = Story::default();
    let teller = story.clone();
    let mut server = start(move |stream, _| {
        let teller = teller.clone();
        async move {
            stream.readable(1).await.unwrap();
            let bytes = stream.read(|bytes| (1, bytes.to_vec()));
            teller.tell(bytes);
            // The rest is in the shared buffer; what follows is gathered or queued; then the stream closes.
            stream.write(Payload::Copy(b"gathered"));
            stream.write(Payload::Shared(
                Shared::from(pattern(5_000_000)),
                0..5_000_000,
            ));
        }
    });
    for text in ["one", "two", "six"] {
        let mut client = Client::connect(server.address);
        client.send(text);
        server.run_until("the end", || client.pump().end.is_some());
        assert!(client.received.starts_with(b"gathered") || client.end == Some(End::Reset));
    }
    assert_eq!(story.told(), [b"one", b"two", b"six"]);
}

/// Accepts without a worker, so that the test determines the order of operations within a turn.
fn accept(server: &crate::server::Server) -> KernelStream {
    let mut events = Events::default();
    while events.acceptable.is_empty() {
        let now = server.around.engine.clock().0;
        let patience = std::time::Duration::from_secs(10);
        server
            .around
            .engine
            .poll(Park::Until(now + patience), &mut events);
    }
    match server.around.engine.accept(server.listener, TaskId::NONE) {
        Accept::Stream(stream) => stream,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bytes_in_the_shared_buffers_do_not_pass_to_the_next_connection_within_a_turn() {
    let server = start(|_stream, _| async {});
    let [mut first, mut second]: [Client; 2] =
        std::array::from_fn(|_| Client::connect(server.address));
    first.send("of the first");
    let stream = accept(&server);
    assert!(stream.poll_readable(1).is_ready());
    stream.write(Payload::Copy(b"to the first"));
    drop(stream);
    let stream = accept(&server);
    assert!(stream.poll_readable(1).is_pending());
    assert_eq!((take_all(&stream), stream.queued()), (Vec::new(), 0));
    second.send("of the second");
    stream.write(Payload::Copy(b"to the second"));
    server.around.engine.settle();
    assert!(first.has(b"to the first") && second.has(b"to the second"));
    assert!(
        first.ended(End::Fin),
        "its bytes were received, if not read"
    );
}

#[test]
fn a_report_for_a_former_connection_does_not_affect_the_next() {
    let server = start(|_stream, _| async {});
    let [mut first, _second]: [Client; 2] =
        std::array::from_fn(|_| Client::connect(server.address));
    let stream = accept(&server);
    assert!(stream.poll_readable(1).is_pending());
    first.send("reported");
    let mut events = Events::default();
    server.around.engine.poll(Park::No, &mut events);
    assert_eq!(events.ready, [TaskId::NONE]);
    drop(stream);
    let stream = accept(&server);
    assert!(stream.poll_readable(1).is_pending());
    events.clear();
    server.around.engine.poll(Park::No, &mut events);
    assert_eq!(events.ready, []);
    drop(stream);
}

#[test]
fn thousands_of_short_connections_reuse_their_slots() {
    let mut server = start(|stream, _| async move {
        stream.readable(4).await.unwrap();
        let bytes = take_all(&stream);
        stream.write(Payload::Copy(&bytes));
    });
    for round in 0..200_u32 {
        let mut clients: [Client; 10] = std::array::from_fn(|_| Client::connect(server.address));
        let sent: Vec<[u8; 4]> = (0..10)
            .map(|index| (round * 10 + index).to_be_bytes())
            .collect();
        for (client, number) in clients.iter_mut().zip(&sent) {
            client.send(number);
        }
        server.run_until("the answers", || {
            let mut pairs = clients.iter_mut().zip(&sent);
            pairs.all(|(client, number)| client.has(number) && client.ended(End::Fin))
        });
    }
}

#[test]
fn two_streams_of_one_task_each_keep_their_bytes() {
    let waiting: Rc<RefCell<Option<KernelStream>>> = Rc::default();
    let ready = Rc::new(Cell::new(false));
    let put = Rc::clone(&ready);
    let mut server = start(move |stream, _| {
        let (waiting, put) = (Rc::clone(&waiting), Rc::clone(&put));
        async move {
            let Some(other) = waiting.borrow_mut().take() else {
                stream.readable(1).await.unwrap();
                *waiting.borrow_mut() = Some(stream);
                put.set(true);
                return;
            };
            stream.readable(3).await.unwrap();
            // The first stream's bytes have stayed in its slot since its task ended.
            let Poll::Ready(Ok(readable)) = other.poll_readable(1) else {
                panic!("the bytes have arrived");
            };
            assert_eq!(readable.unread, 3);
            let crossed = [take_all(&stream), take_all(&other)];
            other.write(Payload::Copy(&crossed[0]));
            stream.write(Payload::Copy(&crossed[1]));
        }
    });
    let mut first = Client::connect(server.address);
    first.send("one");
    server.run_until("the first", || ready.get());
    server.run_out();
    let mut second = Client::connect(server.address);
    second.send("two");
    server.run_until("the ends", || {
        first.ended(End::Fin) && second.ended(End::Fin)
    });
    assert_eq!(
        (first.received, second.received),
        (b"two".to_vec(), b"one".to_vec())
    );
}
