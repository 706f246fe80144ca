//! Writing: order, gathering, slow readers, fairness.

use crate::content::{pattern, take_all};
use crate::server::{FilesOf, StreamOf};
use crate::story::Story;
use crate::{Around, Directory, End, Server, Testbed};
use mill_runtime::engine::Engine;
use mill_runtime::files::{Files, Symlinks};
use mill_runtime::payload::{Payload, Shared};
use mill_runtime::stream::{Stream, StreamError, WRITE_SOME_BYTES};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Ten megabytes in pieces of every kind and many sizes, and what they must become.
async fn write_mixture<T: Testbed>(stream: &StreamOf<T>, files: &FilesOf<T>, path: &[u8]) -> u64 {
    let (file, metadata) = files.open(path, Symlinks::Follow).await.unwrap();
    let bytes = pattern(300_000);
    let shared = Shared::from(bytes.as_slice());
    let common = Shared::from(Arc::<[u8]>::from(bytes.as_slice()));
    let mut written = 0;
    let mut step = |payload: Payload<'_, _>| {
        written += payload.len();
        stream.write(payload);
    };
    for round in 0..12 {
        step(Payload::Copy(&bytes[..17 * (round + 1)]));
        step(Payload::Shared(Shared::clone(&shared), 100..200));
        step(Payload::Copy(&bytes[..70_000]));
        step(Payload::Shared(Shared::clone(&shared), 1..300_000));
        for _ in 0..20 {
            step(Payload::Shared(Shared::clone(&shared), 0..17_000));
            step(Payload::Shared(Shared::clone(&common), 1..17_001));
        }
        step(Payload::File {
            file: file.clone(),
            offset: 5,
            len: metadata.len - 5,
        });
        step(Payload::File {
            file: file.clone(),
            offset: 0,
            len: 1,
        });
    }
    written
}

fn mixture(file: &[u8]) -> Vec<u8> {
    let bytes = pattern(300_000);
    let mut all = Vec::new();
    for round in 0..12 {
        all.extend_from_slice(&bytes[..17 * (round + 1)]);
        all.extend_from_slice(&bytes[100..200]);
        all.extend_from_slice(&bytes[..70_000]);
        all.extend_from_slice(&bytes[1..]);
        for _ in 0..20 {
            all.extend_from_slice(&bytes[..17_000]);
            all.extend_from_slice(&bytes[1..17_001]);
        }
        all.extend_from_slice(&file[5..]);
        all.extend_from_slice(&file[..1]);
    }
    all
}

fn receive_mixture<T: Testbed>(mut server: Server<T>, chunk_bytes: usize, expected: &[u8]) {
    let mut client = server.connect();
    server.run_until(&format!("all bytes, {chunk_bytes} a turn"), || {
        client.read_some(chunk_bytes);
        client.end.is_some()
    });
    assert_eq!(
        (client.received.len(), client.end),
        (expected.len(), Some(End::Fin))
    );
    assert!(
        client.received == expected,
        "the same bytes in the same order"
    );
}

pub fn ten_megabytes_of_all_kinds_pass_small_buffers_whole_and_in_order<T: Testbed>() {
    let directory = T::Directory::new("mixture");
    let file = pattern(123_457);
    let path = directory.write("f", &file);
    let expected = mixture(&file);
    assert!(expected.len() > 10_000_000);
    for (tiny, chunk_bytes) in [(true, 30_000), (false, 1 << 20)] {
        let path = path.clone();
        let serve = move |stream: StreamOf<T>, around: Around<T::Engine>| {
            let path = path.clone();
            async move {
                let written = write_mixture::<T>(&stream, around.engine.files(), &path).await;
                stream.drained(0).await.unwrap();
                assert_eq!((stream.sent(), stream.queued()), (written, 0));
            }
        };
        let server = if tiny {
            Server::<T>::start_narrow(20_000, serve)
        } else {
            Server::<T>::start(serve)
        };
        receive_mixture(server, chunk_bytes, &expected);
    }
}

pub fn small_writes_leave_in_one_segment_even_when_the_task_waits_for_something_else<T: Testbed>() {
    let mut server = Server::<T>::start(|stream, around| async move {
        stream.readable(1).await.unwrap();
        stream.write(Payload::Copy(b"one "));
        stream.write(Payload::Shared(Shared::from(&b"and two"[..]), 3..7));
        assert_eq!(stream.sent() + stream.queued(), 8);
        around.scheduler.sleep(Duration::from_secs(3600)).await;
    });
    let mut client = server.connect();
    client.send("x");
    server.run_until("the bytes", || {
        if client.received.is_empty() {
            client.read_some(100);
        }
        !client.received.is_empty()
    });
    assert_eq!(client.received, b"one  two", "in one piece");
}

/// Writes half a megabyte, of which the transport takes a part, and then awaits `wait` but not the queue's end.
fn check_sent_without_waiting_for_it<T, F, W>(kind: &'static str, wait: W)
where
    T: Testbed,
    F: Future<Output = ()>,
    W: Fn(Rc<StreamOf<T>>, Around<T::Engine>) -> F + Clone + 'static,
{
    let bytes = pattern(500_000);
    let expected = bytes.clone();
    let directory = T::Directory::new(kind);
    let path = directory.write("f", &bytes);
    let mut server = Server::<T>::start_narrow(1, move |stream, around| {
        let (bytes, path, wait) = (bytes.clone(), path.clone(), wait.clone());
        async move {
            match kind {
                "copy" => stream.write(Payload::Copy(&bytes)),
                "shared" => stream.write(Payload::Shared(Shared::from(bytes), 0..500_000)),
                _ => {
                    let opened = around.engine.files().open(&path, Symlinks::Follow).await;
                    stream.write(Payload::File {
                        file: opened.unwrap().0,
                        offset: 0,
                        len: 500_000,
                    });
                }
            }
            wait(Rc::new(stream), around).await;
        }
    });
    let mut client = server.connect_small();
    server.run_until("what was handed over", || client.has(&expected));
}

pub fn what_was_handed_over_is_sent_while_the_task_waits_for_the_peer<T: Testbed>() {
    for kind in ["copy", "shared", "file"] {
        check_sent_without_waiting_for_it::<T, _, _>(kind, |stream, _| async move {
            let _ = stream.readable(1).await;
        });
    }
}

pub fn what_was_handed_over_is_sent_while_the_task_sleeps<T: Testbed>() {
    for kind in ["copy", "shared", "file"] {
        check_sent_without_waiting_for_it::<T, _, _>(kind, |_stream, around| async move {
            around.scheduler.sleep(Duration::from_secs(3600)).await;
            drop(_stream);
        });
    }
}

pub fn what_remains_below_the_bound_that_was_waited_for_is_sent_too<T: Testbed>() {
    check_sent_without_waiting_for_it::<T, _, _>("copy", |stream, _| async move {
        stream.drained(400_000).await.unwrap();
        let _ = stream.readable(1).await;
    });
}

pub fn a_fin_that_is_due_follows_the_queue_though_no_task_waits_for_it<T: Testbed>() {
    let mut server = Server::<T>::start_narrow(1, |stream, around| async move {
        stream.write(Payload::Copy(&pattern(300_000)));
        stream.shutdown();
        around.scheduler.sleep(Duration::from_secs(3600)).await;
        drop(stream);
    });
    let mut client = server.connect_small();
    server.run_until("the end", || client.ended(End::Fin));
    assert!(client.received == pattern(300_000));
}

pub fn queued_and_sent_tell_how_far_it_is<T: Testbed>() {
    let story = Story::default();
    let teller = story.clone();
    let mut server = Server::<T>::start_narrow(1, move |stream, _| {
        let teller = teller.clone();
        async move {
            stream.write(Payload::Copy(&pattern(3_000_000)));
            for most in [1_000_000, 500_000, 1, 0] {
                stream.drained(most).await.unwrap();
                assert!(stream.queued() <= most);
                assert_eq!(stream.queued() + stream.sent(), 3_000_000);
                teller.tell(stream.sent());
            }
        }
    });
    let mut client = server.connect_small();
    for _ in 0..10 {
        server.turn();
    }
    assert_eq!(story.told(), [], "the peer does not read");
    server.run_until("the end", || client.ended(End::Fin));
    assert!(client.received == pattern(3_000_000));
    assert!(story.told().is_sorted() && story.told().last() == Some(&3_000_000));
}

pub fn a_long_send_leaves_the_others_their_turns<T: Testbed>() {
    let directory = T::Directory::new("share");
    let path = directory.write("f", &vec![b'x'; 64 << 20]);
    let turns = Rc::new(std::cell::Cell::new(0));
    let mut server = Server::<T>::start(move |stream, around| {
        let path = path.clone();
        async move {
            stream.readable(1).await.unwrap();
            if take_all(&stream) == b"small" {
                stream.write(Payload::Copy(b"answer"));
                return;
            }
            let opened = around.engine.files().open(&path, Symlinks::Follow).await;
            stream.write(Payload::File {
                file: opened.unwrap().0,
                offset: 0,
                len: 64 << 20,
            });
            stream.drained(0).await.unwrap();
        }
    });
    let mut large = server.connect();
    large.send("large");
    server.run_until("the first bytes", || !large.pump().received.is_empty());
    let mut small = server.connect();
    small.send("small");
    server.run_until("the small answer", || {
        turns.set(turns.get() + 1);
        large.read_some(1 << 20);
        small.has(b"answer")
    });
    assert!(turns.get() < 6 && large.received.len() < 32 << 20);
    server.run_until("the large one", || large.ended(End::Fin));
    assert_eq!(large.received.len(), 64 << 20);
}

pub fn some_of_much_is_taken_again_and_again_and_little_of_it_is_queued<T: Testbed>() {
    let mut server = Server::<T>::start_narrow(1, |stream, _| async move {
        let bytes = pattern(3_000_000);
        stream.write(Payload::Copy(b"before"));
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let queued = stream.queued();
            let some = stream.write_some(rest);
            assert!((1..=rest.len()).contains(&some));
            assert!(stream.queued() <= queued + WRITE_SOME_BYTES as u64);
            rest = &rest[some..];
            stream.write(Payload::Copy(b"-"));
            stream.drained(WRITE_SOME_BYTES as u64).await.unwrap();
        }
        stream.drained(0).await.unwrap();
    });
    let mut client = server.connect_small();
    server.run_until("the end", || client.ended(End::Fin));
    let mut received = client.received.strip_prefix(b"before").unwrap().to_vec();
    received.retain(|byte| *byte != b'-');
    let mut expected = pattern(3_000_000);
    expected.retain(|byte| *byte != b'-');
    assert!(received == expected);
}

pub fn gathered_bytes_of_several_connections_do_not_mix<T: Testbed>() {
    let mut server = Server::<T>::start(|stream, _| async move {
        loop {
            if stream.readable(1).await.unwrap().unread == 0 {
                return;
            }
            for byte in take_all(&stream) {
                stream.write(Payload::Copy(&[byte; 40_000]));
            }
        }
    });
    let mut clients: [_; 4] = std::array::from_fn(|_| server.connect());
    for (client, text) in clients.iter_mut().zip(["aA", "bB", "cC", "dD"]) {
        client.send(text);
        client.finish();
    }
    server.run_until("the ends", || {
        clients.iter_mut().all(|client| client.ended(End::Fin))
    });
    for (client, text) in clients.iter().zip(["aA", "bB", "cC", "dD"]) {
        let expected: Vec<u8> = text.bytes().flat_map(|byte| [byte; 40_000]).collect();
        assert!(client.received == expected);
    }
}

pub fn a_range_outside_its_bytes_breaks_the_stream_and_not_the_engine<T: Testbed>() {
    let bytes = Shared::from(pattern(40_000));
    for range in [39_000..41_000, 0..50_000, 50_000..90_000] {
        let bytes = Shared::clone(&bytes);
        let mut server = Server::<T>::start(move |stream, _| {
            let (bytes, range) = (Shared::clone(&bytes), range.clone());
            async move {
                stream.write(Payload::Shared(bytes, range));
                assert_eq!(stream.drained(0).await, Err(StreamError::Truncated));
            }
        });
        let mut client = server.connect();
        server.run_until("the end", || client.ended(End::Reset));
    }
}
