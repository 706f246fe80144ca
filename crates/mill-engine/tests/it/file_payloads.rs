//! Files that are sent.

use crate::client::Client;
use crate::content::pattern;
use crate::expecting::End;
use crate::files::Directory;
use crate::server::{Server, start};
use crate::story::Story;
use mill_runtime::engine::Engine;
use mill_runtime::files::{Files, Symlinks};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};

/// Larger than the socket buffers of the loopback interface hold.
const LEN: usize = 40_000_000;

type Outcomes = Story<Result<(), StreamError>>;

/// Serves a part of a file, and waits for its end as `wait_readable` says.
fn serve(path: Vec<u8>, offset: u64, len: u64, wait_readable: bool) -> (Server, Outcomes) {
    let story = Story::new();
    let teller = story.clone();
    let server = start(move |stream, around| {
        let (path, teller) = (path.clone(), teller.clone());
        async move {
            let opened = around.engine.files().open(&path, Symlinks::Follow).await;
            stream.write(Payload::Copy(b"head"));
            stream.write(Payload::File {
                file: opened.unwrap().0,
                offset,
                len,
            });
            let outcome = if wait_readable {
                stream.readable(1).await.map(|_| ())
            } else {
                stream.drained(0).await
            };
            teller.tell(outcome);
        }
    });
    (server, story)
}

#[test]
fn a_range_of_a_file_arrives_whole() {
    let directory = Directory::new("range");
    let bytes = pattern(100_000);
    let path = directory.write("f", &bytes);
    for (offset, len) in [(0, 0), (0, 1), (99_999, 1), (7, 65_536), (0, 100_000)] {
        let (mut server, outcomes) = serve(path.clone(), offset as u64, len as u64, false);
        let mut client = Client::connect(server.address);
        server.run_until("the end", || client.ended(End::Fin));
        assert_eq!(
            client.received,
            [b"head", &bytes[offset..offset + len]].concat()
        );
        assert_eq!(outcomes.told(), [Ok(())]);
    }
}

/// A file that loses its end before or while it is sent.
fn check_truncated(left: usize, before: bool, wait_readable: bool) {
    let directory = Directory::new("truncated");
    let bytes = pattern(LEN);
    let path = directory.write("f", &bytes);
    let (mut server, outcomes) = serve(path.clone(), 0, LEN as u64, wait_readable);
    if before {
        directory.truncate("f", left);
    }
    let mut client = Client::connect(server.address);
    if !before {
        server.run_until_tasks(1);
        for _ in 0..20 {
            server.turn();
        }
        assert_eq!(server.worker.tasks(), 1, "the buffers are full");
        directory.truncate("f", left);
    }
    server.run_until("the reset", || client.ended(End::Reset));
    assert_eq!(outcomes.told(), [Err(StreamError::Truncated)]);
    let received = &client.received;
    assert!(
        received.len() < 4 + LEN,
        "a reset never comes after a whole answer"
    );
    let content = received.get(4..).unwrap_or_default();
    assert!(content == &bytes[..content.len()]);
}

#[test]
fn a_file_that_was_shorter_than_promised_resets_the_stream() {
    for left in [0, 1, 5000, 3_000_000] {
        check_truncated(left, true, false);
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_resets_the_stream() {
    for left in [0, LEN - 1] {
        check_truncated(left, false, false);
    }
}

#[test]
fn a_task_that_waits_for_its_peer_is_told_that_the_file_was_too_short() {
    check_truncated(5000, true, true);
    check_truncated(LEN - 1, false, true);
}

#[test]
fn a_file_that_is_replaced_and_removed_is_sent_as_it_was() {
    let directory = Directory::new("replaced");
    let bytes = pattern(LEN);
    let path = directory.write("f", &bytes);
    let (mut server, outcomes) = serve(path, 0, LEN as u64, false);
    let mut client = Client::connect(server.address);
    server.run_until_tasks(1);
    directory.write("g", b"new");
    directory.rename("g", "f");
    directory.remove("f");
    server.run_until("the end", || client.ended(End::Fin));
    assert!(client.received[4..] == bytes);
    assert_eq!(outcomes.told(), [Ok(())]);
}

#[test]
fn ranges_beyond_what_a_file_can_be_fail() {
    let directory = Directory::new("beyond");
    let path = directory.write("f", b"short");
    for (offset, len) in [
        (5, 1),
        (u64::MAX / 2, 1),
        (u64::MAX / 2 + 1, 1),
        (u64::MAX, 1),
        (0, u64::MAX / 2),
    ] {
        let (mut server, outcomes) = serve(path.clone(), offset, len, false);
        let mut client = Client::connect(server.address);
        server.run_until("the reset", || client.ended(End::Reset));
        assert!(outcomes.told()[0].is_err(), "{offset} {len}");
    }
}

#[test]
fn what_cannot_be_sent_as_a_file_fails() {
    let directory = Directory::new("unsendable");
    let (mut server, outcomes) = serve(directory.path(""), 0, 10, false);
    let mut client = Client::connect(server.address);
    server.run_until("the reset", || client.ended(End::Reset));
    assert!(matches!(outcomes.told()[..], [Err(StreamError::Other(_))]));
}
