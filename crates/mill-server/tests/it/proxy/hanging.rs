//! A group whose server never answers, beside one whose server does.

use super::origin::{self, Act, ok};
use super::{ORIGIN, OTHER, content};
use crate::server::{ADDRESS, MS, SECOND, Server};
use mill_sim::client::Client;
use mill_sim::world::World;
use std::time::Duration;

const HUNG: usize = 10_000;

fn start() -> Server {
    let text = format!(
        "error_log /error.log crit; events {{ worker_connections 30000; }}
         http {{ access_log off;
             upstream hangs {{ server {ORIGIN}; }}
             upstream answers {{ server {OTHER}; keepalive 1; }}
             server {{
                 listen {ADDRESS};
                 location /hangs {{ proxy_pass http://hangs; proxy_read_timeout 5s; }}
                 location / {{ proxy_pass http://answers; }}
             }} }}"
    );
    let mut server = Server::configured(World::new(1), &text, 1);
    let (turn, _) = origin::start(&server.world, ORIGIN, |_, _| vec![Act::Hang]);
    server.add_peer(turn);
    let answer = |_, _: &str| vec![Act::Wait(10 * MS), ok("answered")];
    let (turn, _) = origin::start(&server.world, OTHER, answer);
    server.add_peer(turn);
    server
}

fn ask(server: &Server, path: &str, at: Duration) -> Client {
    let client = server.connect().at(at);
    client.send(format!(
        "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    ));
    client
}

#[test]
fn ten_thousand_requests_to_a_server_that_hangs_delay_no_other_group() {
    let mut server = start();
    let mut hung = Vec::new();
    // Fewer at once than wait to be accepted.
    for at in (1..).map(|number| MS * number).take(HUNG / 200) {
        hung.extend((0..200).map(|_| ask(&server, "/hangs", at)));
        server.run_to(at);
    }
    server.run_to(SECOND);
    // Clients and connections to the server.
    assert_eq!(server.streams(), 2 * HUNG);
    for number in 0..100_u32 {
        let at = SECOND + MS * (20 * number);
        let client = ask(&server, "/", at);
        server.run_to(at + 11 * MS);
        let answer = String::from_utf8(client.received()).expect("it is text");
        assert_eq!(content(&answer), "answered", "{number}");
    }
    assert_eq!(server.streams(), 2 * HUNG, "all of them still wait");
    server.run_to(6 * SECOND);
    let timed_out = |client: &&Client| client.received().starts_with(b"HTTP/1.1 504 ");
    assert_eq!(hung.iter().filter(timed_out).count(), HUNG);
}
