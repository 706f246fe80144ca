//! Reading and writing: splits, stalls, FIN and RST.

use crate::server::{ADDRESS, start};
use mill_conformance::serving::{echo, echo_messages, message};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamOption};
use mill_sim::link::{Link, Segments};
use mill_sim::world::World;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

#[test]
fn writes_of_one_turn_leave_in_one_segment() {
    let world = World::new(1);
    let mut server = start(&world, |stream, _| echo_messages(stream));
    let client = world.connect(ADDRESS);
    client.send([message("one"), message("two")].concat());
    server.run(&world);
    assert_eq!(client.received_segments(), [10]);
    assert_eq!(client.received(), b"<one><two>");
}

#[test]
fn waiting_for_more_than_the_window_widens_it() {
    let world = World::new(1);
    world.set_link(Link::with_window(10));
    let mut server = start(&world, |stream, _| echo_messages(stream));
    let client = world.connect(ADDRESS);
    let text = "x".repeat(200);
    client.send(message(&text));
    server.run(&world);
    assert_eq!(client.received().len(), 202);
}

#[test]
fn a_client_that_never_reads_stalls_the_server_after_a_window() {
    let world = World::new(1);
    world.set_link(Link::with_window(1000));
    let progress = Rc::new(Cell::new((0, 0)));
    let seen = Rc::clone(&progress);
    let mut server = start(&world, move |stream, _| {
        let seen = Rc::clone(&seen);
        async move {
            stream.write(Payload::Copy(&[b'x'; 5000]));
            let _ = stream.drained(2500).await;
            seen.set((stream.sent(), stream.queued()));
            stream.drained(0).await.unwrap();
            seen.set((stream.sent(), stream.queued()));
        }
    });
    let client = world.connect(ADDRESS);
    client.stop_reading();
    client.at(10 * MS).read_at_rate(1000);
    server.run_to(&world, 9 * MS);
    assert_eq!((progress.get(), client.received().len()), ((0, 0), 0));
    server.run_to(&world, 1500 * MS);
    assert_eq!((client.received().len(), progress.get()), (1490, (0, 0)));
    server.run_to(&world, 1510 * MS);
    assert_eq!(
        (client.received().len(), progress.get()),
        (1500, (2500, 2500))
    );
    server.run(&world);
    assert_eq!((client.received().len(), progress.get()), (5000, (5000, 0)));
    assert!(client.is_closed());
    assert_eq!(world.elapsed(), 5010 * MS);
}

#[test]
fn a_server_that_does_not_read_stalls_the_client() {
    let world = World::new(1);
    world.set_link(Link::with_window(1000));
    let mut server = start(&world, |stream, scheduler| async move {
        scheduler.sleep(20 * MS).await;
        echo(stream).await;
    });
    let client = world.connect(ADDRESS);
    client.send([b'x'; 3000]);
    server.run_to(&world, 19 * MS);
    assert_eq!(client.unsent(), 2000);
    server.advance(&world, 2 * MS);
    assert_eq!((client.unsent(), client.received().len()), (0, 3000));
}

#[test]
fn a_stream_closed_over_bytes_that_it_never_looked_at_is_reset() {
    let world = World::new(1);
    let mut server = start(&world, |stream, scheduler| async move {
        stream.write(Payload::Copy(b"413"));
        stream.drained(0).await.unwrap();
        scheduler.sleep(5 * MS).await;
    });
    let client = world.connect(ADDRESS);
    client.send(b"a large body");
    server.run_until_idle(&world);
    assert_eq!(client.received(), b"413");
    assert!(client.was_reset() && !client.is_closed());
}

#[test]
fn bytes_for_a_closed_stream_are_answered_with_rst() {
    let world = World::new(1);
    let mut server = start(&world, |_stream, _| async {});
    let client = world.connect(ADDRESS);
    client.at(MS).send(b"anybody?");
    server.run(&world);
    assert_eq!(client.ended_at(), Some(Duration::ZERO), "FIN came at once");
    assert!(client.was_reset());
}

#[test]
fn reset_on_close_forgets_what_was_not_sent() {
    let world = World::new(1);
    world.set_link(Link::with_window(4));
    let mut server = start(&world, |stream, _| async move {
        stream.write(Payload::Copy(b"0123456789"));
        let _ = stream.drained(8).await;
        stream.set(StreamOption::ResetOnClose).unwrap();
    });
    let client = world.connect(ADDRESS);
    client.stop_reading();
    client.at(MS).read_on();
    server.run(&world);
    assert!(client.was_reset());
    assert_eq!(client.received(), b"0123");
}

#[test]
fn a_closed_stream_still_sends_what_fits_the_window() {
    let world = World::new(1);
    world.set_link(Link {
        window_bytes: 4,
        segments: Segments::UpTo(3),
        ..Link::IDEAL
    });
    let mut server = start(&world, |stream, _| async move {
        stream.write(Payload::Copy(b"0123456789"));
    });
    let client = world.connect(ADDRESS);
    server.run(&world);
    assert_eq!(
        (client.received(), client.is_closed()),
        (b"0123".to_vec(), true)
    );
    assert!(
        world.ladder().contains("6 bytes did not fit"),
        "{}",
        world.ladder()
    );
}

#[test]
fn bytes_that_were_looked_at_and_left_do_not_make_a_close_a_reset() {
    let world = World::new(1);
    let mut server = start(&world, |stream, _| async move {
        stream.readable(6).await.unwrap();
        stream.read(|bytes| (bytes.len() - 1, ()));
        stream.write(Payload::Copy(b"bye"));
    });
    let client = world.connect(ADDRESS);
    client.send(b"one").send(b"two");
    server.run(&world);
    assert_eq!(client.received(), b"bye");
    assert!(client.is_closed() && !client.was_reset());
}
