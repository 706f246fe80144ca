//! Limits of the worker and of the engine.

use crate::answer::answer;
use crate::server::{ADDRESS, MS, SECOND, Server, one_server};
use mill_runtime::engine::ListenOption;
use mill_sim::world::World;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn with_connections(count: usize) -> String {
    one_server("keepalive_timeout 60s;").replace(
        "events { }",
        &format!("events {{ worker_connections {count}; }}"),
    )
}

#[test]
fn beyond_worker_connections_clients_wait_for_busy_ones() {
    let mut server = Server::configured(World::new(1), &with_connections(4), 1);
    let clients: Vec<_> = (0..10).map(|_| server.connect()).collect();
    for client in &clients {
        client.send("GET / HTTP/1.1\r\nHost:");
    }
    server.run();
    assert_eq!(server.streams(), 4, "each has begun a request");
    assert!(
        clients
            .iter()
            .all(|client| !client.was_reset() && !client.was_refused())
    );
    assert!(server.has_logged("[alert] 100#101: 4 worker_connections are not enough"));
    // A client that disconnects makes room.
    for client in &clients {
        client.send(" a\r\nConnection: close\r\n\r\n");
        server.run();
    }
    for client in &clients {
        assert_eq!(answer(&client.received()).status, 200);
    }
    server.assert_nothing_left(0);
}

#[test]
fn at_worker_connections_idle_clients_make_room() {
    let mut server = Server::configured(World::new(1), &with_connections(4), 1);
    let clients: Vec<_> = (0..50).map(|_| server.connect()).collect();
    for client in &clients {
        client.send(GET);
    }
    server.run_to(MS);
    for client in &clients {
        assert_eq!(answer(&client.received()).status, 200);
        assert!(!client.was_reset());
    }
    assert!(server.has_logged("[warn] 100#101: 4 worker_connections are not enough, reusing"));
    assert!(server.streams() <= 4);
}

#[test]
fn a_connection_that_makes_room_is_asked_once() {
    let mut server = Server::configured(World::new(1), &with_connections(3), 1);
    let idle = [server.connect(), server.connect()];
    for client in &idle {
        client.send(GET);
    }
    server.run();
    let newcomers = [server.connect(), server.connect()];
    for client in &newcomers {
        client.send(GET);
    }
    server.run();
    let last = &newcomers[1];
    assert_eq!(answer(&last.received()).status, 200);
    assert!(
        !last.is_closed(),
        "32 were asked, fewer were there, and it came later"
    );
}

#[test]
fn the_pause_is_logged_once_a_second_and_counted() {
    let mut server = Server::configured(World::new(1), &with_connections(2), 1);
    for tenth in 0..20 {
        let client = server.world.connect_at(tenth * 100 * MS, ADDRESS);
        client.at(tenth * 100 * MS).send(GET);
    }
    server.run_to(2 * SECOND);
    let lines = server.error_log();
    let pauses = lines
        .iter()
        .filter(|line| line.contains("worker_connections"))
        .count();
    assert!((1..=2).contains(&pauses), "{lines:?}");
    assert!(server.counters().accept_pauses > 2);
}

#[test]
fn a_raised_limit_admits_waiting_clients() {
    let mut server = Server::configured(World::new(1), &with_connections(2), 1);
    let clients: Vec<_> = (0..5).map(|_| server.connect()).collect();
    for client in &clients {
        client.send(GET);
    }
    server.run();
    server.adopt(&with_connections(10));
    server.run();
    for client in &clients {
        assert_eq!(answer(&client.received()).status, 200);
    }
}

#[test]
fn out_of_descriptors_accepting_pauses_and_goes_on() {
    let mut server = Server::new(1, "keepalive_timeout 2s;");
    server.workers[0].engine().set_streams_max(2);
    let clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for client in &clients {
        client.send(GET);
    }
    server.run_to(MS);
    let served = |clients: &[mill_sim::client::Client]| {
        clients
            .iter()
            .filter(|client| !client.received().is_empty())
            .count()
    };
    assert_eq!(served(&clients), 2);
    let line = "accept4() failed (24: Too many open files)";
    assert!(server.has_logged(line), "{:?}", server.error_log());
    assert!(server.has_logged("[crit]"));
    assert!(server.counters().accept_pauses >= 1);
    // After two seconds the first two are idle for too long, and half a second later accepting goes on.
    server.run_to(3 * SECOND);
    assert_eq!(served(&clients), 4);
    server.run_until_idle();
    server.assert_nothing_left(0);
}

#[test]
fn an_option_that_the_engine_lacks_is_logged_and_the_rest_works() {
    let world = World::new(1);
    world.lack_listen_option(ListenOption::Fastopen);
    world.lack_listen_option(ListenOption::Deferred);
    let text = one_server("").replace(ADDRESS, "10.0.0.1:80 fastopen=16 deferred");
    let mut server = Server::configured(world, &text, 1);
    assert_eq!(answer(&server.ask(GET)).status, 200);
    let lines = server.error_log();
    let warned = |option: &str| {
        lines
            .iter()
            .any(|line| line.contains("[warn]") && line.contains(option))
    };
    assert!(warned("astopen") && warned("eferred"), "{lines:?}");
    assert!(!warned("euseport"), "it was not configured: {lines:?}");
}

#[test]
fn deferred_connections_come_with_their_first_bytes() {
    let text = one_server("client_header_timeout 3s;").replace(ADDRESS, "10.0.0.1:80 deferred");
    let mut server = Server::configured(World::new(1), &text, 1);
    let client = server.connect();
    client.at(10 * SECOND).send(GET);
    server.run_to(9 * SECOND);
    assert_eq!(server.streams(), 0);
    server.run_to(10 * SECOND);
    assert_eq!(answer(&client.received()).status, 200);
}

#[test]
fn a_unix_domain_socket_is_served_as_well() {
    let text = one_server("").replace(ADDRESS, "unix:/run/site.sock");
    let mut server = Server::configured(World::new(1), &text, 1);
    let client = server.world.connect("unix:/run/site.sock");
    client.send(GET);
    server.run();
    assert_eq!(answer(&client.received()).text(), "home\n");
}

#[test]
fn ten_thousand_connections_at_once_are_served() {
    let text = one_server("open_file_cache max=9; keepalive_timeout 10s;")
        .replace("events { }", "events { worker_connections 20000; }")
        .replace(ADDRESS, "10.0.0.1:80 backlog=20000");
    let mut server = Server::configured(World::new(1), &text, 1);
    let clients: Vec<_> = (0..10_000).map(|_| server.connect()).collect();
    for client in &clients {
        client.send(GET);
    }
    server.run();
    assert_eq!(server.streams(), 10_000);
    assert!(
        clients
            .iter()
            .all(|client| client.received().ends_with(b"home\n"))
    );
    server.run_until_idle();
    server.assert_nothing_left(1);
    assert_eq!(server.world.elapsed(), 10 * SECOND);
}
