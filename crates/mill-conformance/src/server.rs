//! The worker that a behaviour runs, the servers on it, and what an engine has to bring for that.

use crate::client::{Client, Peer};
use mill_runtime::datagrams::DatagramEngine;
use mill_runtime::engine::{DrainListener, Engine, ListenerId};
use mill_runtime::files::Files;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::time::{Duration, Instant};
use mill_runtime::worker::{Turn, Worker};
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;

/// What an engine has to bring: itself, with a network around it, peers in that network, and a file system.
pub trait Testbed: Sized + 'static {
    type Engine: DrainListener + DatagramEngine;
    type Peer: Peer;
    type Directory: Directory;

    /// After so long without what is expected, it was lost. Real time for some engines, and then no passing test waits
    /// so long; virtual time for others, which includes retransmissions.
    const TIMEOUT: Duration;

    /// A new engine that listens, with so large a send buffer for each connection if that is asked for.
    fn listen(send_buffer_bytes: Option<usize>) -> Listener<Self>;

    /// The engine of the peers, which [`Testbed::turn`] runs, and an address at which its sockets receive.
    fn peers(&self) -> (Self::Engine, IpAddr);

    /// The addresses of IPv4 at which a socket of the server's engine receives that is at all of them.
    fn addresses(server: &Server<Self>) -> Vec<IpAddr> {
        vec![server.address.ip()]
    }

    /// Lets the peers do what they do by themselves; waits for it until `until` at the most.
    fn turn(&mut self, until: Instant);

    /// Whether connections to a server are refused.
    fn refuses(server: &mut Server<Self>) -> bool {
        Self::Peer::is_refused(server.address)
    }
}

/// An engine that listens.
#[derive(Debug)]
pub struct Listener<T: Testbed> {
    pub testbed: T,
    pub engine: T::Engine,
    pub id: ListenerId,
    pub address: SocketAddr,
}

/// A directory of one test's own in the files that the engine sends.
pub trait Directory {
    fn new(name: &str) -> Self;

    /// A path in it; of itself if `name` is empty.
    fn path(&self, name: &str) -> Vec<u8>;

    /// Writes a file; returns its path.
    fn write(&self, name: &str, bytes: &[u8]) -> Vec<u8>;

    fn truncate(&self, name: &str, len: usize);

    /// Puts the file `from` in the place of `to`.
    fn rename(&self, from: &str, to: &str);

    fn remove(&self, name: &str);
}

/// Any task.
pub type Task = Pin<Box<dyn Future<Output = ()>>>;

type Accepted<E> = Box<dyn FnMut(<E as Engine>::Stream, ListenerId) -> Task>;

/// The files and the file of an engine.
pub type FilesOf<T> = <<T as Testbed>::Engine as Engine>::Files;
pub type FileOf<T> = <FilesOf<T> as Files>::File;

/// The streams of an engine.
pub type StreamOf<T> = <<T as Testbed>::Engine as Engine>::Stream;

/// What a task is made with.
#[derive(Clone, Debug)]
pub struct Around<E> {
    pub engine: E,
    pub scheduler: Rc<Scheduler>,
}

/// A worker with one listener.
pub struct Server<T: Testbed> {
    pub worker: Worker<T::Engine, Task, Accepted<T::Engine>>,
    pub around: Around<T::Engine>,
    pub listener: ListenerId,
    pub address: SocketAddr,
    pub testbed: T,
}

impl<T: Testbed> Server<T> {
    /// Serves every connection with a task that `serve` makes.
    pub fn start<F>(serve: impl FnMut(StreamOf<T>, Around<T::Engine>) -> F + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        Self::on(T::listen(None), serve)
    }

    /// As [`Server::start`], with so small a send buffer.
    pub fn start_narrow<F>(
        send_buffer_bytes: usize,
        serve: impl FnMut(StreamOf<T>, Around<T::Engine>) -> F + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        Self::on(T::listen(Some(send_buffer_bytes)), serve)
    }

    /// Serves the connections of a listener.
    pub fn on<F>(
        listener: Listener<T>,
        mut serve: impl FnMut(StreamOf<T>, Around<T::Engine>) -> F + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        let (now, wall_clock) = listener.engine.clock();
        let scheduler = Scheduler::new(now, wall_clock);
        let around = Around {
            engine: listener.engine.clone(),
            scheduler: Rc::clone(&scheduler),
        };
        let for_tasks = around.clone();
        let accepted: Accepted<T::Engine> =
            Box::new(move |stream, _| Box::pin(serve(stream, for_tasks.clone())) as Task);
        let mut worker = Worker::new(listener.engine, scheduler, accepted);
        worker.add_listener(listener.id);
        Self {
            worker,
            around,
            listener: listener.id,
            address: listener.address,
            testbed: listener.testbed,
        }
    }

    /// A peer that begins to connect to this server.
    pub fn connect(&self) -> Client<T::Peer> {
        Client::connect(self.address)
    }

    /// As [`Server::connect`], with a small receive buffer.
    pub fn connect_small(&self) -> Client<T::Peer> {
        Client::connect_small(self.address)
    }

    pub fn refuses(&mut self) -> bool {
        T::refuses(self)
    }

    pub fn now(&self) -> Instant {
        self.around.engine.now()
    }

    /// One turn of the worker and one of the peers; each waits a few milliseconds at the most.
    pub fn turn(&mut self) -> Turn {
        let until = self.now() + GLANCE;
        self.worker.set_alarm(until);
        let turn = self.worker.turn();
        self.testbed.turn(until);
        turn
    }

    /// Turns until `done` holds; fails when it does not for too long.
    pub fn run_until(&mut self, what: &str, mut done: impl FnMut() -> bool) {
        let give_up = self.now() + T::TIMEOUT;
        while !done() {
            self.turn();
            assert!(self.now() < give_up, "waited for {what}");
        }
    }

    /// Turns until all tasks have ended.
    pub fn run_out(&mut self) {
        self.run_until_tasks(0);
    }

    /// Turns until `tasks` tasks live.
    pub fn run_until_tasks(&mut self, tasks: usize) {
        let give_up = self.now() + T::TIMEOUT;
        while self.worker.tasks() != tasks {
            self.turn();
            assert!(
                self.now() < give_up,
                "{} tasks, not {tasks}",
                self.worker.tasks()
            );
        }
    }

    /// Turns often enough for all that is under way to arrive.
    pub fn run_on(&mut self) {
        for _ in 0..20 {
            self.turn();
        }
    }
}

impl<T: Testbed> fmt::Debug for Server<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Server({})", self.address)
    }
}

/// How long a turn waits before the test looks at its clients.
const GLANCE: Duration = Duration::from_millis(5);
