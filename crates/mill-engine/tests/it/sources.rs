//! Workers that connect and never listen: source addresses and ports, thousands of connections, lack of descriptors.

use crate::server::engine;
use mill_conformance::content::take_all;
use mill_conformance::story::Story;
use mill_engine::{KernelEngine, KernelStream};
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Engine};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::worker::{ConnectingWorker, Worker};
use mill_sys::descriptor;
use mill_sys::rlimit::{Limit, Resource};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// A worker without listeners, whose tasks report the results of their connects.
struct Connector {
    worker: ConnectingWorker<KernelEngine, Task>,
    engine: KernelEngine,
    scheduler: Rc<Scheduler>,
    story: Story<Result<(), StreamError>>,
}

impl Connector {
    fn new() -> Self {
        let engine = engine(None);
        let (now, wall_clock) = engine.clock();
        let scheduler = Scheduler::new(now, wall_clock);
        Self {
            worker: Worker::connecting(engine.clone(), Rc::clone(&scheduler)),
            engine,
            scheduler,
            story: Story::default(),
        }
    }

    /// Starts a task that connects, reports the result, and then runs `then` with the stream.
    fn connect<F>(
        &mut self,
        target: SocketAddr,
        source: &str,
        then: impl FnOnce(KernelStream) -> F + 'static,
    ) where
        F: Future<Output = ()> + 'static,
    {
        let (engine, scheduler) = (self.engine.clone(), Rc::clone(&self.scheduler));
        let teller = self.story.clone();
        let options = ConnectOptions {
            source: Some(Address::Ip(source.parse().unwrap())),
            ..ConnectOptions::default()
        };
        self.worker.spawn(Box::pin(async move {
            let stream = engine.connect(&Address::Ip(target), &options, scheduler.current());
            match stream {
                Ok(stream) => {
                    teller.tell(stream.drained(0).await);
                    then(stream).await;
                }
                Err(error) => teller.tell(Err(error)),
            }
        }));
    }

    /// Runs turns until this many results were reported.
    fn run_until_told(&mut self, count: usize) {
        let give_up = self.engine.now() + TIMEOUT;
        while self.story.count() < count {
            assert!(
                self.engine.now() < give_up,
                "{} of {count}",
                self.story.count()
            );
            self.turn();
        }
    }

    fn run_out(&mut self) {
        let give_up = self.engine.now() + TIMEOUT;
        while self.worker.tasks() > 0 {
            assert!(self.engine.now() < give_up, "{} tasks", self.worker.tasks());
            self.turn();
        }
    }

    fn turn(&mut self) {
        self.worker.set_alarm(self.engine.now() + GLANCE);
        self.worker.turn();
    }
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

async fn hold(stream: KernelStream) {
    let _ = stream.readable(usize::MAX).await;
}

/// Writes, then closes first.
async fn say_bye(stream: KernelStream) {
    stream.write(Payload::Copy(b"bye"));
}

fn read_to_the_end(peer: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    peer.set_read_timeout(Some(TIMEOUT)).unwrap();
    peer.read_to_end(&mut all).unwrap();
    all
}

#[test]
fn thousands_connect_from_one_address_with_ports_that_the_system_chooses() {
    const CONNECTIONS: usize = 3000;
    /// Connections at once, within the listener's queue.
    const BATCH: usize = 100;
    let limit = Resource::Descriptors.limit().unwrap();
    let soft = limit.soft.max(limit.hard.min(4096));
    Resource::Descriptors
        .set_limit(Limit { soft, ..limit })
        .unwrap();
    let (origin, target) = listen();
    let mut connector = Connector::new();
    let mut sources = BTreeSet::new();
    for batch in 1..=CONNECTIONS / BATCH {
        for _ in 0..BATCH {
            connector.connect(target, "127.0.0.2:0", |stream| async move {
                // Held open although the peer has finished.
                let _stream = stream;
                std::future::pending().await
            });
        }
        connector.run_until_told(batch * BATCH);
        assert!(connector.story.told().iter().all(Result::is_ok));
        for _ in 0..BATCH {
            sources.insert(origin.accept().unwrap().1);
        }
    }
    assert_eq!(connector.worker.tasks(), CONNECTIONS);
    assert_eq!(sources.len(), CONNECTIONS);
    assert!(
        sources
            .iter()
            .all(|source| source.ip().to_string() == "127.0.0.2")
    );
}

#[test]
fn a_given_source_port_is_what_the_peer_sees_and_serves_again_after_an_active_close() {
    let source = TcpListener::bind("127.0.0.3:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut connector = Connector::new();
    // The port waits in TIME-WAIT for the first peer while it connects to the second.
    for told in 1..=2 {
        let (origin, target) = listen();
        connector.connect(target, &source.to_string(), say_bye);
        connector.run_until_told(told);
        assert_eq!(connector.story.told(), vec![Ok(()); told]);
        let (mut peer, from) = origin.accept().unwrap();
        assert_eq!(from, source);
        connector.run_out();
        assert_eq!(read_to_the_end(&mut peer), b"bye");
    }
}

#[test]
fn a_source_port_with_a_listener_is_in_use() {
    let (_taken, source) = listen();
    let (_origin, target) = listen();
    let mut connector = Connector::new();
    connector.connect(target, &source.to_string(), hold);
    connector.run_until_told(1);
    assert_eq!(
        connector.story.told(),
        [Err(StreamError::Other(EADDRINUSE))]
    );
}

#[test]
fn connects_that_fail_at_once_leave_nothing_open() {
    std::thread::spawn(|| {
        descriptor::unshare_table().unwrap();
        let mut connector = Connector::new();
        let (_origin, target) = listen();
        let open = || std::fs::read_dir("/proc/thread-self/fd").unwrap().count();
        let before = open();
        for _ in 0..50 {
            connector.connect(target, "192.0.2.1:0", hold);
        }
        connector.run_out();
        assert_eq!(open(), before);
        let failed = vec![Err(StreamError::Other(EADDRNOTAVAIL)); 50];
        assert_eq!(connector.story.told(), failed);
    })
    .join()
    .unwrap();
}

#[test]
fn a_failed_connect_reports_the_same_error_however_often_it_is_polled() {
    for drained_first in [true, false] {
        let (origin, target) = listen();
        drop(origin);
        let mut connector = Connector::new();
        let (engine, scheduler) = (connector.engine.clone(), Rc::clone(&connector.scheduler));
        let teller = connector.story.clone();
        connector.worker.spawn(Box::pin(async move {
            let options = ConnectOptions::default();
            let stream = engine.connect(&Address::Ip(target), &options, scheduler.current());
            let stream = stream.expect("Linux refuses on loopback after the call");
            for asked in 0..4 {
                let drain = (asked % 2 == 0) == drained_first;
                let said = if drain {
                    stream.drained(0).await
                } else {
                    stream.readable(1).await.map(|_| ())
                };
                teller.tell(said);
            }
            assert!(matches!(stream.poll_readable(0), Poll::Ready(_)));
            assert!(take_all(&stream).is_empty());
        }));
        connector.run_out();
        assert_eq!(connector.story.told(), [Err(StreamError::Refused); 4]);
    }
}

/// Runs in a process of its own, so that its limit does not affect other tests.
#[test]
fn without_a_descriptor_left_connecting_fails_with_emfile_and_goes_on_when_there_is_one() {
    if std::env::var_os(ALONE).is_none() {
        let test = "sources::without_a_descriptor_left_connecting_fails_with_emfile_and_goes_on_when_there_is_one";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(
            child.status.success() && said.contains("1 passed"),
            "{said}"
        );
        return;
    }
    let (origin, target) = listen();
    let mut connector = Connector::new();
    // The descriptors open now, and three more.
    let next_number = std::fs::File::open("/dev/null").unwrap();
    let next = std::os::fd::AsRawFd::as_raw_fd(&next_number);
    drop(next_number);
    let limit = Resource::Descriptors.limit().unwrap();
    let soft = u64::try_from(next).unwrap() + 3;
    Resource::Descriptors
        .set_limit(Limit { soft, ..limit })
        .unwrap();
    for _ in 0..5 {
        connector.connect(target, "127.0.0.1:0", hold);
    }
    connector.run_until_told(5);
    Resource::Descriptors.set_limit(limit).unwrap();
    let mut told = connector.story.told();
    told.sort_by_key(Result::is_err);
    let emfile = Err(StreamError::Other(EMFILE));
    assert_eq!(told, [Ok(()), Ok(()), Ok(()), emfile, emfile]);
    connector.connect(target, "127.0.0.1:0", hold);
    connector.run_until_told(6);
    assert_eq!(connector.story.told()[5], Ok(()));
    for _ in 0..4 {
        origin.accept().unwrap().0.write_all(b"end").unwrap();
    }
    connector.run_out();
}

/// Tells the test that it runs alone in its process.
const ALONE: &str = "MILL_ENGINE_TEST_ALONE";

/// After this time an expected event is taken as lost. A test that passes never waits this long.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long a turn waits before the test checks.
const GLANCE: Duration = Duration::from_millis(5);

/// asm-generic/errno-base.h and errno.h.
const EMFILE: i32 = 24;
const EADDRINUSE: i32 = 98;
const EADDRNOTAVAIL: i32 = 99;
