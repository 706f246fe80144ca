//! The stack's end of transfers: an engine on a thread of its own, as a worker of the server is one.

use crate::pattern::Pattern;
use mill_device::attachment::Attachment;
use mill_device::specification::Specification;
use mill_engine::KernelOptions;
use mill_engine::combined::{self, Bypass, CombinedEngine};
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Engine, ListenOptions, ListenerId};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::worker::Worker;
use mill_sys::passing;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

/// A transfer: one end sends so many bytes and its FIN, then the other does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub(crate) bytes: u64,
    pub(crate) seed: u64,
}

/// A stack that serves at port 80 of all its addresses: the client sends first.
#[derive(Debug)]
pub(crate) struct Ours {
    mailbox: OwnedFd,
    outcomes: Receiver<Result<(), String>>,
    thread: Option<JoinHandle<()>>,
}

impl Ours {
    /// Makes the device in the calling thread's namespace, and serves on it. Connects to `targets` at once, on which
    /// this end sends first. Each connection has one outcome.
    pub(crate) fn start(text: &str, transfer: Transfer, targets: Vec<SocketAddr>) -> Self {
        let specification = Specification::parse(text).unwrap();
        let (attachment, _) = Attachment::make(&specification).unwrap();
        let attached = attachment.worker(0).unwrap();
        let (mailbox, far) = passing::pair().unwrap();
        let (outcome, outcomes) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let (link, host) = attached.link(|trouble| panic!("{trouble:?}")).unwrap();
            let options = KernelOptions {
                mailbox: Some(far),
                exact_waits: true,
                ..KernelOptions::default()
            };
            let engine = combined::engine(options, Some(Bypass::new(link, host))).unwrap();
            run(&engine, transfer, targets, &ready, &outcome);
        });
        is_ready.recv().expect("the stack listens");
        Self {
            mailbox,
            outcomes,
            thread: Some(thread),
        }
    }

    /// The outcome of the next connection that ended.
    pub(crate) fn outcome(&self) -> Result<(), String> {
        let outcome = self.outcomes.recv_timeout(TRANSFER_TIME_MAX);
        outcome.unwrap_or_else(|_| Err(String::from("the stack's end takes too long")))
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        // If the thread has panicked, it has ended already.
        let _ = passing::send(self.mailbox.as_fd(), &[], &[]);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(
                ended.is_ok() || std::thread::panicking(),
                "the stack's thread panicked"
            );
        }
    }
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

fn run(
    engine: &CombinedEngine,
    transfer: Transfer,
    targets: Vec<SocketAddr>,
    ready: &Sender<()>,
    outcome: &Sender<Result<(), String>>,
) {
    let (now, wall_clock) = engine.clock();
    let scheduler = Scheduler::new(now, wall_clock);
    let results = outcome.clone();
    let accepted = move |stream, _: ListenerId| -> Task {
        let results = results.clone();
        Box::pin(async move {
            let outcome = answer(stream, transfer).await;
            let _ = results.send(outcome.map_err(|error| format!("accepted: {error}")));
        })
    };
    let mut worker = Worker::new(engine.clone(), Rc::clone(&scheduler), accepted);
    for address in ["0.0.0.0:80", "[::]:80"] {
        let mut options = ListenOptions::new(Address::Ip(address.parse().unwrap()));
        options.ipv6only = Some(true);
        worker.add_listener(engine.listen(&options).unwrap().id);
    }
    for target in targets {
        let (engine, scheduler) = (engine.clone(), Rc::clone(&scheduler));
        let results = outcome.clone();
        worker.spawn(Box::pin(async move {
            let outcome = ask(&engine, &scheduler, target, transfer).await;
            let _ = results.send(outcome.map_err(|error| format!("to {target}: {error}")));
        }));
    }
    let _ = ready.send(());
    while !worker.turn().mail {}
}

async fn ask(
    engine: &CombinedEngine,
    scheduler: &Scheduler,
    target: SocketAddr,
    transfer: Transfer,
) -> Result<(), String> {
    let options = ConnectOptions::default();
    let stream = engine
        .connect(&Address::Ip(target), &options, scheduler.current())
        .map_err(|error| format!("connecting: {error:?}"))?;
    stream.drained(0).await.map_err(describe)?;
    send(&stream, transfer).await?;
    receive(&stream, transfer).await
}

async fn answer(stream: impl Stream, transfer: Transfer) -> Result<(), String> {
    receive(&stream, transfer).await?;
    send(&stream, transfer).await
}

async fn send(stream: &impl Stream, transfer: Transfer) -> Result<(), String> {
    let mut pattern = Pattern::new(transfer.seed);
    let mut piece = vec![0; PIECE_BYTES];
    while pattern.at() < transfer.bytes {
        let len = PIECE_BYTES.min(usize::try_from(transfer.bytes - pattern.at()).unwrap());
        pattern.fill(&mut piece[..len]);
        stream.write(Payload::Copy(&piece[..len]));
        stream
            .drained(4 * PIECE_BYTES as u64)
            .await
            .map_err(describe)?;
    }
    stream.shutdown();
    stream.drained(0).await.map_err(describe)
}

async fn receive(stream: &impl Stream, transfer: Transfer) -> Result<(), String> {
    let mut pattern = Pattern::new(transfer.seed + 1);
    loop {
        let readable = stream.readable(1).await.map_err(describe)?;
        if readable.unread == 0 && readable.finished {
            break;
        }
        stream.read(|bytes| (bytes.len(), pattern.check(bytes)))?;
    }
    if pattern.at() == transfer.bytes {
        Ok(())
    } else {
        let (at, bytes) = (pattern.at(), transfer.bytes);
        Err(format!("{at} bytes came instead of {bytes}"))
    }
}

fn describe(error: StreamError) -> String {
    format!("{error:?}")
}

/// Bytes written at once.
const PIECE_BYTES: usize = 64 * 1024;

/// The time limit of a transfer.
pub(crate) const TRANSFER_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(60);
