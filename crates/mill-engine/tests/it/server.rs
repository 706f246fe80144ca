//! The worker that the tests run, and the servers they run on it.

use crate::client::is_refused;
use mill_engine::{KernelEngine, KernelFiles, KernelOptions, KernelStream, offer};
use mill_runtime::address::Address;
use mill_runtime::engine::{Engine, ListenOptions, ListenerId};
use mill_runtime::scheduler::Scheduler;
use mill_runtime::time::Instant;
use mill_runtime::worker::{Turn, Worker};
use mill_sys::listener::set_int;
use mill_sys::passing;
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;
type Accepted = Box<dyn FnMut(KernelStream, ListenerId) -> Task>;

/// What scenarios that other engines share with this one run over.
pub(crate) type TestStream = KernelStream;
pub(crate) type TestFiles = KernelFiles;

/// What a task is made with.
#[derive(Clone)]
pub(crate) struct Around {
    pub(crate) engine: KernelEngine,
    pub(crate) scheduler: Rc<Scheduler>,
}

/// A worker with one listener.
pub(crate) struct Server {
    pub(crate) worker: Worker<KernelEngine, Task, Accepted>,
    pub(crate) around: Around,
    pub(crate) listener: ListenerId,
    pub(crate) address: SocketAddr,
    /// Our end of the engine's mailbox.
    pub(crate) mailbox: Option<OwnedFd>,
}

/// Serves every connection with a task that `serve` makes.
pub(crate) fn start<F>(serve: impl FnMut(KernelStream, Around) -> F + 'static) -> Server
where
    F: Future<Output = ()> + 'static,
{
    start_on(&TcpListener::bind("127.0.0.1:0").unwrap(), serve)
}

/// As [`start`], with so small a send buffer, and with segments that fit small windows: with the loopback interface's
/// segments of 64 KiB each would wait for the persist timer (RFC 9293 3.8.6.1).
pub(crate) fn start_narrow<F>(
    send_buffer_bytes: i32,
    serve: impl FnMut(KernelStream, Around) -> F + 'static,
) -> Server
where
    F: Future<Output = ()> + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    set_int(listener.as_fd(), SOL_SOCKET, SO_SNDBUF, send_buffer_bytes).unwrap();
    set_int(listener.as_fd(), IPPROTO_TCP, TCP_MAXSEG, 1000).unwrap();
    start_on(&listener, serve)
}

/// Serves the connections of a socket that listens already, which the engine is offered.
pub(crate) fn start_on<F>(
    listener: &TcpListener,
    serve: impl FnMut(KernelStream, Around) -> F + 'static,
) -> Server
where
    F: Future<Output = ()> + 'static,
{
    let address = listener.local_addr().unwrap();
    let (mailbox, inside) = passing::pair().unwrap();
    let key = offer::encode(&Address::Ip(address), None);
    passing::send(mailbox.as_fd(), &key, &[listener.as_fd()]).unwrap();
    let engine = engine(Some(inside));
    let options = ListenOptions::new(Address::Ip(address));
    start_with(engine, &options, Some(mailbox), serve)
}

/// Serves the connections of a listener that the engine makes from options.
pub(crate) fn start_with<F>(
    engine: KernelEngine,
    options: &ListenOptions,
    mailbox: Option<OwnedFd>,
    mut serve: impl FnMut(KernelStream, Around) -> F + 'static,
) -> Server
where
    F: Future<Output = ()> + 'static,
{
    let (now, wall_clock) = engine.clock();
    let scheduler = Scheduler::new(now, wall_clock);
    let listener = engine.listen(options).expect("the address is free").id;
    let around = Around {
        engine: engine.clone(),
        scheduler: Rc::clone(&scheduler),
    };
    let for_tasks = around.clone();
    let accepted: Accepted =
        Box::new(move |stream, _| Box::pin(serve(stream, for_tasks.clone())) as Task);
    let mut worker = Worker::new(engine, scheduler, accepted);
    worker.add_listener(listener);
    let address = match &options.address {
        Address::Ip(address) => *address,
        Address::Unix(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
    };
    Server {
        worker,
        around,
        listener,
        address,
        mailbox,
    }
}

pub(crate) fn engine(mailbox: Option<OwnedFd>) -> KernelEngine {
    KernelEngine::new(KernelOptions {
        mailbox,
        ..KernelOptions::default()
    })
    .unwrap()
}

impl Server {
    pub(crate) fn now(&self) -> Instant {
        self.around.engine.clock().0
    }

    /// Whether whoever connects is refused.
    pub(crate) fn refuses(&self) -> bool {
        is_refused(self.address)
    }

    /// One turn, which waits a few milliseconds at the most.
    pub(crate) fn turn(&mut self) -> Turn {
        self.worker.set_alarm(self.now() + GLANCE);
        self.worker.turn()
    }
}

/// After so long without what is expected, it was lost. No test waits so long when it passes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How long a turn waits before the test looks at its clients.
const GLANCE: Duration = Duration::from_millis(5);

/// asm-generic/socket.h, in.h and tcp.h.
const SOL_SOCKET: i32 = 1;
const SO_SNDBUF: i32 = 7;
const IPPROTO_TCP: i32 = 6;
const TCP_MAXSEG: i32 = 2;
