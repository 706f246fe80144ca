//! The server behind a proxy that is under load, in the thread that makes the load: both share one engine, and so one
//! queue of an interface or one shared memory.

use crate::responder::{self, Conduct};
use core::cell::RefCell;
use core::fmt;
use core::future::Future;
use core::net::{Ipv4Addr, SocketAddr};
use core::pin::Pin;
use mill_runtime::address::Address;
use mill_runtime::engine::{Engine, ListenOptions};
use mill_runtime::scheduler::Scheduler;
use std::collections::VecDeque;
use std::rc::Rc;

/// Where requests are answered, and with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub port: u16,
    /// Bytes of content in each answer.
    pub content_bytes: usize,
}

impl Origin {
    /// Where to listen: at all IPv4 addresses of this machine and of the stack.
    pub fn address(self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, self.port))
    }

    pub fn listening(self) -> ListenOptions {
        ListenOptions::new(Address::Ip(self.address()))
    }
}

/// Accepted connections whose tasks have not begun yet. The task of a connection that sends requests, of which there
/// may be a million, is not to be larger for it: what answers is boxed.
#[derive(Default)]
pub(crate) struct Accepted(RefCell<VecDeque<Answers>>);

/// Answers the requests of a connection, until either side closes it.
pub(crate) type Answers = Pin<Box<dyn Future<Output = ()>>>;

impl Accepted {
    pub(crate) fn push(&self, answers: Answers) {
        self.0.borrow_mut().push_back(answers);
    }

    /// The one that has waited longest.
    pub(crate) fn take(&self) -> Option<Answers> {
        self.0.borrow_mut().pop_front()
    }
}

impl fmt::Debug for Accepted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Accepted({})", self.0.borrow().len())
    }
}

/// Makes what answers on an accepted connection.
pub(crate) fn answering<E: Engine>(
    engine: &E,
    scheduler: &Rc<Scheduler>,
    origin: Option<Origin>,
) -> impl Fn(E::Stream) -> Answers + use<E> {
    let conduct = Conduct {
        content_bytes: origin.map_or(0, |origin| origin.content_bytes),
        ..Conduct::default()
    };
    let responding = responder::Local::new(engine.clone(), Rc::clone(scheduler), &conduct);
    let responding = Rc::new(responding);
    move |stream| Box::pin(responder::serve(Rc::clone(&responding), stream))
}
