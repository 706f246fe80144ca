//! What the world lets a test do: time, options, the ladder.

use crate::server::{ADDRESS, start};
use mill_conformance::serving::{echo, echo_messages, message};
use mill_runtime::engine::{Engine, Events, Park};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamOption, Unsupported};
use mill_runtime::time::UnixTime;
use mill_sim::link::{Link, Segments};
use mill_sim::world::{Until, World};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

#[test]
fn the_ladder_tells_what_arrived_when() {
    let world = World::new(1);
    world.set_link(Link::delayed(5 * MS));
    let mut server = start(&world, |stream, _| echo_messages(stream));
    let client = world.connect(ADDRESS);
    client.send(message("hi")).finish();
    let stranger = world.connect_at(30 * MS, "[::1]:81");
    stranger.at(60 * MS).send("x");
    server.run(&world);
    let expected = "     \
     5.000 ms   1 > connects to 10.0.0.1:80
    15.000 ms   1 > 3 bytes \"\\x02hi\"
    15.000 ms   1 > FIN
    20.000 ms   1 < 4 bytes \"<hi>\"
    20.000 ms   1 < FIN
    35.000 ms   2 > connects to [::1]:81: refused
    40.000 ms   2 < refused
";
    assert_eq!(world.ladder(), expected);
}

#[test]
fn bandwidth_takes_time_from_every_segment() {
    let world = World::new(1);
    let link = Link {
        bytes_per_second: Some(1_000_000),
        delay: 2 * MS,
        ..Link::IDEAL
    };
    world.set_link(Link {
        segments: Segments::UpTo(1000),
        ..link
    });
    let mut server = start(&world, |stream, _| async move {
        stream.write(Payload::Copy(&[b'x'; 10_000]));
    });
    let client = world.connect(ADDRESS);
    server.run(&world);
    assert_eq!(client.received().len(), 10_000);
    assert_eq!(client.ended_at(), Some(2 * MS + 10 * MS + 2 * MS));
}

#[test]
fn the_same_seed_makes_the_same_ladder_and_another_seed_another() {
    let ladder = |seed| {
        let world = World::new(seed);
        let segments = Segments::Random(9);
        world.set_link(Link {
            delay: MS,
            jitter: MS,
            segments,
            ..Link::IDEAL
        });
        let mut server = start(&world, |stream, _| echo(stream));
        for _ in 0..5 {
            world.connect(ADDRESS).send([b'x'; 500]).finish();
        }
        server.run(&world);
        (world.ladder(), server.worker.engine().random())
    };
    assert_eq!(ladder(7), ladder(7));
    assert_ne!(ladder(7).0, ladder(8).0);
    assert_ne!(ladder(7).1, ladder(8).1);
}

#[test]
fn civil_time_moves_with_virtual_time_and_can_be_set() {
    let world = World::new(1);
    let mut server = start(&world, |stream, _| echo(stream));
    let at = |seconds, nanos| UnixTime { seconds, nanos };
    assert_eq!(world.wall_clock(), at(1_767_225_600, 0));
    server.advance(&world, 1500 * MS);
    assert_eq!(world.wall_clock(), at(1_767_225_601, 500_000_000));
    world.set_wall_clock(at(1000, 250_000_000));
    assert_eq!(world.wall_clock(), at(1000, 250_000_000));
    server.advance(&world, 800 * MS);
    assert_eq!(world.wall_clock(), at(1001, 50_000_000));
    assert_eq!(world.elapsed(), 2300 * MS);
}

#[test]
fn an_idle_world_steps_exactly_as_far_as_it_is_told() {
    let world = World::new(1);
    let mut server = start(&world, |stream, scheduler| async move {
        let _open = stream;
        scheduler.sleep(Duration::from_secs(3600)).await;
    });
    let client = world.connect(ADDRESS);
    server.run(&world);
    server.advance(&world, Duration::from_secs(3599));
    assert_eq!(
        (world.elapsed(), client.is_closed()),
        (Duration::from_secs(3599), false)
    );
    server.advance(&world, Duration::from_secs(1));
    assert!(client.is_closed());
}

#[test]
fn the_test_acts_between_the_servers_acts() {
    let world = World::new(1);
    let mut server = start(&world, |stream, _| echo(stream));
    let client = world.connect(ADDRESS);
    let later = client.clone();
    world.at(20 * MS, move || {
        later.send(b"second");
    });
    client.at(10 * MS).send(b"first ");
    server.run(&world);
    assert_eq!(
        (client.take_received(), world.elapsed()),
        (b"first second".to_vec(), 20 * MS)
    );
    assert_eq!(client.received(), b"");
}

#[test]
fn a_stream_option_that_the_world_lacks_is_refused_whatever_its_value() {
    let world = World::new(1);
    world.lack_stream_option(StreamOption::NoDelay(true));
    let answers = Rc::new(Cell::new([Ok(()); 2]));
    let told = Rc::clone(&answers);
    let mut server = start(&world, move |stream, _| {
        told.set([StreamOption::NoDelay(false), StreamOption::ResetOnClose].map(|o| stream.set(o)));
        echo(stream)
    });
    world.connect(ADDRESS);
    server.run(&world);
    assert_eq!(answers.get(), [Err(Unsupported), Ok(())]);
}

#[test]
fn the_transport_is_measured_on_ip_and_unknown_on_unix_sockets() {
    for (address, rtt) in [
        ("[2001:db8::80]:80", Some(20 * MS)),
        ("unix:/run/mill", None),
    ] {
        let world = World::new(1);
        world.set_link(Link::delayed(10 * MS));
        let measured = Rc::new(Cell::new(Some(Duration::MAX)));
        let told = Rc::clone(&measured);
        let options = mill_runtime::engine::ListenOptions::new(world.address(address));
        let mut server = crate::server::start_with(&world, &options, move |stream, _| {
            told.set(stream.info().map(|info| info.rtt));
            echo(stream)
        });
        let client = world.connect(address);
        server.run(&world);
        assert_eq!(measured.get(), rtt, "{}", client.address());
    }
}

#[test]
fn mail_ends_the_wait_of_its_worker() {
    let world = World::new(1);
    let mut server = start(&world, |stream, _| echo(stream));
    let engine = server.worker.engine().clone();
    world.at(10 * MS, move || engine.post_mail());
    let mut mail_at = Vec::new();
    let turn = || {
        if server.worker.turn().mail {
            mail_at.push(world.elapsed());
        }
    };
    world.run(turn, Until::Quiet);
    assert_eq!(mail_at, [10 * MS]);
}

#[test]
fn polling_without_a_run_goes_from_event_to_event() {
    let world = World::new(1);
    let engine = world.engine();
    let mut events = Events::default();
    let started = world.now();
    engine.poll(Park::Forever, &mut events);
    assert_eq!(world.now(), started, "nothing is there to wait for");
    engine.poll(Park::Until(started + 3 * MS), &mut events);
    assert_eq!(world.elapsed(), 3 * MS);
    let mail = engine.clone();
    world.at(5 * MS, move || mail.post_mail());
    engine.poll(Park::No, &mut events);
    assert_eq!((world.elapsed(), events.mail), (3 * MS, false));
    engine.poll(Park::Forever, &mut events);
    assert_eq!((world.elapsed(), events.mail), (5 * MS, true));
}

/// What `act` panics with.
fn panic_of(act: impl FnOnce()) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
    let payload = panic.expect_err("it panics");
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string))
        .expect("a panic has a text")
}

#[test]
fn a_stream_used_while_bytes_are_lent_is_a_mistake_that_is_told() {
    let text = panic_of(|| {
        let world = World::new(1);
        let mut server = start(&world, |stream, _| async move {
            stream.read(|_| (0, stream.queued()));
        });
        world.connect(ADDRESS);
        server.run(&world);
    });
    assert!(text.contains("while `Stream::read` lends"), "{text}");
}

#[test]
fn a_task_that_never_rests_is_a_mistake_that_is_told() {
    let text = panic_of(|| {
        let world = World::new(1);
        let mut server = start(&world, |stream, scheduler| async move {
            let _open = stream;
            loop {
                scheduler.yield_now().await;
            }
        });
        let client = world.connect(ADDRESS);
        client.at(5 * MS).finish();
        server.run(&world);
    });
    assert!(text.contains("do not come to rest"), "{text}");
}

#[test]
fn a_world_without_workers_comes_to_rest() {
    let world = World::new(1);
    let client = world.connect_at(5 * MS, ADDRESS);
    world.run(|| (), Until::Quiet);
    assert!(client.was_refused() && world.is_at_rest());
    world.advance(|| (), 7 * MS);
    assert_eq!(world.elapsed(), 12 * MS);
}

/// What each of two engines does, one that wakes every 30 ms and one that waits for ever, in 100 ms of turns that run only
/// those that are due.
#[test]
fn hosts_that_are_not_due_need_no_turn_and_time_passes_without_them() {
    let world = World::new(1);
    let engines = [world.engine(), world.engine()];
    let begin = world.now();
    let mut wakes_ms = [Vec::new(), Vec::new()];
    let turn = || {
        let mut has_run = false;
        for (index, engine) in engines.iter().enumerate() {
            if !engine.is_due() {
                continue;
            }
            has_run = true;
            let now_ms = engine.now().since(begin).as_millis();
            if wakes_ms[index].last() != Some(&now_ms) {
                wakes_ms[index].push(now_ms);
            }
            let next = u32::try_from(now_ms / 30 + 1).unwrap();
            let park = match index {
                0 => Park::Until(begin + 30 * MS * next),
                _ => Park::Forever,
            };
            engine.poll(park, &mut Events::default());
        }
        if !has_run {
            world.wait();
        }
    };
    world.run(turn, Until::At(100 * MS));
    assert_eq!(world.elapsed(), 100 * MS);
    // No task waits for one that has not been polled yet: the second is when the first has waited once.
    assert_eq!(wakes_ms, [vec![0, 30, 60, 90], vec![30]]);
}
