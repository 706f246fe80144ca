//! A server whose behaviour the test defines.

use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Stream, StreamOption};
use mill_runtime::time::Duration;
use mill_sim::stream::SimStream;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What a server does with one request.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    /// Before anything is sent.
    pub(crate) delay: Duration,
    pub(crate) bytes: Vec<u8>,
    /// Unrequested bytes, and how much later they are sent.
    pub(crate) besides: Option<(Duration, Vec<u8>)>,
    pub(crate) then: Then,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Keep,
    Close,
    Reset,
}

/// The server's record of a run.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) connections: Cell<u32>,
    /// The bytes of each request, in the order in which they came.
    pub(crate) requests: RefCell<Vec<Vec<u8>>>,
    /// The peer of each connection.
    pub(crate) peers: RefCell<Vec<String>>,
}

impl Act {
    pub(crate) fn answer(content: &str) -> Self {
        Self::raw(&format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{content}",
            content.len()
        ))
    }

    pub(crate) fn raw(text: &str) -> Self {
        Self {
            delay: Duration::ZERO,
            bytes: text.as_bytes().to_vec(),
            besides: None,
            then: Then::Keep,
        }
    }

    pub(crate) fn besides(mut self, delay: Duration, text: &str) -> Self {
        self.besides = Some((delay, text.as_bytes().to_vec()));
        self
    }

    pub(crate) fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    pub(crate) fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }
}

/// One connection: for each request the action that `law` returns, given the request's number among all.
pub(crate) async fn serve(
    stream: SimStream,
    scheduler: Rc<Scheduler>,
    law: Rc<dyn Fn(usize) -> Act>,
    log: Rc<Log>,
) {
    log.connections.set(log.connections.get() + 1);
    log.peers.borrow_mut().push(stream.peer().to_string());
    let mut least = 1;
    loop {
        let Ok(readable) = stream.readable(least).await else {
            return;
        };
        let request = stream.read(|bytes| {
            let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
            let length = end.map_or(0, |end| end + 4);
            (length, bytes[..length].to_vec())
        });
        if request.is_empty() {
            if readable.finished {
                return;
            }
            least = readable.unread + 1;
            continue;
        }
        least = 1;
        let number = log.requests.borrow().len();
        log.requests.borrow_mut().push(request);
        let act = law(number);
        if !act.delay.is_zero() {
            scheduler.sleep(act.delay).await;
        }
        stream.write(Payload::Copy(&act.bytes));
        if let Some((delay, bytes)) = &act.besides {
            scheduler.sleep(*delay).await;
            stream.write(Payload::Copy(bytes));
        }
        match act.then {
            Then::Keep => {}
            Then::Close => return,
            Then::Reset => {
                stream
                    .set(StreamOption::ResetOnClose)
                    .expect("the simulation has it");
                return;
            }
        }
    }
}
