//! An origin server that does what a test says, and writes down what it was asked.

use super::lenient::Reader;
use mill_runtime::engine::{Engine, ListenOptions};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Stream, StreamOption};
use mill_runtime::time::Instant;
use mill_runtime::worker::Worker;
use mill_sim::engine::SimEngine;
use mill_sim::world::World;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// What an origin does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Send(Vec<u8>),
    Wait(Duration),
    /// Takes so long, behind what took its time before: the origin serves one request at a time.
    Work(Duration),
    /// FIN; a request after this one is not answered.
    Close,
    /// FIN; it goes on reading.
    Finish,
    Reset,
    /// Waits until the proxy closes the connection.
    Hang,
    /// Sends back what arrives from now on.
    Echo,
}

/// The requests that an origin has received, and the number of connections.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) requests: RefCell<Vec<String>>,
    pub(crate) connections: RefCell<usize>,
    /// What has arrived, by connection.
    pub(crate) bytes: RefCell<Vec<Vec<u8>>>,
    /// The address that each of them came from.
    pub(crate) peers: RefCell<Vec<String>>,
    /// Sent on each connection as soon as something arrives.
    pub(crate) hint: RefCell<String>,
    /// When its work is done.
    pub(crate) busy_until: Cell<Instant>,
    /// What has arrived while it hung.
    pub(crate) bytes_behind: RefCell<usize>,
}

type Script = Rc<dyn Fn(usize, &str) -> Vec<Act>>;

/// Sends this text.
pub(crate) fn send(text: &str) -> Act {
    Act::Send(text.as_bytes().to_vec())
}

/// An answer with this content.
pub(crate) fn ok(content: &str) -> Act {
    let len = content.len();
    send(&format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n{content}"
    ))
}

/// Starts an origin at `address`. For each request it does what `script` says, which gets the number of the request
/// among all, from 0, and its text. Returns its turn and what it sees.
pub(crate) fn start(
    world: &World,
    address: &str,
    script: impl Fn(usize, &str) -> Vec<Act> + 'static,
) -> (Box<dyn FnMut()>, Rc<Seen>) {
    let engine = world.engine();
    let (now, wall_clock) = engine.clock();
    let scheduler = Scheduler::new(now, wall_clock);
    let listening = engine
        .listen(&ListenOptions::new(world.address(address)))
        .expect("the address is free");
    let seen = Rc::new(Seen::default());
    let script: Script = Rc::new(script);
    let accepted = {
        let (scheduler, seen) = (Rc::clone(&scheduler), Rc::clone(&seen));
        move |stream: <SimEngine as Engine>::Stream, _| {
            let number = *seen.connections.borrow();
            *seen.connections.borrow_mut() += 1;
            seen.bytes.borrow_mut().push(Vec::new());
            seen.peers.borrow_mut().push(stream.peer().to_string());
            serve(
                stream,
                number,
                Rc::clone(&script),
                Rc::clone(&seen),
                Rc::clone(&scheduler),
            )
        }
    };
    let mut worker = Worker::new(engine, scheduler, accepted);
    worker.add_listener(listening.id);
    let turn = Box::new(move || {
        worker.turn();
    });
    (turn, seen)
}

async fn serve(
    stream: <SimEngine as Engine>::Stream,
    number: usize,
    script: Script,
    seen: Rc<Seen>,
    scheduler: Rc<Scheduler>,
) {
    let hint = seen.hint.borrow().clone();
    if !hint.is_empty() && stream.readable(1).await.is_ok() {
        stream.write(Payload::Copy(hint.as_bytes()));
    }
    let mut received = Vec::new();
    let read = |bytes: &[u8]| seen.bytes.borrow_mut()[number].extend_from_slice(bytes);
    while let Some(request) = read_request(&stream, &mut received, read).await {
        let number = seen.requests.borrow().len();
        seen.requests.borrow_mut().push(request.clone());
        for act in script(number, &request) {
            match act {
                Act::Send(bytes) => {
                    stream.write(Payload::Copy(&bytes));
                    if stream.drained(0).await.is_err() {
                        return;
                    }
                }
                Act::Wait(duration) => scheduler.sleep(duration).await,
                Act::Work(duration) => {
                    let now = scheduler.now();
                    let done = seen.busy_until.get().max(now) + duration;
                    seen.busy_until.set(done);
                    scheduler.sleep(done.since(now)).await;
                }
                Act::Close => return,
                Act::Finish => stream.shutdown(),
                Act::Reset => {
                    let _ = stream.set(StreamOption::ResetOnClose);
                    return;
                }
                Act::Hang => {
                    while stream
                        .readable(1)
                        .await
                        .is_ok_and(|readable| !readable.finished)
                    {
                        let len = stream.read(|bytes| (bytes.len(), bytes.len()));
                        *seen.bytes_behind.borrow_mut() += len;
                    }
                    return;
                }
                Act::Echo => return echo(&stream, &received).await,
            }
        }
    }
}

/// A head, with the content that its Content-Length or its chunks announce; `None` at the end of the connection. What
/// follows it stays in `received`.
async fn read_request(
    stream: &<SimEngine as Engine>::Stream,
    received: &mut Vec<u8>,
    write_down: impl Fn(&[u8]),
) -> Option<String> {
    loop {
        if let Some(len) = Reader::STRICT.request_len(received) {
            let request = received.drain(..len).collect::<Vec<u8>>();
            return Some(String::from_utf8_lossy(&request).into_owned());
        }
        if stream.readable(1).await.ok()?.unread == 0 {
            return None;
        }
        stream.read(|bytes| {
            received.extend_from_slice(bytes);
            write_down(bytes);
            (bytes.len(), ())
        });
    }
}

async fn echo(stream: &<SimEngine as Engine>::Stream, received: &[u8]) {
    stream.write(Payload::Copy(received));
    while let Ok(readable) = stream.readable(1).await {
        if readable.unread == 0 {
            return;
        }
        let bytes = stream.read(|bytes| (bytes.len(), bytes.to_vec()));
        stream.write(Payload::Copy(&bytes));
        if stream.drained(0).await.is_err() {
            return;
        }
    }
}
