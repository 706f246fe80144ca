//! Accepting, refusing, running out, closing.

use crate::server::{ADDRESS, start, start_with};
use mill_conformance::serving::echo;
use mill_runtime::engine::{Engine, Keepalive, ListenError, ListenOption, ListenOptions};
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use mill_runtime::worker::{Pause, Turn};
use mill_sim::client::Client;
use mill_sim::world::{Until, World};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn clients<const N: usize>(world: &World) -> [Client; N] {
    std::array::from_fn(|_| world.connect(ADDRESS))
}

#[test]
fn a_port_without_a_listener_refuses() {
    let world = World::new(1);
    let mut server = start(&world, |stream, _| echo(stream));
    let client = world.connect("10.0.0.1:81");
    server.run(&world);
    assert!(client.was_refused() && client.was_reset() && !client.is_closed());
}

#[test]
fn a_wildcard_listener_takes_what_no_exact_one_takes() {
    let world = World::new(1);
    let options = ListenOptions::new(world.address("0.0.0.0:80"));
    let mut server = start_with(&world, &options, |stream, _| async move {
        let text = format!("{} from {}", stream.local(), stream.peer());
        stream.write(Payload::Copy(text.as_bytes()));
    });
    let client = world.connect_from("192.0.2.9:7", "10.0.0.5:80");
    let stranger = world.connect("[::1]:80");
    server.run(&world);
    assert_eq!(client.received(), b"10.0.0.5:80 from 192.0.2.9:7");
    assert!(stranger.was_refused());
}

#[test]
fn beyond_the_backlog_connections_are_refused() {
    let world = World::new(1);
    let options = ListenOptions {
        backlog: 2,
        ..ListenOptions::new(world.address(ADDRESS))
    };
    let mut server = start_with(&world, &options, |stream, _| echo(stream));
    let [first, second, third] = clients(&world);
    for client in [&first, &second, &third] {
        client.send(b"x");
    }
    server.run(&world);
    assert_eq!([first.received(), second.received()], [b"x", b"x"]);
    assert!(third.was_refused());
}

#[test]
fn accepting_pauses_when_streams_run_out_and_resumes_after_half_a_second() {
    let world = World::new(1);
    let mut server = start(&world, |stream, _| echo(stream));
    server.worker.engine().set_streams_max(2);
    let [first, _second, third] = clients(&world);
    first.at(100 * MS).finish();
    third.send(b"third");

    let mut paused = Vec::new();
    let mut note = |turn: Turn| paused.extend(turn.paused);
    world.run(|| note(server.worker.turn()), Until::At(499 * MS));
    assert_eq!(paused, [Pause::Exhausted(24)]);
    assert_eq!(third.received(), b"");
    server.advance(&world, 2 * MS);
    assert_eq!(third.received(), b"third");
    assert_eq!(server.worker.engine().streams(), 2);
}

#[test]
fn a_raised_limit_of_tasks_lets_those_in_that_wait() {
    let world = World::new(1);
    let mut server = start(&world, |stream, _| echo(stream));
    server.worker.set_tasks_max(0);
    let client = world.connect(ADDRESS);
    client.send(b"hello");
    server.run(&world);
    assert_eq!(client.received(), b"");
    server.worker.set_tasks_max(1);
    server.run(&world);
    assert_eq!(client.received(), b"hello");
}

#[test]
fn a_listener_is_not_closed_over_clients_that_wait_for_a_descriptor() {
    let world = World::new(1);
    let mut server = start(&world, |stream, _| echo(stream));
    server.worker.engine().set_streams_max(1);
    let [first, second] = clients(&world);
    first.send(b"first");
    second.send(b"second");
    server.run_to(&world, MS);
    assert!(
        !server.worker.close_listener(server.listener),
        "one client still waits"
    );
    first.finish();
    server.run(&world);
    assert!(!second.was_reset());
    assert!(
        server.worker.close_listener(server.listener),
        "a descriptor is free again"
    );
    server.run(&world);
    assert_eq!(second.received(), b"second");
}

#[test]
fn a_limit_that_is_just_reached_pauses_nothing() {
    let world = World::new(1);
    let mut server = start(&world, |stream, _| echo(stream));
    server.worker.set_tasks_max(2);
    let _both: [_; 2] = clients(&world);
    let mut pauses = 0;
    world.run(
        || pauses += u32::from(server.worker.turn().paused.is_some()),
        Until::Quiet,
    );
    assert_eq!((server.worker.tasks(), pauses), (2, 0));
}

#[test]
fn a_listener_closed_by_its_engine_resets_what_waits() {
    let world = World::new(1);
    let mut server = start(&world, |stream, _| echo(stream));
    let client = world.connect(ADDRESS);
    server.worker.engine().set_accepting(server.listener, false);
    server.run(&world);
    server.worker.engine().close_listener(server.listener);
    server.run(&world);
    assert!(client.was_reset());
}

#[test]
fn a_deferred_listener_waits_for_the_first_bytes() {
    let world = World::new(1);
    let options = ListenOptions {
        deferred: true,
        ..ListenOptions::new(world.address(ADDRESS))
    };
    let mut server = start_with(&world, &options, |stream, _| echo(stream));
    let [silent, talking] = clients(&world);
    talking.at(5 * MS).send(b"hi");
    server.run(&world);
    assert_eq!(server.worker.tasks(), 1);
    assert_eq!(
        (silent.received(), talking.received()),
        (Vec::new(), b"hi".to_vec())
    );
}

#[test]
fn options_that_the_world_lacks_are_reported_when_asked_for() {
    let every = [
        ListenOption::Reuseport,
        ListenOption::Deferred,
        ListenOption::Fastopen,
        ListenOption::ReceiveBuffer,
        ListenOption::SendBuffer,
        ListenOption::Keepalive,
        ListenOption::Ipv6only,
    ];
    let world = World::new(1);
    let plain = ListenOptions::new(world.address(ADDRESS));
    let asking = ListenOptions {
        share: Some(0),
        deferred: true,
        fastopen: Some(5),
        receive_buffer_bytes: Some(4096),
        send_buffer_bytes: Some(4096),
        keepalive: Keepalive::Off,
        ipv6only: Some(true),
        ..ListenOptions::new(world.address("[::1]:80"))
    };
    let able = world.engine();
    assert_eq!(able.listen(&plain).unwrap().unsupported, []);
    let listening = able.listen(&asking).unwrap();
    assert_eq!(listening.unsupported, []);
    able.close_listener(listening.id);
    for option in every {
        world.lack_listen_option(option);
    }
    assert_eq!(able.listen(&asking).unwrap().unsupported, every);
}

#[test]
fn an_address_in_use_is_refused_unless_the_port_is_shared() {
    let world = World::new(1);
    let engine = world.engine();
    let one = ListenOptions::new(world.address(ADDRESS));
    let shared = |share| ListenOptions {
        share: Some(share),
        ..one.clone()
    };
    let in_use = Some(ListenError {
        call: "bind()",
        code: 98,
    });
    engine.listen(&shared(0)).unwrap();
    engine.listen(&shared(1)).unwrap();
    assert_eq!(engine.listen(&shared(1)).err(), in_use);
    assert_eq!(engine.listen(&one).err(), in_use);
    world.lack_listen_option(ListenOption::Reuseport);
    assert_eq!(engine.listen(&shared(2)).err(), in_use);
}

#[test]
fn connections_spread_over_the_sockets_that_share_a_port() {
    let world = World::new(1);
    let shared = |share| ListenOptions {
        share: Some(share),
        ..ListenOptions::new(world.address(ADDRESS))
    };
    let mut one = start_with(&world, &shared(0), |stream, _| echo(stream));
    let mut other = start_with(&world, &shared(1), |stream, _| echo(stream));
    let clients: [Client; 40] = clients(&world);
    for client in &clients {
        client.send(b"x");
    }
    let turns = || {
        one.worker.turn();
        other.worker.turn();
    };
    world.run(turns, Until::Quiet);
    assert!(clients.iter().all(|client| client.received() == b"x"));
    let shares = [one.worker.tasks(), other.worker.tasks()];
    assert_eq!(shares.iter().sum::<usize>(), 40);
    assert!(shares.iter().all(|share| *share > 5), "{shares:?}");
}

#[test]
fn buffers_of_a_listener_bound_what_its_connections_hold() {
    for (lacking, sent, unsent) in [(false, 1000, 2500), (true, 4000, 0)] {
        let world = World::new(1);
        if lacking {
            world.lack_listen_option(ListenOption::SendBuffer);
            world.lack_listen_option(ListenOption::ReceiveBuffer);
        }
        let options = ListenOptions {
            send_buffer_bytes: Some(1000),
            receive_buffer_bytes: Some(500),
            ..ListenOptions::new(world.address(ADDRESS))
        };
        let mut server = start_with(&world, &options, |stream, scheduler| async move {
            stream.write(Payload::Copy(&[b'x'; 4000]));
            let waiting = stream.drained(0);
            let _ = scheduler.until(scheduler.now() + 5 * MS, waiting).await;
            stream.write(Payload::Copy(stream.sent().to_string().as_bytes()));
            let _ = stream.drained(0).await;
        });
        let client = world.connect(ADDRESS);
        client.stop_reading().send([b'y'; 3000]);
        server.run_to(&world, 10 * MS);
        assert_eq!(client.unsent(), unsent);
        client.read_on();
        server.run(&world);
        let received = client.received();
        assert_eq!(received[4000..], *sent.to_string().as_bytes());
    }
}
