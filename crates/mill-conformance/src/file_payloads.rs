//! Files that are sent.

use crate::content::pattern;
use crate::story::Story;
use crate::{Directory, End, Server, Testbed};
use mill_runtime::engine::Engine;
use mill_runtime::files::{Files, Symlinks};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};

/// Larger than the socket buffers of the loopback interface hold.
const LEN: usize = 40_000_000;

type Outcomes = Story<Result<(), StreamError>>;

/// Serves a part of a file, and waits for its end as `wait_readable` says.
fn serve<T: Testbed>(
    path: Vec<u8>,
    offset: u64,
    len: u64,
    wait_readable: bool,
) -> (Server<T>, Outcomes) {
    let story = Story::default();
    let teller = story.clone();
    let server = Server::<T>::start(move |stream, around| {
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

pub fn a_range_of_a_file_arrives_whole<T: Testbed>() {
    let directory = T::Directory::new("range");
    let bytes = pattern(100_000);
    let path = directory.write("f", &bytes);
    for (offset, len) in [(0, 0), (0, 1), (99_999, 1), (7, 65_536), (0, 100_000)] {
        let (mut server, outcomes) = serve::<T>(path.clone(), offset as u64, len as u64, false);
        let mut client = server.connect();
        server.run_until("the end", || client.ended(End::Fin));
        assert_eq!(
            client.received,
            [b"head", &bytes[offset..offset + len]].concat()
        );
        assert_eq!(outcomes.told(), [Ok(())]);
    }
}

/// A file that loses its end before or while it is sent.
fn check_truncated<T: Testbed>(left: usize, before: bool, wait_readable: bool) {
    let directory = T::Directory::new("truncated");
    let bytes = pattern(LEN);
    let path = directory.write("f", &bytes);
    let (mut server, outcomes) = serve::<T>(path.clone(), 0, LEN as u64, wait_readable);
    if before {
        directory.truncate("f", left);
    }
    let mut client = server.connect();
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

pub fn a_file_that_was_shorter_than_promised_resets_the_stream<T: Testbed>() {
    for left in [0, 1, 5000, 3_000_000] {
        check_truncated::<T>(left, true, false);
    }
}

pub fn a_file_that_shrinks_while_it_is_sent_resets_the_stream<T: Testbed>() {
    for left in [0, LEN - 1] {
        check_truncated::<T>(left, false, false);
    }
}

pub fn a_task_that_waits_for_its_peer_is_told_that_the_file_was_too_short<T: Testbed>() {
    check_truncated::<T>(5000, true, true);
    check_truncated::<T>(LEN - 1, false, true);
}

pub fn a_file_that_is_replaced_and_removed_is_sent_as_it_was<T: Testbed>() {
    let directory = T::Directory::new("replaced");
    let bytes = pattern(LEN);
    let path = directory.write("f", &bytes);
    let (mut server, outcomes) = serve::<T>(path, 0, LEN as u64, false);
    let mut client = server.connect();
    server.run_until_tasks(1);
    directory.write("g", b"new");
    directory.rename("g", "f");
    directory.remove("f");
    server.run_until("the end", || client.ended(End::Fin));
    assert!(client.received[4..] == bytes);
    assert_eq!(outcomes.told(), [Ok(())]);
}

pub fn ranges_beyond_what_a_file_can_be_fail<T: Testbed>() {
    let directory = T::Directory::new("beyond");
    let path = directory.write("f", b"short");
    for (offset, len) in [
        (5, 1),
        (u64::MAX / 2, 1),
        (u64::MAX / 2 + 1, 1),
        (u64::MAX, 1),
        (0, u64::MAX / 2),
    ] {
        let (mut server, outcomes) = serve::<T>(path.clone(), offset, len, false);
        let mut client = server.connect();
        server.run_until("the reset", || client.ended(End::Reset));
        assert!(outcomes.told()[0].is_err(), "{offset} {len}");
    }
}

pub fn what_cannot_be_sent_as_a_file_fails<T: Testbed>() {
    let directory = T::Directory::new("unsendable");
    let (mut server, outcomes) = serve::<T>(directory.path(""), 0, 10, false);
    let mut client = server.connect();
    server.run_until("the reset", || client.ended(End::Reset));
    assert!(matches!(outcomes.told()[..], [Err(StreamError::Other(_))]));
}
