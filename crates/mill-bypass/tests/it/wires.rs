//! Wires that lose, and links that are full.

use crate::server::Client;
use crate::server::{MTU, PORT, Server, TestStream, network, serve_at};
use mill_conformance::End;
use mill_conformance::content::{pattern, take_all};
use mill_conformance::serving::echo;
use mill_conformance::stream_peer::turn;
use mill_runtime::address::Address;
use mill_runtime::engine::ListenOptions;
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use mill_sim::packet::ethernet::StationOptions;
use mill_sim::packet::wire::{Loss, Wire};
use std::future::Future;
use std::time::Duration;

/// A server behind a card and a wire of its own.
fn start_behind<F>(
    card: StationOptions,
    wire: Wire,
    serve: impl FnMut(TestStream) -> F + 'static,
) -> Server
where
    F: Future<Output = ()> + 'static,
{
    let network = network();
    let mut station = None;
    let (engine, _, ip) = network.host(card, |options| station = Some(options.link.station()));
    station.unwrap().set_wires(wire, wire);
    let listening = ListenOptions::new(Address::Ip((ip, PORT).into()));
    let mut serve = serve;
    serve_at(
        network,
        engine,
        &listening,
        (ip, PORT).into(),
        move |stream, _| serve(stream),
    )
}

fn check_download(card: StationOptions, wire: Wire, len: usize) -> Duration {
    let bytes = pattern(len);
    let mut server = start_behind(card, wire, move |stream| {
        let bytes = bytes.clone();
        async move {
            stream.readable(1).await.unwrap();
            take_all(&stream);
            for piece in bytes.chunks(100_000) {
                stream.write(Payload::Copy(piece));
                stream.drained(1 << 20).await.unwrap();
            }
        }
    });
    let mut client = Client::connect(server.address);
    client.send("x");
    let begun = server.now();
    server.run_until("the end", || client.ended(End::Fin));
    assert!(client.received == pattern(len));
    server.now().since(begun)
}

#[test]
fn all_bytes_pass_a_wire_that_loses_some() {
    let wire = Wire {
        loss: Loss::Random {
            per_million: 30_000,
        },
        delay: Duration::from_millis(2),
        ..Wire::IDEAL
    };
    check_download(StationOptions::new(MTU), wire, 3_000_000);
}

#[test]
fn a_device_whose_queue_is_full_is_retried() {
    let wire = Wire {
        bits_per_second: Some(100_000_000),
        ..Wire::IDEAL
    };
    let mut card = StationOptions::new(MTU);
    card.card_bytes = Some(20_000);
    let time = check_download(card, wire, 5_000_000);
    // 5 MB and headers take 0.42 s on such a wire; waiting for room costs little.
    assert!(time < Duration::from_millis(600), "{time:?}");
}

#[test]
fn a_writer_that_waits_to_be_drained_fills_a_long_path() {
    // 100 Mbit/s and 80 ms: a megabyte in flight.
    let wire = Wire {
        bits_per_second: Some(100_000_000),
        delay: Duration::from_millis(40),
        queue_bytes: 4 << 20,
        ..Wire::IDEAL
    };
    let time = check_download(StationOptions::new(MTU), wire, 30_000_000);
    // 2.5 s at full rate; slow start takes some round trips.
    assert!(time < Duration::from_millis(3_500), "{time:?}");
}

#[test]
fn an_idle_connection_lets_its_engine_sleep() {
    let mut server = start_behind(StationOptions::new(MTU), Wire::IDEAL, echo);
    let mut client = Client::connect(server.address);
    client.send("x");
    server.run_until("the answer", || client.has(b"x"));
    let begun = server.now();
    let mut turns = 0;
    while server.now().since(begun) < Duration::from_secs(600) {
        server.worker.set_alarm(begun + Duration::from_secs(600));
        server.worker.turn();
        let park = mill_runtime::engine::Park::Until(begun + Duration::from_secs(600));
        turn(&server.testbed.clients, park);
        turns += 1;
    }
    assert!(turns < 50, "{turns} turns in ten minutes of silence");
    client.send("y");
    server.run_until("the answer", || client.has(b"xy"));
}
