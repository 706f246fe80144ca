//! The pool over simulated connections: which one is taken, which makes room, what ends one.

use super::{IdleConnections, Reuse, Scope};
use crate::peer::Peer;
use mill_config::config::Upstream;
use mill_config::config::upstream::UpstreamAddress;
use mill_config::{Memory, Options, load};
use mill_runtime::engine::{
    Accept, ConnectOptions, Engine, Events, ListenOptions, ListenerId, Park,
};
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::{Duration, Instant};
use mill_sim::engine::SimEngine;
use mill_sim::stream::SimStream;
use mill_sim::world::{Until, World};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Two servers, connections to them, and a pool.
struct Pooled {
    world: World,
    engine: SimEngine,
    listeners: [ListenerId; 2],
    accepted: RefCell<Vec<SimStream>>,
    peers: [Arc<Peer>; 2],
    pool: IdleConnections<SimStream>,
}

const TASK: TaskId = TaskId::from_bits(0);

impl Pooled {
    /// With the `keepalive…` directives of a group.
    fn new(directives: &str) -> Self {
        let world = World::new(1);
        let engine = world.engine();
        let addresses = ["10.0.0.1:80", "10.0.0.2:80"];
        let listen = |text| engine.listen(&ListenOptions::new(world.address(text)));
        let upstream = upstream(directives);
        let peer = |index: usize| {
            let server = &upstream.servers[index];
            let text = addresses[index].parse().unwrap();
            Arc::new(Peer::new(UpstreamAddress::Ip(text), server))
        };
        Self {
            listeners: addresses.map(|text| listen(text).unwrap().id),
            peers: [peer(0), peer(1)],
            pool: IdleConnections::new(&upstream.keepalive),
            accepted: RefCell::default(),
            engine,
            world,
        }
    }

    /// Opens a connection to a server, and returns both ends.
    fn open(&self, server: usize) -> (SimStream, SimStream) {
        let target = self.peers[server].address();
        let ours = self
            .engine
            .connect(&target, &ConnectOptions::default(), TASK);
        self.rest();
        let theirs = self.accepted.borrow_mut().pop();
        (ours.unwrap(), theirs.unwrap())
    }

    /// Opens a connection to a server and keeps it. Returns the server's end.
    fn keep_new(&mut self, server: usize) -> SimStream {
        let (ours, theirs) = self.open(server);
        let now = self.now();
        self.pool
            .keep(&self.peers[server], ours, Reuse::new(None, now), now);
        theirs
    }

    /// The local address of the connection that is taken.
    fn take(&mut self, server: usize) -> Option<String> {
        let taken = self.pool.take(&self.peers[server], None, self.now());
        taken.map(|(stream, _)| stream.local().to_string())
    }

    fn rest(&self) {
        let turn = || {
            self.engine.poll(Park::Forever, &mut Events::default());
            for listener in self.listeners {
                if let Accept::Stream(stream) = self.engine.accept(listener, TASK) {
                    self.accepted.borrow_mut().push(stream);
                }
            }
            self.engine.settle();
        };
        self.world.run(turn, Until::Quiet);
    }

    fn pass(&self, seconds: u64) {
        let turn = || self.engine.poll(Park::Forever, &mut Events::default());
        self.world.advance(turn, Duration::from_secs(seconds));
    }

    fn now(&self) -> Instant {
        self.world.now()
    }
}

fn upstream(directives: &str) -> Arc<Upstream> {
    let servers = "server 10.0.0.1; server 10.0.0.2;";
    let text =
        format!("events {{ }} http {{ upstream a {{ {servers} {directives} }} server {{ }} }}");
    let options = Options::default();
    let source = Memory::new().with(&*options.conf_file(), &text);
    let loaded = load(&source, &options).unwrap_or_else(|failure| panic!("{:?}", failure.error));
    Arc::clone(&loaded.config.http.unwrap().upstreams[0])
}

#[test]
fn the_connection_to_the_server_that_was_used_last_is_taken() {
    let mut it = Pooled::new("keepalive 4;");
    let theirs = [it.keep_new(0), it.keep_new(1), it.keep_new(0)];
    let addresses = [0, 1, 2].map(|index: usize| theirs[index].peer().to_string());
    assert_eq!(it.take(0).as_ref(), Some(&addresses[2]));
    assert_eq!(it.take(0).as_ref(), Some(&addresses[0]));
    assert_eq!(it.take(0), None);
    assert_eq!(it.take(1).as_ref(), Some(&addresses[1]));
    assert!(it.pool.is_empty());
}

#[test]
fn the_one_that_was_not_used_for_longest_makes_room() {
    let mut it = Pooled::new("keepalive 2;");
    let theirs = [it.keep_new(0), it.keep_new(1), it.keep_new(1)];
    assert_eq!((it.pool.len(), it.take(0)), (2, None));
    it.rest();
    let closed = theirs[0].poll_readable(1);
    assert!(closed.is_ready(), "it is closed");
}

#[test]
fn a_group_without_keepalive_keeps_none() {
    let mut it = Pooled::new("");
    let _theirs = it.keep_new(0);
    assert_eq!(it.take(0), None);
}

#[test]
fn a_connection_has_its_number_of_requests() {
    let mut it = Pooled::new("keepalive 2; keepalive_requests 2;");
    let _theirs = it.keep_new(0);
    let now = it.now();
    let (stream, reuse) = it.pool.take(&it.peers[0], None, now).unwrap();
    it.pool.keep(&it.peers[0], stream, reuse, now);
    assert!(it.pool.is_empty());
}

#[test]
fn a_connection_has_its_time_to_wait_and_to_live() {
    let mut it = Pooled::new("keepalive 2; keepalive_timeout 10s; keepalive_time 15s;");
    let (ours, _theirs) = it.open(0);
    let opened = Reuse::new(None, it.now());
    it.pool.keep(&it.peers[0], ours, opened, it.now());
    it.pass(9);
    let (stream, reuse) = it.pool.take(&it.peers[0], None, it.world.now()).unwrap();
    it.pool.keep(&it.peers[0], stream, reuse, it.world.now());
    it.pass(9);
    let (stream, reuse) = it.pool.take(&it.peers[0], None, it.world.now()).unwrap();
    it.pool.keep(&it.peers[0], stream, reuse, it.world.now());
    assert!(it.pool.is_empty(), "18 seconds old");

    let _theirs = it.keep_new(0);
    it.pass(10);
    assert_eq!(it.take(0), None, "10 seconds idle");
    let _theirs = [it.keep_new(0), it.keep_new(1)];
    it.pass(10);
    it.pool.expire(it.world.now());
    assert!(it.pool.is_empty());
}

#[test]
fn a_connection_that_the_server_closed_or_sent_bytes_on_is_dropped() {
    let mut it = Pooled::new("keepalive 4;");
    let (good, closed, chatty) = (it.keep_new(0), it.keep_new(0), it.keep_new(0));
    closed.shutdown();
    chatty.write(Payload::Copy(b"HTTP/1.1 408 Request Timeout\r\n\r\n"));
    it.rest();
    assert_eq!(it.take(0), Some(good.peer().to_string()));
    assert!(it.pool.is_empty());

    let reset = it.keep_new(1);
    drop(reset);
    it.rest();
    it.pool.expire(it.world.now());
    assert!(it.pool.is_empty());
}

#[test]
fn a_connection_serves_its_own_scope_alone() {
    let mut it = Pooled::new("keepalive 4;");
    let begun = |header: &str| {
        let header = header.into();
        Some(Rc::new(Scope {
            header,
            ..Scope::default()
        }))
    };
    let bound = |source: &str| {
        let source = Some(source.parse().unwrap());
        Some(Rc::new(Scope {
            source,
            ..Scope::default()
        }))
    };
    let mut ends = Vec::new();
    for scope in [begun("a"), None, bound("10.0.0.9:0"), bound("10.0.0.8:0")] {
        let (ours, theirs) = it.open(0);
        ends.push(theirs);
        let reuse = Reuse::new(scope, it.now());
        it.pool.keep(&it.peers[0], ours, reuse, it.now());
    }
    let now = it.now();
    let mut has = |scope: Option<Rc<Scope>>| {
        let taken = it.pool.take(&it.peers[0], scope.as_deref(), now);
        taken.is_some()
    };
    assert!(!has(begun("c")) && !has(bound("10.0.0.7:0")));
    assert!(has(begun("a")) && !has(begun("a")));
    assert!(has(None) && !has(None));
    assert!(has(bound("10.0.0.8:0")) && !has(bound("10.0.0.8:0")));
    assert!(has(bound("10.0.0.9:0")));
}
