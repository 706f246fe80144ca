//! Tasks that connect, and worlds with two workers.

use crate::server::{ADDRESS, start_on, start_with};
use mill_conformance::serving::echo;
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Engine, ListenOptions};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Stream, StreamError};
use mill_sim::engine::SimEngine;
use mill_sim::link::Link;
use mill_sim::world::{Until, World};
use std::rc::Rc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Passes one message on to `upstream` and the answer back.
async fn relay(
    downstream: impl Stream,
    engine: SimEngine,
    scheduler: Rc<Scheduler>,
    upstream: Address,
) -> Result<(), StreamError> {
    downstream.readable(1).await?;
    let request = downstream.read(|bytes| (bytes.len(), bytes.to_vec()));
    let upstream = engine.connect(&upstream, &ConnectOptions::default(), scheduler.current());
    let answer = async {
        let upstream = upstream?;
        upstream.drained(0).await?;
        upstream.write(Payload::Copy(&request));
        upstream.readable(request.len()).await?;
        Ok::<_, StreamError>(upstream.read(|bytes| (bytes.len(), bytes.to_vec())))
    };
    match answer.await {
        Ok(answer) => downstream.write(Payload::Copy(&answer)),
        Err(error) => downstream.write(Payload::Copy(format!("{error:?}").as_bytes())),
    }
    Ok(())
}

fn relayed(target: &str, streams_max: usize, expected: &str, elapsed: Duration) {
    let world = World::new(1);
    world.set_link(Link::delayed(10 * MS));
    let origin_options = ListenOptions::new(world.address("10.0.0.2:8080"));
    let mut origin = start_with(&world, &origin_options, |stream, _| echo(stream));
    let engine = world.engine();
    engine.set_streams_max(streams_max);
    let target = world.address(target);
    let options = ListenOptions::new(world.address(ADDRESS));
    let mut proxy = start_on(engine.clone(), &options, |stream, scheduler| {
        let (engine, target) = (engine.clone(), target.clone());
        async move {
            let _ = relay(stream, engine, scheduler, target).await;
        }
    });
    let client = world.connect(ADDRESS);
    client.send(b"hello");
    let turns = || {
        proxy.worker.turn();
        origin.worker.turn();
    };
    world.run(turns, Until::Quiet);
    assert_eq!(client.received().escape_ascii().to_string(), expected);
    assert_eq!(client.ended_at(), Some(elapsed));
}

#[test]
fn a_task_connects_to_a_listener_of_another_worker() {
    // Three ways to connect and send, a round trip to connect upstream, one for the message, one way back.
    relayed("10.0.0.2:8080", usize::MAX, "hello", 80 * MS);
}

#[test]
fn a_refused_connection_is_an_error_of_the_stream() {
    relayed("10.0.0.2:8081", usize::MAX, "Refused", 60 * MS);
}

#[test]
fn without_a_descriptor_left_connecting_fails_at_once() {
    relayed("10.0.0.2:8080", 1, "Other(24)", 40 * MS);
}

#[test]
fn time_waits_for_the_timers_of_every_worker() {
    let world = World::new(1);
    let naps = [
        ("10.0.0.1:80", 30),
        ("10.0.0.2:80", 10),
        ("10.0.0.3:80", 20),
    ];
    let mut servers = naps.map(|(address, nap)| {
        let options = ListenOptions::new(world.address(address));
        start_with(&world, &options, move |stream, scheduler| async move {
            let _open = stream;
            scheduler.sleep(nap * MS).await;
            scheduler.sleep(nap * MS).await;
        })
    });
    let clients = naps.map(|(address, _)| world.connect(address));
    let turns = || {
        for server in &mut servers {
            server.worker.turn();
        }
    };
    world.run(turns, Until::Idle);
    let ended = clients.map(|client| client.ended_at().unwrap());
    assert_eq!(ended, [60 * MS, 20 * MS, 40 * MS]);
}
