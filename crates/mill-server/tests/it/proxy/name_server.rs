//! A name server that replies as a test says.

use crate::zone::Asked;
use mill_runtime::datagrams::{DatagramEngine, DatagramOptions, DatagramSocket, OutgoingDatagram};
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::spawned::Purpose;
use mill_runtime::worker::Worker;
use mill_sim::world::World;
use std::cell::RefCell;
use std::future::Ready;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

/// The reply to a question when so much time has passed; nothing is silence.
pub(crate) type Script = fn(&Asked, Duration) -> Vec<u8>;

/// Where it listens.
pub(crate) const NAME_SERVER: &str = "10.0.0.53";

/// The names that it was asked for, in order.
pub(crate) type AskedNames = Rc<RefCell<Vec<String>>>;

/// Starts it. Returns its turn, of which the first one has to come before any question, and what it is asked.
pub(crate) fn start(world: &World, script: Script) -> (Box<dyn FnMut()>, AskedNames) {
    let engine = world.engine();
    let (now, wall_clock) = engine.clock();
    let scheduler = Scheduler::new(now, wall_clock);
    let asked = AskedNames::default();
    let (sockets, tasks, names) = (engine.clone(), Rc::clone(&scheduler), Rc::clone(&asked));
    let serve = async move {
        let local = SocketAddr::new(NAME_SERVER.parse().expect("an address"), 53);
        let options = DatagramOptions::new(local);
        let socket = sockets
            .open_datagrams(&options, tasks.current())
            .expect("the address is free");
        loop {
            let mut questions = Vec::new();
            let received = socket.receive(16, |datagram| {
                questions.push((datagram.remote, datagram.bytes.to_vec()));
            });
            received.await.expect("the socket has no peer");
            for (remote, question) in questions {
                let question = Asked::parse(&question);
                names.borrow_mut().push(question.name.clone());
                let reply = script(&question, tasks.now().since(now));
                if !reply.is_empty() {
                    let datagram = OutgoingDatagram::new(&reply, remote);
                    socket.send(&[datagram]).await.expect("a reply is small");
                }
            }
        }
    };
    assert!(scheduler.spawn(Purpose::Background, serve).is_ok());
    let mut worker = Worker::<_, Ready<()>, _>::connecting(engine, scheduler);
    let turn = Box::new(move || {
        worker.turn();
    });
    (turn, asked)
}
