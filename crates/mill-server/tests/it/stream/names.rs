//! Servers that are known by their names.

use super::peer::Act;
use super::{Passing, in_stream, peer};
use crate::proxy::name_server::{self, NAME_SERVER};
use crate::server::{ADDRESS, SECOND, Server};
use crate::zone::{A as ADDRESS_RECORD, Asked, Record};
use mill_sim::world::World;
use std::time::Duration;

const WHERE: &str = "10.0.1.1:1000";

/// `b.example` is at 10.0.1.1 for ten seconds, and from then on at 10.0.1.2.
fn moving(asked: &Asked, elapsed: Duration) -> Vec<u8> {
    if asked.name != "b.example" {
        return asked.failure(3);
    }
    let last = if elapsed < 10 * SECOND { 1 } else { 2 };
    let record = Record::a(&asked.name, 5, [10, 0, 1, last]);
    let records: &[Record] = if asked.kind == ADDRESS_RECORD {
        &[record]
    } else {
        &[]
    };
    asked.reply(records)
}

fn passing(directives: &str) -> Passing {
    let world = World::new(3);
    let (mut turn, _) = name_server::start(&world, moving);
    turn();
    let text = in_stream(&format!("resolver {NAME_SERVER}; {directives}"));
    let mut server = Server::configured(world, &text, 1);
    server.add_peer(turn);
    let (turn, seen) = peer::start(&server.world, WHERE, vec![Act::Echo]);
    server.add_peer(turn);
    Passing { server, seen }
}

/// What one session gets, and how its line begins.
fn session(passing: &mut Passing) -> (Vec<u8>, String) {
    let before = passing.server.world.elapsed();
    let client = passing.connect();
    client.send("hi");
    passing.server.run_to(before + SECOND);
    client.finish();
    passing.server.run_to(before + 2 * SECOND);
    let line = passing.sessions().pop().expect("a session has ended");
    (client.received(), line)
}

#[test]
fn a_name_in_a_variable_is_resolved_for_the_session() {
    let server = |name: &str| {
        format!(
            "server {{ listen {ADDRESS}; set $a {name}; proxy_pass $a:1000; resolver_timeout 3s; }}"
        )
    };
    let mut known = passing(&server("b.example"));
    let (received, line) = session(&mut known);
    assert_eq!(received, b"hi");
    assert!(
        line.contains(&format!(" 200 2/2 1.000 {WHERE} 2/2 ")),
        "{line}"
    );
    let mut unknown = passing(&server("c.example"));
    let (received, line) = session(&mut unknown);
    assert_eq!(received, b"");
    assert!(line.contains(" 500 0/0 "), "{line}");
    assert!(unknown.server.has_logged(
        "c.example could not be resolved (3: Host not found), client: 198.51.100.1, server: 10.0.0.1:80, bytes from/to"
    ));
    let text = in_stream(&format!(
        "server {{ listen {ADDRESS}; set $a b.example; proxy_pass $a:1000; }}"
    ));
    let mut without = Passing::configured(&text, Vec::new());
    assert!(session(&mut without).1.contains(" 500 0/0 "));
    assert!(
        without
            .server
            .has_logged("no resolver defined to resolve b.example, client: ")
    );
}

#[test]
fn the_servers_of_a_group_follow_their_name() {
    let mut passing = passing(&format!(
        "upstream u {{ zone z 64k; server b.example:1000 resolve; }} server {{ listen {ADDRESS}; proxy_pass u; }}"
    ));
    let (turn, moved) = peer::start(&passing.server.world, "10.0.1.2:1000", vec![Act::Echo]);
    passing.server.add_peer(turn);
    passing.server.run_to(SECOND);
    assert_eq!(session(&mut passing).0, b"hi");
    assert_eq!((passing.seen.connections(), moved.connections()), (1, 0));
    passing.server.run_to(30 * SECOND);
    assert_eq!(session(&mut passing).0, b"hi");
    assert_eq!((passing.seen.connections(), moved.connections()), (1, 1));
}
