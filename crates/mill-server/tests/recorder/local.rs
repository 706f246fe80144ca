//! A worker's shared part over simulated files, and requests to it without a connection.

use super::{Recorder, done};
use mill_config::{Memory, Options, load};
use mill_http::h1::parse::{Parsed, parse_request};
use mill_http::limits::HeadRules;
use mill_metrics::Board;
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Scheduler;
use mill_server::local::{Environment, Local, Shared};
use mill_server::log::LogSender;
use mill_server::request::{self, Arrival, ConnectionFacts, Message, Request};
use mill_server::site::Site;
use mill_server::wakes::Doorbell;
use mill_sim::engine::SimEngine;
use mill_sim::world::World;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;

/// Where the server listens: the port shows in redirects.
pub(crate) const ADDRESS: &str = "127.0.0.1:8123";

/// The shared part for a configuration, and its log lines.
pub(crate) fn start(
    world: &World,
    text: &str,
    utc_offset: fn(i64) -> i32,
) -> (Rc<Local<SimEngine>>, LogSender) {
    let mut options = Options::default();
    options.paths.prefix = b"/".to_vec();
    let source = Memory::new().with(&*options.conf_file(), text);
    let config = match load(&source, &options) {
        Ok(loaded) => loaded.config,
        Err(failure) => panic!("{:?}\n{text}", failure.error),
    };
    let engine = world.engine();
    let (now, wall_clock) = engine.clock();
    let logs = LogSender::memory();
    let shared = Shared {
        index: 0,
        environment: Environment {
            pid: 100,
            parent_pid: 99,
            thread_id: 100,
            hostname: Arc::from(&b"sim"[..]),
            utc_offset,
            connection_numbers: Arc::default(),
        },
        logs: logs.clone(),
        board: Board::in_memory(1),
        doorbell: Doorbell::silent(),
    };
    let scheduler = Scheduler::new(now, wall_clock);
    let site = Arc::new(Site::new(config, 1));
    (Local::new(engine, scheduler, site, shared), logs)
}

/// Handles the request with this head.
pub(crate) fn handle(text: String, world: &World, local: &Local<SimEngine>) -> Recorder {
    let mut message = Message::default();
    let parsed = parse_request(text.as_bytes(), &mut message.head, &HeadRules::default());
    assert!(
        matches!(parsed, Parsed::Complete { .. }),
        "{text}: {parsed:?}"
    );
    message.bytes = text.into_bytes();
    let arrival = Arrival {
        connection: Rc::new(ConnectionFacts {
            number: 1,
            listener: 0,
            peer: Address::Ip("127.0.0.1:50000".parse().expect("an address")),
            reached: OnceCell::new(),
            listening_at: world.address(ADDRESS),
            proxy_header: None,
            transport: Cell::new(None),
            misses: Default::default(),
            tls: OnceCell::new(),
            lacks_tls: Cell::new(false),
            started: world.now(),
            is_free: false,
        }),
        listener: 0,
        connection_requests: 1,
        message,
        pipelined: false,
    };
    let request = Request::new(arrival, local).expect("the listener is there");
    let mut recorder = Recorder::default();
    done(request::handle(&mut recorder, request, local));
    recorder
}

/// Level and message of an error log line, without nginx's details of the request.
pub(crate) fn message_of(line: &str) -> String {
    let (_, rest) = line.split_once('[').expect("a level");
    let (level, rest) = rest.split_once("] ").expect("a level");
    let (_, message) = rest.split_once(": *1 ").expect("the connection's number");
    let (message, _) = message.rsplit_once(", client: ").expect("a client");
    format!("{level} {message}")
}
