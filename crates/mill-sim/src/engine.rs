//! The engine that a worker runs over.

use crate::files::SimFiles;
use crate::network::{Net, run_due};
use crate::stream::SimStream;
use mill_runtime::address::Address;
use mill_runtime::engine::{
    Accept, ConnectOptions, DrainListener, Engine, Events, ListenError, ListenOptions, ListenerId,
    Listening, Orphans, Park,
};
use mill_runtime::stream::StreamError;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::{Instant, UnixTime};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One worker's engine; clones are the same engine, the last one's end closes its listeners.
#[derive(Clone, Debug)]
pub struct SimEngine {
    files: SimFiles,
    identity: Rc<Identity>,
}

#[derive(Debug)]
struct Identity {
    net: Net,
    index: usize,
}

impl SimEngine {
    pub(crate) fn new(net: &Net, files: SimFiles) -> Self {
        let index = net.borrow_mut().add_engine();
        let identity = Rc::new(Identity {
            net: Rc::clone(net),
            index,
        });
        Self { files, identity }
    }

    pub(crate) fn net(&self) -> Net {
        Rc::clone(&self.identity.net)
    }

    /// Its number in the world.
    pub(crate) fn index(&self) -> usize {
        self.identity.index
    }

    /// How many streams may be open before `accept` says `Exhausted` and `connect` fails, both with EMFILE.
    pub fn set_streams_max(&self, streams_max: usize) {
        let mut net = self.identity.net.borrow_mut();
        net.engines[self.identity.index].streams_max = streams_max;
    }

    /// How many streams are open.
    pub fn streams(&self) -> usize {
        self.identity.net.borrow().engines[self.identity.index].streams
    }

    /// Whether its worker has something to do: time or an event that it waits for has come, or it has not said yet what it
    /// waits for. A turn of one that is not due changes nothing.
    pub fn is_due(&self) -> bool {
        self.identity.net.borrow().is_due(self.identity.index)
    }

    /// There is mail for this engine's worker.
    pub fn post_mail(&self) {
        self.mail_poster()();
    }

    /// Does the same, from wherever it is called.
    pub fn mail_poster(&self) -> impl Fn() + Send + Sync + use<> {
        let net = self.identity.net.borrow();
        let mail = Arc::clone(&net.engines[self.identity.index].mail);
        move || mail.store(true, Ordering::Release)
    }
}

impl Engine for SimEngine {
    type Stream = SimStream;
    type Files = SimFiles;

    fn files(&self) -> &SimFiles {
        &self.files
    }

    fn clock(&self) -> (Instant, UnixTime) {
        let net = self.identity.net.borrow();
        (net.now, net.wall_clock())
    }

    fn now(&self) -> Instant {
        self.identity.net.borrow().now
    }

    fn random(&self) -> u64 {
        let mut net = self.identity.net.borrow_mut();
        net.engines[self.identity.index].random.next()
    }

    fn listen(&self, options: &ListenOptions) -> Result<Listening, ListenError> {
        let mut net = self.identity.net.borrow_mut();
        let (index, unsupported) = net.listen(self.identity.index, options)?;
        let id = ListenerId(u32::try_from(index).expect("fewer than 2^32 listeners fit in memory"));
        Ok(Listening { id, unsupported })
    }

    fn close_listener(&self, listener: ListenerId) {
        let mut net = self.identity.net.borrow_mut();
        net.close_listener(listener.0 as usize);
    }

    fn set_accepting(&self, listener: ListenerId, accepting: bool) {
        let mut net = self.identity.net.borrow_mut();
        net.listeners[listener.0 as usize].accepting = accepting;
    }

    fn accept(&self, listener: ListenerId, task: TaskId) -> Accept<SimStream> {
        let accept = {
            let mut net = self.identity.net.borrow_mut();
            net.accept(listener.0 as usize, task)
        };
        match accept {
            Accept::Stream(end) => {
                Accept::Stream(SimStream::new(Rc::clone(&self.identity.net), end))
            }
            Accept::Empty => Accept::Empty,
            Accept::Aborted => Accept::Aborted,
            Accept::Exhausted(code) => Accept::Exhausted(code),
        }
    }

    fn accepts_freely(&self, _: ListenerId) -> bool {
        false
    }

    fn connect(
        &self,
        target: &Address,
        options: &ConnectOptions,
        task: TaskId,
    ) -> Result<SimStream, StreamError> {
        let source = options.source.as_ref();
        let mut net = self.identity.net.borrow_mut();
        net.opened_last = options.clone();
        let end = net.connect_task(self.identity.index, target, source, task)?;
        Ok(SimStream::new(Rc::clone(&self.identity.net), end))
    }

    fn poll(&self, park: Park, events: &mut Events) -> (Instant, UnixTime) {
        let (net, index) = (&self.identity.net, self.identity.index);
        net.borrow_mut().park(index, park);
        loop {
            run_due(net);
            let mut net = net.borrow_mut();
            if net.take_events(index, events) || !net.advance() {
                return (net.now, net.wall_clock());
            }
        }
    }

    fn settle(&self) {
        self.identity.net.borrow_mut().settle(self.identity.index);
    }
}

/// A connection waits to be accepted from when its request to connect arrives: no handshake is ever under way.
impl DrainListener for SimEngine {
    fn drain_listener(&self, _: ListenerId) -> bool {
        true
    }

    fn keep_listener(&self, _: ListenerId) {}
}

/// The network, which outlives the engine, completes what its streams have left.
impl Orphans for SimEngine {
    fn has_lingering_orphans(&self) -> bool {
        false
    }

    fn orphans(&self) -> usize {
        0
    }

    fn abort_orphans(&self) -> bool {
        false
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        // While a test fails the network may be borrowed further up; then nothing reads it any more.
        if let Ok(mut net) = self.net.try_borrow_mut() {
            net.remove_engine(self.index);
        }
    }
}
