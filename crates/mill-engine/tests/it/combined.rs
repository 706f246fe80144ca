//! Kernel sockets and the stack together: two engines with a cable between their links.

use crate::client::Client;
use crate::server::Task;
use mill_bypass::StackOptions;
use mill_device::AnyLink;
use mill_device::device_link::DeviceLink;
use mill_device::direct::DirectLink;
use mill_device::tap::TapLink;
use mill_engine::combined::{self, CombinedEngine};
use mill_engine::{KernelOptions, offer};
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Engine, Events, ListenOptions, ListenerId, Park};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::Stream;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Duration;
use mill_runtime::worker::Worker;
use mill_stack::config::{HostConfig, Prefix};
use mill_sys::{descriptor, passing};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::task::Poll;

type Accepted = Box<dyn FnMut(<CombinedEngine as Engine>::Stream, ListenerId) -> Task>;

/// The two ends of a TAP device: here a cable of datagrams.
fn cable() -> [TapLink; 2] {
    let (first, second) = passing::pair().unwrap();
    [(first, 1), (second, 2)].map(|(end, number): (OwnedFd, u8)| {
        descriptor::set_nonblocking(end.as_fd(), true).unwrap();
        TapLink::new(end, [2, 0, 0, 0, 0, number], 1500, false)
    })
}

fn engine(link: TapLink, ip: Ipv4Addr, mailbox: Option<OwnedFd>) -> CombinedEngine {
    let prefix = Prefix {
        address: ip.into(),
        len: 24,
    };
    let host = HostConfig::new(vec![prefix], [ip.octets()[3]; 16]);
    let options = KernelOptions {
        mailbox,
        ..KernelOptions::default()
    };
    let link = AnyLink::new(DeviceLink::Direct(DirectLink::Tap(link)), None);
    combined::engine(options, Some(StackOptions::new(link, host))).unwrap()
}

/// A worker of both engines that listens at the wildcard address, at a port that the kernel has chosen.
struct Server {
    worker: Worker<CombinedEngine, Task, Accepted>,
    client: CombinedEngine,
    kernel: SocketAddr,
    stack: SocketAddr,
}

impl Server {
    fn new() -> Self {
        let held = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = held.local_addr().unwrap().port();
        let wildcard = Address::Ip((Ipv4Addr::UNSPECIFIED, port).into());
        let (mailbox, inside) = passing::pair().unwrap();
        let key = offer::encode(&wildcard, None);
        passing::send(mailbox.as_fd(), &key, &[held.as_fd()]).unwrap();
        let [near, far] = cable();
        let engine = engine(near, SERVER, Some(inside));
        let (now, wall_clock) = engine.clock();
        let listening = engine.listen(&ListenOptions::new(wildcard)).unwrap();
        let accepted: Accepted = Box::new(|stream, _| {
            Box::pin(async move {
                while stream.readable(1).await.is_ok_and(|found| found.unread > 0) {
                    let heard = stream.read(|bytes| (bytes.len(), bytes.to_vec()));
                    stream.write(Payload::Copy(&heard));
                }
            })
        });
        let mut worker = Worker::new(engine, Scheduler::new(now, wall_clock), accepted);
        worker.add_listener(listening.id);
        Self {
            worker,
            client: self::engine(far, CLIENT, None),
            kernel: (Ipv4Addr::LOCALHOST, port).into(),
            stack: (SERVER, port).into(),
        }
    }

    /// One turn of each side; a wait for the other lasts no longer than a turn's alarm.
    fn turn(&mut self) {
        let glance = Duration::from_millis(5);
        self.worker.set_alarm(self.client.now() + glance);
        self.worker.turn();
        let mut events = Events::default();
        self.client.poll(Park::No, &mut events);
        self.client.settle();
    }

    fn run_until(&mut self, what: &str, mut done: impl FnMut() -> bool) {
        let give_up = self.client.now() + TIMEOUT;
        while !done() {
            self.turn();
            assert!(self.client.now() < give_up, "waited for {what}");
        }
    }
}

#[test]
fn a_wildcard_is_served_on_kernel_sockets_and_on_the_stack() {
    let mut server = Server::new();
    let mut kernel = Client::connect(server.kernel);
    kernel.send("by the kernel");
    server.run_until("the kernel's answer", || kernel.has(b"by the kernel"));

    let (target, options) = (Address::Ip(server.stack), ConnectOptions::default());
    let stack = server.client.connect(&target, &options, TaskId::NONE);
    let stack = stack.unwrap();
    assert!(stack.is_bypassed());
    stack.write(Payload::Copy(b"by the stack"));
    server.run_until("the stack's answer", || stack.poll_readable(12).is_ready());
    let heard = stack.read(|bytes| (bytes.len(), bytes.to_vec()));
    assert_eq!(heard, b"by the stack");
    assert_eq!(server.worker.engine().stack_streams(), 1);
    assert_eq!(server.worker.tasks(), 2);
}

#[test]
fn a_frame_ends_a_wait_that_nothing_else_would_end() {
    let mut server = Server::new();
    let (target, options) = (Address::Ip(server.stack), ConnectOptions::default());
    let stream = server.client.connect(&target, &options, TaskId::NONE);
    let stream = stream.unwrap();
    let begun = server.client.now();
    let mut events = Events::default();
    // Each side's turn answers what the other sent just before: no alarm is needed.
    while stream.poll_drained(0) == Poll::Pending {
        server.client.settle();
        server.worker.turn();
        server.client.poll(Park::Forever, &mut events);
    }
    assert!(server.client.now().since(begun) < TIMEOUT);
    assert!(events.ready.contains(&TaskId::NONE));
}

#[test]
fn addresses_beyond_the_link_are_reached_through_the_kernel() {
    let mut server = Server::new();
    let (target, options) = (Address::Ip(server.kernel), ConnectOptions::default());
    let stream = server.client.connect(&target, &options, TaskId::NONE);
    let stream = stream.unwrap();
    assert!(!stream.is_bypassed());
    stream.write(Payload::Copy(b"x"));
    server.run_until("the answer", || stream.poll_readable(1).is_ready());
    assert_eq!(server.worker.engine().stack_streams(), 0);
}

/// A test that passes never waits this long.
const TIMEOUT: Duration = Duration::from_secs(10);

/// RFC 5737.
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
