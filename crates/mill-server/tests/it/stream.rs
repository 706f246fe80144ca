//! `stream`: connections that are passed on as they are.

/// Which servers are tried, and what is told when none can be reached.
mod choice;
/// How sessions begin and end: `allow`, `return`, headers of the PROXY protocol, reloads.
mod life;
/// `limit_conn`.
mod limits;
/// Servers that are known by their names.
mod names;
/// Servers of any protocol.
mod peer;
/// The ClientHello, looked at.
mod preread;
/// Bytes both ways.
mod relayed;
/// Random worlds.
mod soak;

use crate::server::{ADDRESS, Server};
use mill_sim::client::Client;
use mill_sim::world::World;
use peer::{Act, Seen};
use std::rc::Rc;

/// Where the servers behind are.
const A: &str = "10.0.0.2:1000";
const B: &str = "10.0.0.3:1000";

const FORMAT: &str = "log_format all '$remote_addr $protocol $status $bytes_received/$bytes_sent $session_time \
    $upstream_addr $upstream_bytes_sent/$upstream_bytes_received $upstream_connect_time'; access_log /sessions.log all;";

/// A server of `stream`, one behind it, and clients.
struct Passing {
    server: Server,
    seen: Rc<Seen>,
}

impl Passing {
    /// One at [`ADDRESS`] that passes on to [`A`], where these acts are done.
    fn new(directives: &str, acts: Vec<Act>) -> Self {
        let text = in_stream(&format!(
            "server {{ listen {ADDRESS}; proxy_pass {A}; {directives} }}"
        ));
        Self::configured(&text, acts)
    }

    fn configured(text: &str, acts: Vec<Act>) -> Self {
        let mut server = Server::configured(World::new(1), text, 1);
        let (turn, seen) = peer::start(&server.world, A, acts);
        server.add_peer(turn);
        Self { server, seen }
    }

    /// One more server behind.
    fn add(&mut self, address: &str, acts: Vec<Act>) -> Rc<Seen> {
        let (turn, seen) = peer::start(&self.server.world, address, acts);
        self.server.add_peer(turn);
        seen
    }

    fn connect(&self) -> Client {
        self.server.connect()
    }

    /// The lines of the sessions that have ended.
    fn sessions(&self) -> Vec<String> {
        self.server.logs.lines("/sessions.log")
    }
}

/// A configuration whose `stream` block holds `directives`.
fn in_stream(directives: &str) -> String {
    format!("error_log /error.log info; events {{ }} stream {{ {FORMAT} {directives} }}")
}

/// Bytes in which no two pieces are equal.
fn payload() -> Vec<u8> {
    crate::server::big().to_vec()
}
