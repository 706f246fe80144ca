//! FIN and RST, both ways.

use crate::content::{pattern, take_all};
use crate::story::Story;
use crate::{End, Peer, Server, Testbed};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError, StreamOption};
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

pub fn fin_of_the_client_leaves_the_servers_direction_open<T: Testbed>() {
    let mut server = Server::<T>::start(|stream, around| async move {
        while !stream.readable(usize::MAX).await.unwrap().finished {}
        around.scheduler.sleep(Duration::from_millis(2)).await;
        stream.write(Payload::Copy(&pattern(5_000_000)));
        stream.drained(0).await.unwrap();
    });
    let mut client = server.connect();
    client.send("a");
    client.finish();
    server.run_until("the end", || client.ended(End::Fin));
    assert!(client.received == pattern(5_000_000));
}

pub fn shutdown_sends_fin_and_reading_goes_on<T: Testbed>() {
    let story = Story::default();
    let teller = story.clone();
    let mut server = Server::<T>::start(move |stream, _| {
        let teller = teller.clone();
        async move {
            stream.write(Payload::Copy(b"bye"));
            stream.shutdown();
            stream.readable(4).await.unwrap();
            teller.tell(take_all(&stream));
            stream.write(Payload::Copy(b"more"));
            assert!(stream.drained(0).await.is_err());
        }
    });
    let mut client = server.connect();
    server.run_until("the FIN", || client.ended(End::Fin));
    assert_eq!(client.received, b"bye");
    assert_eq!(server.worker.tasks(), 1);
    client.send("late");
    server.run_out();
    assert_eq!(story.told(), [b"late"]);
}

pub fn rst_of_the_client_wakes_the_task_that_waits<T: Testbed>() {
    for drains in [false, true] {
        let story = Story::default();
        let teller = story.clone();
        let mut server = Server::<T>::start(move |stream, _| {
            let teller = teller.clone();
            async move {
                if drains {
                    stream.write(Payload::Copy(&pattern(20_000_000)));
                    teller.tell(stream.drained(0).await.err());
                } else {
                    teller.tell(stream.readable(1).await.err());
                }
                stream.write(Payload::Copy(b"sent to no peer"));
                assert_eq!(stream.queued(), 0);
            }
        });
        let client = server.connect();
        server.run_until_tasks(1);
        for _ in 0..10 {
            server.turn();
        }
        client.reset();
        server.run_out();
        assert_eq!(story.told(), [Some(StreamError::Reset)]);
    }
}

pub fn bytes_that_came_before_a_reset_are_to_be_had_although_writing_failed<T: Testbed>() {
    let story = Story::default();
    let teller = story.clone();
    let mut server = Server::<T>::start(move |stream, around| {
        let teller = teller.clone();
        async move {
            stream.readable(1).await.unwrap();
            teller.tell(take_all(&stream));
            around.scheduler.sleep(Duration::from_millis(20)).await;
            // By now the rest of the bytes and the RST are here; the first write finds the RST.
            stream.write(Payload::Copy(b"x"));
            assert!(stream.drained(0).await.is_err());
            stream.readable(1).await.unwrap();
            teller.tell(take_all(&stream));
            assert_eq!(stream.readable(1).await, Err(StreamError::Reset));
        }
    });
    let mut client = server.connect();
    client.send("abc");
    server.run_until("the first bytes", || story.count() == 1);
    client.send("de");
    client.reset();
    server.run_out();
    assert_eq!(story.told(), [b"abc".to_vec(), b"de".to_vec()]);
}

pub fn a_reset_is_known_before_what_came_earlier_is_read<T: Testbed>() {
    let story = Story::default();
    let teller = story.clone();
    let mut server = Server::<T>::start(move |stream, _| {
        let teller = teller.clone();
        async move {
            stream.readable(1).await.unwrap();
            teller.tell(stream.is_reset());
            poll_fn(|_| match stream.is_reset() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
            teller.tell(take_all(&stream) == b"abc");
        }
    });
    let mut client = server.connect();
    client.send("abc");
    server.run_until("the bytes", || story.count() == 1);
    client.reset();
    server.run_out();
    assert_eq!(story.told(), [false, true]);
}

pub fn reset_on_close_is_seen_as_a_reset<T: Testbed>() {
    let mut server = Server::<T>::start(|stream, _| async move {
        stream.set(StreamOption::NoDelay(true)).unwrap();
        stream.set(StreamOption::ResetOnClose).unwrap();
    });
    let mut client = server.connect();
    server.run_until("the reset", || client.ended(End::Reset));
}

pub fn what_was_gathered_leaves_before_the_stream_closes<T: Testbed>() {
    let mut server = Server::<T>::start(|stream, _| async move {
        stream.write(Payload::Copy(b"last words"));
    });
    let mut client = server.connect();
    server.run_until("the end", || client.ended(End::Fin));
    assert_eq!(client.received, b"last words");
}

pub fn a_worker_that_is_dropped_ends_its_connections<T: Testbed>() {
    let mut server = Server::<T>::start(|stream, _| async move {
        stream.write(Payload::Copy(b"gathered"));
        let _ = stream.readable(1).await;
    });
    let address = server.address;
    let mut client = server.connect();
    server.run_until("the bytes", || client.has(b"gathered"));
    drop(server);
    assert!(client.ended(End::Fin));
    assert!(T::Peer::is_refused(address));
}

pub fn tcp_tells_what_it_measured<T: Testbed>() {
    let mut server = Server::<T>::start(|stream, _| async move {
        let info = stream.info().unwrap();
        assert!(info.snd_cwnd > 0 && info.rcv_space > 0);
        assert!(info.rtt < Duration::from_secs(1));
        stream.write(Payload::Copy(
            format!("{} {}", stream.peer(), stream.local()).as_bytes(),
        ));
    });
    let mut client = server.connect();
    server.run_until("the end", || client.ended(End::Fin));
    let expected = format!("{} {}", client.local(), server.address);
    assert_eq!(String::from_utf8(client.received).unwrap(), expected);
}
