//! A new configuration while the server runs.

use crate::answer::{answer, answers};
use crate::server::{ADDRESS, MS, SECOND, Server, in_http, one_server};
use mill_server::worker::Report;
use mill_sim::link::Link;
use mill_sim::world::World;

const GET: &str = "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";

fn named(name: &str) -> String {
    one_server(&format!("add_header X-Name {name};"))
}

fn start(text: &str) -> Server {
    Server::configured(World::new(1), text, 1)
}

fn names(received: &[u8]) -> Vec<String> {
    let answers = answers(received);
    let name = |answer: &crate::answer::Answer| answer.field("X-Name").unwrap_or("-").to_string();
    answers.iter().map(name).collect()
}

#[test]
fn a_request_under_way_keeps_its_configuration_and_the_next_one_has_the_new() {
    let mut server = start(&named("old"));
    server.files().set_latency(10 * MS);
    let client = server.connect();
    client.send(GET);
    server.run_to(5 * MS);
    server.adopt(&named("new"));
    client.at(50 * MS).send(GET);
    server.run();
    assert_eq!(names(&client.received()), ["old", "new"]);
    assert!(!client.is_closed());
    let reports = server.workers[0].reports();
    let adopted = |generation| Report::Adopted {
        index: 0,
        generation,
    };
    assert_eq!(reports, [adopted(1), adopted(2)]);
}

#[test]
fn an_answer_that_is_being_sent_is_sent_to_its_end() {
    let mut server = start(&named("old"));
    let client = server.connect();
    client
        .read_at_rate(500_000)
        .send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    server.run_to(SECOND);
    server.adopt(&one_server("root /nowhere; send_timeout 1;").replacen("root /site;", "", 1));
    client
        .at(SECOND + MS)
        .send("GET /none HTTP/1.1\r\nHost: a\r\n\r\n");
    server.run();
    let answers = answers(&client.received());
    assert!(answers[0].content == crate::server::big());
    assert_eq!(answers[1].status, 404);
}

#[test]
fn a_head_that_is_half_here_is_answered_by_the_new_configuration() {
    let mut server = start(&named("old"));
    let client = server.connect();
    client.send("GET /a.txt HTTP/1.1\r\nHo");
    server.run();
    server.adopt(&named("new"));
    client.at(10 * MS).send("st: a\r\n\r\n");
    server.run();
    assert_eq!(names(&client.received()), ["new"]);
}

#[test]
fn idle_connections_stay_open_over_a_reload() {
    let mut server = start(&named("old"));
    let clients: Vec<_> = (0..10).map(|_| server.connect()).collect();
    for client in &clients {
        client.send(GET);
    }
    server.run();
    for _ in 0..5 {
        server.adopt(&named("new"));
        server.run();
    }
    for client in &clients {
        assert!(!client.is_closed());
        client.send(GET);
    }
    server.run();
    for client in &clients {
        assert_eq!(names(&client.received()), ["old", "new"]);
    }
    assert_eq!(server.counters().connections_accepted, 10);
}

fn two_ports(second: &str) -> String {
    in_http(&format!(
        "server {{ listen {ADDRESS}; root /site; add_header X-Name x; }} {second}"
    ))
}

const SECOND_PORT: &str = "server { listen 10.0.0.1:81; root /site; add_header X-Name second; }";

#[test]
fn a_new_listener_is_opened_and_one_that_is_gone_is_closed() {
    let mut server = start(&two_ports(""));
    assert!(ask_81(&mut server).was_refused());
    server.adopt(&two_ports(SECOND_PORT));
    server.run();
    assert_eq!(names(&ask_81(&mut server).received()), ["second"]);
    server.adopt(&two_ports(""));
    server.run();
    assert!(ask_81(&mut server).was_refused());
    server.adopt(&two_ports(SECOND_PORT));
    server.run();
    assert_eq!(names(&ask_81(&mut server).received()), ["second"]);
}

fn ask_81(server: &mut Server) -> mill_sim::client::Client {
    let client = server.world.connect("10.0.0.1:81");
    client.send(GET);
    server.run();
    client
}

#[test]
fn idle_connections_of_a_removed_listener_end_and_others_stay() {
    let mut server = start(&two_ports(SECOND_PORT));
    let stays = server.connect();
    stays.send(GET);
    let ends = ask_81(&mut server);
    server.adopt(&two_ports(""));
    server.run();
    assert!(ends.is_closed() && !ends.was_reset());
    assert!(!stays.is_closed());
    assert_eq!(names(&ends.received()), ["second"]);
    assert_eq!(server.streams(), 1);
}

#[test]
fn a_request_under_way_on_a_removed_listener_is_answered() {
    let mut server = start(&two_ports(SECOND_PORT));
    server.files().set_latency(10 * MS);
    let client = server.world.connect("10.0.0.1:81");
    client.send(GET);
    server.run_to(5 * MS);
    server.adopt(&two_ports(""));
    server.run();
    assert_eq!(names(&client.received()), ["second"]);
    server.run_to(SECOND);
    assert!(client.is_closed(), "and then the connection ends");
    server.assert_nothing_left(0);
}

#[test]
fn a_client_connected_to_a_removed_listener_is_answered() {
    let mut server = start(&two_ports(SECOND_PORT));
    // One has connected and sent nothing yet, one has sent half of a head, one arrives with the reload.
    server.world.set_link(Link::delayed(5 * MS));
    let silent = server.world.connect("10.0.0.1:81");
    let half = server.world.connect("10.0.0.1:81");
    half.send("GET /a.txt HTTP/1.1\r\n");
    server.run();
    let waiting = server.world.connect("10.0.0.1:81");
    waiting.send(GET);
    server.adopt(&two_ports(""));
    let now = server.world.elapsed();
    half.at(now + 50 * MS).send("Host: a\r\n\r\n");
    silent.at(now + 50 * MS).send(GET);
    server.run_to(now + SECOND);
    for (name, client) in [("half", half), ("silent", silent)] {
        assert_eq!(names(&client.received()), ["second"], "{name}");
        assert!(client.is_closed() && !client.was_reset(), "{name}");
    }
    // The third came after the listener was closed or before: answered or refused, never in between.
    let refused = waiting.was_refused() || waiting.was_reset();
    assert!(refused || names(&waiting.received()) == ["second"]);
    server.assert_nothing_left(0);
}

#[test]
fn a_client_that_waits_to_be_accepted_at_a_removed_listener_is_answered() {
    let mut server = start(&two_ports(SECOND_PORT));
    server.run();
    // They and the order arrive at the same instant: the order is carried out in the turn that could accept them.
    let clients: Vec<_> = (0..20)
        .map(|_| server.world.connect("10.0.0.1:81"))
        .collect();
    for client in &clients {
        client.send(GET);
    }
    server.adopt(&two_ports(""));
    server.run_to(SECOND);
    for (index, client) in clients.iter().enumerate() {
        assert_eq!(names(&client.received()), ["second"], "client {index}");
    }
}

#[test]
fn an_address_in_use_is_reported_and_the_rest_is_served() {
    let world = World::new(1);
    let other = world.engine();
    let options = mill_runtime::engine::ListenOptions {
        share: Some(7),
        ..mill_runtime::engine::ListenOptions::new(world.address("10.0.0.1:81"))
    };
    mill_runtime::engine::Engine::listen(&other, &options).unwrap();
    let mut server = Server::configured(world, &two_ports(SECOND_PORT), 1);
    assert_eq!(answer(&server.ask(GET)).status, 200);
    let reports = server.workers[0].reports();
    let Some(Report::Failed { index: 0, what }) = reports.first() else {
        panic!("not {reports:?}")
    };
    assert!(
        what.contains("bind()") && what.contains("10.0.0.1:81") && what.contains("98"),
        "{what}"
    );
}

#[test]
fn limits_of_heads_are_the_new_ones() {
    let mut server = start(&one_server("large_client_header_buffers 4 8k;"));
    let client = server.connect();
    let long = format!(
        "GET /a.txt?{} HTTP/1.1\r\nHost: a\r\n\r\n",
        "x".repeat(5000)
    );
    client.send(&long);
    server.run();
    server.adopt(&one_server("large_client_header_buffers 4 2k;"));
    server.run();
    client.send(&long);
    server.run();
    let statuses: Vec<u16> = answers(&client.received())
        .iter()
        .map(|a| a.status)
        .collect();
    assert_eq!(statuses, [200, 414]);
}

#[test]
fn idle_connections_of_a_port_that_returns_are_not_kept_from_it() {
    let mut server = start(&two_ports(SECOND_PORT));
    for _ in 0..3 {
        let client = ask_81(&mut server);
        assert_eq!(names(&client.received()), ["second"]);
        server.adopt(&two_ports(""));
        server.run();
        assert!(client.is_closed());
        server.adopt(&two_ports(SECOND_PORT));
        server.run();
    }
    let stays = ask_81(&mut server);
    server.adopt(&two_ports(SECOND_PORT));
    server.run();
    assert!(!stays.is_closed());
}

#[test]
fn a_hot_answer_of_one_port_is_not_given_at_another_after_a_reload() {
    let text = |first: &str, second: &str| {
        in_http(&format!(
            "open_file_cache max=9;
             server {{ listen 10.0.0.1:80; root /site; add_header X-Name {first}; }}
             server {{ listen 10.0.0.1:81; root /site; add_header X-Name {second}; }}"
        ))
    };
    let mut server = start(&text("a", "b"));
    let (one, two) = (server.connect(), server.world.connect("10.0.0.1:81"));
    for text in [text("c", "d"), text("e", "f"), text("g", "h")] {
        for _ in 0..2 {
            one.send(GET);
            two.send(GET);
            server.run();
        }
        server.adopt(&text);
        server.run();
    }
    assert_eq!(names(&one.received()), ["a", "a", "c", "c", "e", "e"]);
    assert_eq!(names(&two.received()), ["b", "b", "d", "d", "f", "f"]);
}

#[test]
fn a_hundred_reloads_under_requests_lose_none() {
    let mut server = start(&two_ports(SECOND_PORT));
    server.world.set_link(Link {
        delay: 3 * MS,
        jitter: 2 * MS,
        ..Link::IDEAL
    });
    server.files().set_latency(2 * MS);
    let mut clients = Vec::new();
    for round in 0..100 {
        let at = round * 7 * MS;
        server.run_to(at);
        let client = server.world.connect_at(at, ADDRESS);
        for request in 0..10 {
            client.at(at + request * 13 * MS).send(GET);
        }
        clients.push(client);
        let second = if round % 2 == 0 { "" } else { SECOND_PORT };
        server.adopt(&two_ports(second));
    }
    server.run();
    for (index, client) in clients.iter().enumerate() {
        assert_eq!(names(&client.received()), ["x"; 10], "client {index}");
        assert!(!client.is_closed() && !client.was_reset());
    }
}
