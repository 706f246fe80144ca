//! A world with a resolver and the DNS servers that it asks.

use crate::zone::Asked;
use mill_config::config::NameServers;
use mill_runtime::address::Address;
use mill_runtime::datagrams::{DatagramEngine, DatagramOptions, DatagramSocket, OutgoingDatagram};
use mill_runtime::engine::{Engine, ListenOptions, ListenerId};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::spawned::Purpose;
use mill_runtime::stream::Stream;
use mill_runtime::time::Duration;
use mill_runtime::worker::{ConnectingWorker, Worker};
use mill_sim::engine::SimEngine;
use mill_sim::stream::SimStream;
use mill_sim::world::{Until, World};
use mill_upstream::resolver::Resolver;
use mill_upstream::resolver::counters::ResolverCounters;
use mill_upstream::resolver::error::ResolveError;
use std::cell::RefCell;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

/// A question, as a server heard it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) at: Duration,
    /// The last byte of the server's address.
    pub(crate) server: u8,
    pub(crate) over_tcp: bool,
    /// The port that asked; 0 over TCP.
    pub(crate) port: u16,
    pub(crate) asked: Asked,
}

/// How a request's name ended, and when.
pub(crate) type Ended = (Duration, Result<Vec<String>, ResolveError>);

type Task = Pin<Box<dyn Future<Output = ()>>>;
type Script = Rc<dyn Fn(&Heard) -> Vec<Vec<u8>>>;
type Accepted = Box<dyn FnMut(SimStream, ListenerId) -> Task>;

pub(crate) struct DnsWorld {
    pub(crate) world: Rc<World>,
    pub(crate) resolver: Rc<Resolver>,
    pub(crate) scheduler: Rc<Scheduler>,
    pub(crate) counters: Arc<ResolverCounters>,
    worker: ConnectingWorker<SimEngine, Task>,
    servers: Worker<SimEngine, Task, Accepted>,
    heard: Rc<RefCell<Vec<Heard>>>,
    ended: Rc<RefCell<Vec<Ended>>>,
}

/// Both families, no `valid=`.
pub(crate) fn options(servers: &[u8]) -> NameServers {
    NameServers {
        servers: servers.iter().map(|last| address(*last)).collect(),
        valid: None,
        ipv4: true,
        ipv6: true,
        status_zone: None,
    }
}

fn address(last: u8) -> SocketAddr {
    ([10, 0, 0, last], 53).into()
}

impl DnsWorld {
    /// `script` says with which messages a server replies to a question. Servers listen at 10.0.0.1 and 10.0.0.2; at
    /// other addresses nothing does.
    pub(crate) fn new(
        options: NameServers,
        script: impl Fn(&Heard) -> Vec<Vec<u8>> + 'static,
    ) -> Self {
        let world = Rc::new(World::new(7));
        let engine = world.engine();
        let (now, wall_clock) = engine.clock();
        let scheduler = Scheduler::new(now, wall_clock);
        let counters = Arc::default();
        let heard = Rc::default();
        let servers = start_servers(&world, &heard, Rc::new(script));
        Self {
            resolver: Resolver::new(&engine, &scheduler, &Arc::new(options), &counters),
            worker: Worker::connecting(engine, Rc::clone(&scheduler)),
            world,
            scheduler,
            counters,
            servers,
            heard,
            ended: Rc::default(),
        }
    }

    /// A request asks for a name when so much time has passed since the world began.
    pub(crate) fn ask_at(&self, at: Duration, name: &str, timeout: Duration) {
        let (resolver, world) = (Rc::clone(&self.resolver), Rc::clone(&self.world));
        let (ended, name) = (Rc::clone(&self.ended), name.to_owned());
        let scheduler = Rc::clone(&self.scheduler);
        self.spawn(async move {
            scheduler.sleep(at.saturating_sub(world.elapsed())).await;
            let found = resolver.resolve(name.as_bytes(), timeout).await;
            let texts = |addresses: &[IpAddr]| addresses.iter().map(IpAddr::to_string).collect();
            let found = found.map(|addresses| texts(addresses.as_slice()));
            ended.borrow_mut().push((world.elapsed(), found));
        });
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let spawned = self.scheduler.spawn(Purpose::Finishing, task);
        assert!(spawned.is_ok(), "few tasks live");
    }

    /// Runs until nothing waits, not even for a timer, and returns how the requests ended.
    pub(crate) fn run(&mut self) -> Vec<Ended> {
        self.run_until(Until::Idle)
    }

    pub(crate) fn run_until(&mut self, until: Until) -> Vec<Ended> {
        let (worker, servers) = (&mut self.worker, &mut self.servers);
        let turn = || {
            servers.turn();
            worker.turn();
        };
        self.world.run(turn, until);
        self.ended.borrow_mut().drain(..).collect()
    }

    /// The questions since the last call.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.borrow_mut().drain(..).collect()
    }
}

fn start_servers(
    world: &Rc<World>,
    heard: &Rc<RefCell<Vec<Heard>>>,
    script: Script,
) -> Worker<SimEngine, Task, Accepted> {
    let engine = world.engine();
    let (now, wall_clock) = engine.clock();
    let scheduler = Scheduler::new(now, wall_clock);
    let servers = Servers {
        world: Rc::clone(world),
        heard: Rc::clone(heard),
        script,
    };
    let mut listeners = Vec::new();
    for last in [1, 2] {
        let server = address(last);
        let listening = engine.listen(&ListenOptions::new(Address::Ip(server)));
        listeners.push(listening.unwrap().id);
        let (servers, engine, tasks) = (servers.clone(), engine.clone(), Rc::clone(&scheduler));
        let task = async move {
            let options = DatagramOptions::new(server);
            let socket = engine.open_datagrams(&options, tasks.current()).unwrap();
            servers.answer_datagrams(&socket, last).await;
        };
        assert!(scheduler.spawn(Purpose::Background, task).is_ok());
    }
    let accepted: Accepted = Box::new(move |stream, listener| {
        let servers = servers.clone();
        let last = if listener.0 == 0 { 1 } else { 2 };
        Box::pin(async move { servers.answer_over_tcp(&stream, last).await })
    });
    let mut worker = Worker::new(engine, scheduler, accepted);
    for listener in listeners {
        worker.add_listener(listener);
    }
    worker
}

#[derive(Clone)]
struct Servers {
    world: Rc<World>,
    heard: Rc<RefCell<Vec<Heard>>>,
    script: Script,
}

impl Servers {
    async fn answer_datagrams(&self, socket: &impl DatagramSocket, server: u8) {
        loop {
            let mut questions = Vec::new();
            let received = socket.receive(16, |datagram| {
                questions.push((datagram.remote, datagram.bytes.to_vec()));
            });
            received.await.unwrap();
            for (remote, question) in questions {
                for reply in self.replies(server, Some(remote), &question) {
                    let datagram = OutgoingDatagram::new(&reply, remote);
                    socket.send(&[datagram]).await.unwrap();
                }
            }
        }
    }

    /// Sends each reply in two pieces, of which the first breaks off in the length.
    async fn answer_over_tcp(&self, stream: &SimStream, server: u8) {
        while stream
            .readable(3)
            .await
            .is_ok_and(|readable| !readable.finished)
        {
            let question = stream.read(|bytes| {
                let len = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
                (2 + len, bytes[2..2 + len].to_vec())
            });
            for reply in self.replies(server, None, &question) {
                let len = u16::try_from(reply.len()).unwrap().to_be_bytes();
                stream.write(Payload::Copy(&len[..1]));
                stream.drained(0).await.unwrap();
                stream.write(Payload::Copy(&[&len[1..], &reply].concat()));
            }
        }
    }

    fn replies(&self, server: u8, remote: Option<SocketAddr>, question: &[u8]) -> Vec<Vec<u8>> {
        let heard = Heard {
            at: self.world.elapsed(),
            server,
            over_tcp: remote.is_none(),
            port: remote.map_or(0, |remote| remote.port()),
            asked: Asked::parse(question),
        };
        let replies = (self.script)(&heard);
        self.heard.borrow_mut().push(heard);
        replies
    }
}
