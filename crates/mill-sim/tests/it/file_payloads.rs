//! Streams that carry files.

use crate::server::{ADDRESS, start};
use mill_runtime::files::{Files, Symlinks};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};
use mill_sim::client::Client;
use mill_sim::link::Link;
use mill_sim::world::World;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

type Outcome = Option<Result<(), StreamError>>;

/// Serves `/f` with a length before it, over a window of 1000 bytes; lets `story` change things on the way.
fn serve(len: usize, story: impl FnOnce(&World, &Client)) -> (Client, Outcome) {
    let world = World::new(1);
    world.set_link(Link {
        window_bytes: 1000,
        ..Link::IDEAL
    });
    world.files().write("/f", pattern(len));
    let outcome = Rc::new(Cell::new(Outcome::None));
    let files = world.files().clone();
    let mut server = start(&world, |stream, _| {
        let (files, outcome) = (files.clone(), Rc::clone(&outcome));
        async move {
            let opened = files.open(b"/f", Symlinks::Follow).await;
            let (file, metadata) = opened.expect("it opens");
            stream.write(Payload::Copy(&metadata.len.to_be_bytes()));
            stream.write(Payload::File {
                file,
                offset: 0,
                len: metadata.len,
            });
            outcome.set(Some(stream.drained(0).await));
        }
    });
    let client = world.connect(ADDRESS);
    story(&world, &client);
    server.run(&world);
    assert_eq!(world.files().open_files(), 0, "the stream lets the file go");
    let outcome = outcome.get();
    (client, outcome)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}

#[test]
fn a_file_longer_than_the_window_arrives_whole() {
    for len in [0, 1, 991, 992, 993, 5000] {
        let (client, outcome) = serve(len, |_, _| {});
        assert_eq!(client.received()[8..], pattern(len), "{len} bytes");
        assert_eq!(outcome, Some(Ok(())));
        assert!(client.is_closed() && !client.was_reset());
    }
}

#[test]
fn a_file_that_shrinks_resets_the_stream_and_never_sends_a_wrong_length() {
    for left in [0, 991, 992, 1500, 4999] {
        let (client, outcome) = serve(5000, |world, client| {
            client.stop_reading();
            let files = world.files().clone();
            world.at(5 * MS, move || files.set_len("/f", left));
            client.at(10 * MS).read_on();
        });
        assert_eq!(outcome, Some(Err(StreamError::Truncated)), "{left} left");
        assert!(client.was_reset() && !client.is_closed());
        let received = client.received();
        assert!(received.len() < 5008);
        assert_eq!(received[8..], pattern(5000)[..received.len() - 8]);
    }
}

#[test]
fn a_file_that_grows_is_sent_as_long_as_it_was_promised() {
    let (client, outcome) = serve(5000, |world, client| {
        client.stop_reading();
        let files = world.files().clone();
        world.at(5 * MS, move || files.append("/f", "more"));
        client.at(10 * MS).read_on();
    });
    assert_eq!((client.received().len(), outcome), (5008, Some(Ok(()))));
}

#[test]
fn a_file_that_is_replaced_or_removed_is_sent_as_it_was() {
    let (client, outcome) = serve(5000, |world, client| {
        client.stop_reading();
        let files = world.files().clone();
        world.at(5 * MS, move || {
            files.replace("/f", "new");
            files.remove("/f");
        });
        client.at(10 * MS).read_at_rate(10_000);
    });
    assert_eq!(
        (client.received()[8..].to_vec(), outcome),
        (pattern(5000), Some(Ok(())))
    );
}

#[test]
fn a_client_that_resets_meanwhile_ends_the_file() {
    let (client, outcome) = serve(5000, |_, client| {
        client.stop_reading();
        client.at(10 * MS).reset();
    });
    assert_eq!(
        (client.received().len(), outcome),
        (0, Some(Err(StreamError::Reset)))
    );
}
