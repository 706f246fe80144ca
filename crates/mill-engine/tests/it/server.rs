//! The worker that the tests run, and the servers they run on it.

use mill_engine::{KernelEngine, KernelFiles, KernelOptions, KernelStream, offer};
use mill_runtime::address::Address;
use mill_runtime::engine::{Engine, ListenOptions, ListenerId};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::worker::{Turn, Worker};
use mill_sys::listener::set_int;
use mill_sys::passing;
use std::cell::RefCell;
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
    /// Turns until `done` holds; fails when it does not for ten seconds.
    pub(crate) fn run_until(&mut self, what: &str, mut done: impl FnMut() -> bool) {
        let give_up = self.around.engine.clock().0 + PATIENCE;
        while !done() {
            self.turn();
            assert!(self.around.engine.clock().0 < give_up, "waited for {what}");
        }
    }

    /// One turn, which waits a few milliseconds at the most.
    pub(crate) fn turn(&mut self) -> Turn {
        let now = self.around.engine.clock().0;
        self.worker.set_alarm(now + GLANCE);
        self.worker.turn()
    }

    /// Turns until all tasks have ended.
    pub(crate) fn run_out(&mut self) {
        let give_up = self.around.engine.clock().0 + PATIENCE;
        while self.worker.tasks() > 0 {
            self.turn();
            assert!(
                self.around.engine.clock().0 < give_up,
                "{} tasks did not end",
                self.worker.tasks()
            );
        }
    }

    /// Turns until `tasks` tasks live.
    pub(crate) fn run_until_tasks(&mut self, tasks: usize) {
        let give_up = self.around.engine.clock().0 + PATIENCE;
        while self.worker.tasks() != tasks {
            self.turn();
            assert!(
                self.around.engine.clock().0 < give_up,
                "{} tasks, not {tasks}",
                self.worker.tasks()
            );
        }
    }
}

/// After so long without what is expected, it was lost. No test waits so long when it passes.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a turn waits before the test looks at its clients.
const GLANCE: Duration = Duration::from_millis(5);

/// What tasks tell the test, in order.
#[derive(Debug)]
pub(crate) struct Story<T>(Rc<RefCell<Vec<T>>>);

impl<T> Clone for Story<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T: Clone> Story<T> {
    pub(crate) fn new() -> Self {
        Self(Rc::default())
    }

    pub(crate) fn tell(&self, event: T) {
        self.0.borrow_mut().push(event);
    }

    pub(crate) fn told(&self) -> Vec<T> {
        self.0.borrow().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.borrow().len()
    }
}

/// Sends back what comes, until the peer finishes.
pub(crate) async fn echo(stream: TestStream) {
    while let Ok(readable) = stream.readable(1).await {
        if readable.unread == 0 {
            return;
        }
        let bytes = take_all(&stream);
        stream.write(Payload::Copy(&bytes));
        if stream.drained(0).await.is_err() {
            return;
        }
    }
}

/// Reads messages of a length byte and as many bytes, and answers each with `<` the message `>`, in three writes.
pub(crate) async fn echo_messages(stream: KernelStream) {
    while let Ok(Some(message)) = next_message(&stream).await {
        stream.write(Payload::Copy(b"<"));
        let len = message.len();
        stream.write(Payload::Shared(Rc::from(message), 0..len));
        stream.write(Payload::Copy(b">"));
    }
}

/// The next message, or `None` when the peer has finished.
async fn next_message(stream: &KernelStream) -> Result<Option<Vec<u8>>, StreamError> {
    if stream.readable(1).await?.unread == 0 {
        return Ok(None);
    }
    let len = stream.read(|bytes| (0, usize::from(bytes[0])));
    if stream.readable(1 + len).await?.unread < 1 + len {
        return Ok(None);
    }
    Ok(Some(
        stream.read(|bytes| (1 + len, bytes[1..=len].to_vec())),
    ))
}

/// A message as [`echo_messages`] reads it.
pub(crate) fn message(text: &str) -> Vec<u8> {
    let len = u8::try_from(text.len()).expect("a message is short");
    [&[len], text.as_bytes()].concat()
}

pub(crate) fn take_all(stream: &KernelStream) -> Vec<u8> {
    stream.read(|bytes| (bytes.len(), bytes.to_vec()))
}

/// Bytes in which a lost or doubled piece shows: its period has no factor in common with any buffer's size.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}

/// asm-generic/socket.h, in.h and tcp.h.
const SOL_SOCKET: i32 = 1;
const SO_SNDBUF: i32 = 7;
const IPPROTO_TCP: i32 = 6;
const TCP_MAXSEG: i32 = 2;
