//! Streams that carry files.

use crate::server::{ADDRESS, start};
use mill_conformance::content::pattern;
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

/// Serves 5000 bytes of `/f` with their length before them, over a window of 1000 bytes; lets `story` change things on the way.
fn serve(story: impl FnOnce(&World, &Client)) -> (Client, Outcome) {
    let world = World::new(1);
    world.set_link(Link::with_window(1000));
    world.files().write("/f", pattern(5000));
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
    (client, outcome.get())
}

#[test]
fn a_file_that_grows_is_sent_as_long_as_it_was_promised() {
    let (client, outcome) = serve(|world, client| {
        client.stop_reading();
        let files = world.files().clone();
        world.at(5 * MS, move || files.append("/f", "more"));
        client.at(10 * MS).read_on();
    });
    assert_eq!(client.received()[8..], pattern(5000));
    assert_eq!(outcome, Some(Ok(())));
}

#[test]
fn a_client_that_resets_meanwhile_ends_the_file() {
    let (client, outcome) = serve(|_, client| {
        client.stop_reading();
        client.at(10 * MS).reset();
    });
    assert_eq!(
        (client.received().len(), outcome),
        (0, Some(Err(StreamError::Reset)))
    );
}
