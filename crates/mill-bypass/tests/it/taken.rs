//! What the transport counts as taken, and how much memory that is.

use crate::directory::SimDirectory;
use crate::server::{Client, Server, start};
use mill_conformance::Directory as _;
use mill_conformance::End;
use mill_conformance::content::pattern;
use mill_conformance::story::Story;
use mill_runtime::engine::{Engine, Orphans};
use mill_runtime::files::{Files, Symlinks};
use mill_runtime::payload::{Payload, Shared};
use mill_runtime::stream::{Stream, StreamError};
use std::task::Poll;

#[test]
fn a_response_that_fits_the_send_buffer_is_taken_before_it_has_left() {
    let directory = SimDirectory::new("small");
    let path = directory.write("f", &pattern(20_000));
    let mut server = start(move |stream, around| {
        let path = path.clone();
        async move {
            stream.readable(1).await.unwrap();
            stream.read(|bytes| (bytes.len(), ()));
            let opened = around.engine.files().open(&path, Symlinks::Follow).await;
            stream.write(Payload::Copy(b"head"));
            stream.write(Payload::Shared(Shared::from(pattern(30_000)), 0..30_000));
            stream.write(Payload::File {
                file: opened.unwrap().0,
                offset: 0,
                len: 20_000,
            });
            // Nothing has been sent yet: that happens at the end of the turn.
            assert_eq!(stream.poll_drained(0), Poll::Ready(Ok(())));
            assert_eq!((stream.sent(), stream.queued()), (50_004, 0));
        }
    });
    let mut client = Client::connect(server.address);
    client.send("x");
    server.run_until("the end", || client.ended(End::Fin));
    assert_eq!(client.received.len(), 50_004);
}

#[test]
fn a_writer_is_never_further_ahead_of_its_peer_than_the_send_buffer() {
    const BUFFER_BYTES: usize = 100_000;
    let ahead = Story::default();
    let teller = ahead.clone();
    let mut server = Server::start_narrow(BUFFER_BYTES, move |stream, _| {
        let teller = teller.clone();
        async move {
            let piece = pattern(10_000);
            for written in 1_u64..=300 {
                stream.write(Payload::Copy(&piece));
                assert_eq!(stream.sent() + stream.queued(), written * 10_000);
                stream.drained(0).await.unwrap();
                assert_eq!(stream.sent(), written * 10_000);
                teller.tell(written * 10_000);
            }
        }
    });
    let mut client = Client::connect(server.address);
    for _ in 0..200 {
        server.turn();
    }
    // The peer's application does not read: its host has taken what its window allowed, which it has acknowledged.
    let Poll::Ready(Ok(arrived)) = client.peer.0.poll_readable(1) else {
        panic!("something has arrived");
    };
    let written = ahead.told().last().copied().unwrap();
    let most = arrived.unread as u64 + BUFFER_BYTES as u64 + 10_000;
    assert!(
        written > arrived.unread as u64 && written <= most,
        "{written}"
    );
    server.run_until("the end", || client.ended(End::Fin));
    assert!(client.received.len() == 3_000_000);
}

#[test]
fn a_long_file_is_taken_as_its_bytes_are_read() {
    const LEN: u64 = 2_000_000;
    let directory = SimDirectory::new("long");
    let path = directory.write("f", &pattern(2_000_000));
    let story = Story::default();
    let teller = story.clone();
    let mut server = start(move |stream, around| {
        let (path, teller) = (path.clone(), teller.clone());
        async move {
            let opened = around.engine.files().open(&path, Symlinks::Follow).await;
            let file = opened.unwrap().0;
            stream.write(Payload::File {
                file,
                offset: 0,
                len: LEN,
            });
            // One chunk is read ahead; the send buffer would have room for all of it.
            teller.tell(stream.sent());
            stream.drained(0).await.unwrap();
            teller.tell(stream.sent());
        }
    });
    let mut client = Client::connect(server.address);
    server.run_until("the end", || client.ended(End::Fin));
    assert!(client.received == pattern(2_000_000));
    assert_eq!(story.told(), [64 * 1024, LEN]);
}

#[test]
fn what_was_taken_is_known_after_a_reset() {
    let story = Story::default();
    let teller = story.clone();
    let mut server = start(move |stream, _| {
        let teller = teller.clone();
        async move {
            stream.write(Payload::Copy(&pattern(6_000_000)));
            let before = stream.sent();
            assert_eq!(stream.drained(0).await, Err(StreamError::Reset));
            teller.tell((before, stream.sent(), stream.queued()));
            stream.write(Payload::Copy(b"dropped"));
            teller.tell((before, stream.sent(), stream.queued()));
            teller.tell((stream.peer().to_string().len() as u64, 0, 0));
        }
    });
    let client = Client::connect(server.address);
    let peer = client.local().to_string();
    for _ in 0..10 {
        server.turn();
    }
    client.reset();
    server.run_out();
    let told = story.told();
    let (before, after, queued) = told[0];
    assert!(
        before >= 4 << 20 && after >= before && queued == 0,
        "{told:?}"
    );
    assert_eq!(told[1], told[0]);
    assert_eq!(told[2].0, peer.len() as u64, "the peer is still known");
}

#[test]
fn a_stream_that_is_dropped_sends_all_that_was_handed_over() {
    let directory = SimDirectory::new("dropped");
    let path = directory.write("f", &pattern(9_000_000));
    let mut server = Server::start_narrow(1, move |stream, around| {
        let path = path.clone();
        async move {
            let opened = around.engine.files().open(&path, Symlinks::Follow).await;
            stream.write(Payload::File {
                file: opened.unwrap().0,
                offset: 0,
                len: 9_000_000,
            });
        }
    });
    let engine = server.around.engine.clone();
    assert!(!engine.has_lingering_orphans());
    let mut client = Client::connect(server.address);
    server.run_until("the first bytes", || !client.pump().received.is_empty());
    server.run_out();
    assert!(
        engine.has_lingering_orphans(),
        "the task has ended, its bytes have not"
    );
    server.run_until("the end", || client.ended(End::Fin));
    assert!(client.received == pattern(9_000_000));
    server.run_until("the last acknowledgement", || {
        !engine.has_lingering_orphans()
    });
    assert_eq!(engine.stack_streams(), 0);
}
