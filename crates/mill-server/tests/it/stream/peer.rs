//! A server of any protocol, which does what a test says as soon as it is connected to.

use mill_runtime::engine::{Engine, ListenOptions};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Stream, StreamOption};
use mill_runtime::worker::Worker;
use mill_sim::engine::SimEngine;
use mill_sim::world::World;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// What a server does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Send(Vec<u8>),
    Wait(Duration),
    /// FIN; it goes on reading.
    Finish,
    Reset,
    /// Reads until the other side has sent FIN.
    ReadAll,
    /// Sends back what arrives, until the other side has sent FIN.
    Echo,
}

/// What a server has seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// What has arrived, by connection.
    pub(crate) bytes: RefCell<Vec<Vec<u8>>>,
    /// Where each of them came from.
    pub(crate) peers: RefCell<Vec<String>>,
}

impl Seen {
    pub(crate) fn connections(&self) -> usize {
        self.bytes.borrow().len()
    }

    /// What has arrived on this connection.
    pub(crate) fn received(&self, connection: usize) -> Vec<u8> {
        self.bytes.borrow()[connection].clone()
    }
}

/// Starts a server at `address`, which does these acts on each connection and then closes it. Returns its turn and what
/// it sees.
pub(crate) fn start(world: &World, address: &str, acts: Vec<Act>) -> (Box<dyn FnMut()>, Rc<Seen>) {
    let engine = world.engine();
    let (now, wall_clock) = engine.clock();
    let scheduler = Scheduler::new(now, wall_clock);
    let listening = engine
        .listen(&ListenOptions::new(world.address(address)))
        .expect("the address is free");
    let seen = Rc::new(Seen::default());
    let accepted = {
        let (scheduler, seen) = (Rc::clone(&scheduler), Rc::clone(&seen));
        move |stream: <SimEngine as Engine>::Stream, _| {
            seen.bytes.borrow_mut().push(Vec::new());
            seen.peers.borrow_mut().push(stream.peer().to_string());
            let number = seen.connections() - 1;
            let connection = Connection {
                stream,
                number,
                seen: Rc::clone(&seen),
                scheduler: Rc::clone(&scheduler),
            };
            connection.serve(acts.clone())
        }
    };
    let mut worker = Worker::new(engine, scheduler, accepted);
    worker.add_listener(listening.id);
    let turn = Box::new(move || {
        worker.turn();
    });
    (turn, seen)
}

struct Connection {
    stream: <SimEngine as Engine>::Stream,
    number: usize,
    seen: Rc<Seen>,
    scheduler: Rc<Scheduler>,
}

impl Connection {
    async fn serve(self, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Send(bytes) => {
                    self.stream.write(Payload::Copy(&bytes));
                    if self.stream.drained(0).await.is_err() {
                        return;
                    }
                }
                Act::Wait(duration) => self.scheduler.sleep(duration).await,
                Act::Finish => self.stream.shutdown(),
                Act::Reset => {
                    let _ = self.stream.set(StreamOption::ResetOnClose);
                    return;
                }
                Act::ReadAll => while !self.read().await.is_empty() {},
                Act::Echo => loop {
                    let bytes = self.read().await;
                    if bytes.is_empty() {
                        break;
                    }
                    self.stream.write(Payload::Copy(&bytes));
                    if self.stream.drained(0).await.is_err() {
                        return;
                    }
                },
            }
        }
    }

    /// What arrives next; nothing at the end.
    async fn read(&self) -> Vec<u8> {
        if self.stream.readable(1).await.is_err() {
            return Vec::new();
        }
        let bytes = self.stream.read(|bytes| (bytes.len(), bytes.to_vec()));
        self.seen.bytes.borrow_mut()[self.number].extend_from_slice(&bytes);
        bytes
    }
}
