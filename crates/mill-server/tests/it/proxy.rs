//! A server that passes requests on, between simulated clients and origins.

/// Answers, and their contents.
mod answers;
/// The API.
mod api;
/// What comes before and after an answer.
mod around;
/// What the origin is asked.
mod asked;
/// The near end of connections to the origin.
mod binding;
/// Servers that break off, are slow, or are all gone.
mod broken;
/// Answers that are kept.
mod caching;
/// What logs and variables tell of an answer.
mod counted;
/// What the log tells at level debug.
mod decisions;
/// Servers that fail, and clients that go.
mod faults;
/// A server that hangs, beside others.
mod hanging;
/// Health checks.
mod health;
/// Clients that leave.
mod leaving;
/// Readers that forgive what is forbidden.
mod lenient;
/// How much is read of an answer, and how fast.
mod limits;
/// A server of DNS that replies as a test says.
pub(crate) mod name_server;
/// Names that are resolved while the server runs.
mod names;
/// Origins that do what a test says.
pub(crate) mod origin;
/// Tables of messages.
mod payload;
/// The header of the PROXY protocol to origins.
mod proxy_header;
/// Requests that wait for a server.
mod queue;
/// Requests of a session go to one server.
mod sessions;
/// Messages that two readers could divide in different places.
mod smuggling;
/// Copies of answers as files.
mod stored;
/// Contents that memory has no room for.
mod temporary;
/// What is logged of them.
mod tunnel_logs;
/// Connections after 101.
mod tunnels;
/// What fast connections leave to others.
mod turns;

use crate::server::{Server, in_http};
use mill_sim::world::World;
use origin::{Act, Seen};
use std::rc::Rc;

pub(crate) const ORIGIN: &str = "10.0.0.2:80";
pub(crate) const OTHER: &str = "10.0.0.3:80";

/// A proxy before one origin.
struct Proxy {
    server: Server,
    seen: Rc<Seen>,
}

impl Proxy {
    /// `directives` are those of the server; they pass requests to `http://app`, which is the origin.
    fn new(directives: &str, script: impl Fn(usize, &str) -> Vec<Act> + 'static) -> Self {
        Self::with_upstream(&format!("server {ORIGIN};"), directives, script)
    }

    fn with_upstream(
        upstream: &str,
        directives: &str,
        script: impl Fn(usize, &str) -> Vec<Act> + 'static,
    ) -> Self {
        let listen = crate::server::ADDRESS;
        let text = in_http(&format!(
            "upstream app {{ {upstream} }}
             log_format up '$status $upstream_addr $upstream_status $upstream_response_length';
             log_format waits '$status $upstream_queue_time $upstream_trailer_x_sum';
             log_format times '$status $upstream_status $upstream_response_time $upstream_bytes_sent';
             server {{ listen {listen}; root /site; access_log /access.log up; {directives} }}"
        ));
        let mut server = Server::configured(World::new(1), &text, 1);
        let (turn, seen) = origin::start(&server.world, ORIGIN, script);
        server.add_peer(turn);
        Self { server, seen }
    }

    /// A request on a connection of its own; what the client has received once nothing is in flight.
    fn ask(&mut self, request: &str) -> String {
        String::from_utf8_lossy(&self.server.ask(request)).into_owned()
    }

    /// Has the origin send this as soon as a request begins to arrive.
    fn hint(&self, text: &str) {
        text.clone_into(&mut self.seen.hint.borrow_mut());
    }

    fn asked(&self) -> Vec<String> {
        self.seen.requests.borrow().clone()
    }

    fn access_log(&self) -> Vec<String> {
        self.server.logs.lines("/access.log")
    }
}

/// A location that passes everything on, with connections kept.
const KEPT: &str =
    "location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ''; }";

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// What follows the head.
fn content(answer: &str) -> &str {
    answer
        .split_once("\r\n\r\n")
        .map_or("", |(_, content)| content)
}
