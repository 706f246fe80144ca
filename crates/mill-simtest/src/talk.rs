//! What clients do, and what they find.

/// A client that speaks HTTP.
mod http;
/// A client that only carries bytes.
mod raw;
/// The bytes of a connection, compared as they come.
mod reader;

pub(crate) use http::{POST_ANSWER, POST_PATH, path};

use crate::WorldEngine;
use crate::plan::{Talk, TalkPlan};
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Engine};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Stream, StreamError, StreamOption};
use mill_runtime::time::Duration;
use std::cell::RefCell;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;

/// A stream of a world's client.
pub type WorldStream = <WorldEngine as Engine>::Stream;

/// What a client of a world has, shared by its talks.
#[derive(Debug)]
pub struct Client {
    pub index: usize,
    pub engine: WorldEngine,
    pub scheduler: Rc<Scheduler>,
    pub addresses: Addresses,
    pub reports: RefCell<Vec<Report>>,
    /// By talk, the client's end of the last connection that was tried.
    pub ends: RefCell<Vec<Option<SocketAddr>>>,
    /// What it says first is written before it is connected.
    pub asks_fast_open: bool,
}

/// A talk while it goes on.
#[derive(Clone, Copy, Debug)]
struct Talking<'a> {
    client: &'a Client,
    number: usize,
    plan: &'a TalkPlan,
}

/// Where the servers of a world are.
#[derive(Clone, Debug)]
pub struct Addresses {
    pub http: Address,
    pub hash: Address,
    pub echo: Address,
    /// The HTTP server over another TCP, if this world has one.
    pub plain: Option<Address>,
}

/// What became of a talk.
#[derive(Debug)]
pub struct Report {
    pub client: usize,
    pub talk: usize,
    pub began: Duration,
    pub took: Duration,
    pub result: Result<(), Problem>,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// No connection came about, however often it was tried.
    Connect(StreamError),
    /// A connection broke before anything came over it.
    Refused(StreamError),
    /// The connection broke after so many bytes of the content.
    Broken { after: usize, error: StreamError },
    /// It ended after so many bytes of the content.
    Short { after: usize },
    /// The byte here is another than was sent: the one thing that must never happen.
    WrongByte { at: usize },
    /// More came than was sent.
    Surplus,
    /// The server's answer is not the one to this request.
    WrongHead(String),
    /// The server has seen other bytes than were sent.
    WrongHash,
}

/// Carries out one talk and reports.
pub async fn perform(client: Rc<Client>, number: usize, plan: TalkPlan) {
    client.scheduler.sleep(plan.at).await;
    let began = client.scheduler.now();
    let talking = Talking {
        client: &client,
        number,
        plan: &plan,
    };
    let result = match &plan.what {
        Talk::Get { files, how } => http::get(talking, files, *how).await,
        Talk::Post { number, len } => http::post(talking, *number, *len).await,
        Talk::Hash { number, len } => raw::hash(talking, *number, *len).await,
        Talk::Echo { number, len } => raw::echo(talking, *number, *len).await,
    };
    client.reports.borrow_mut().push(Report {
        client: client.index,
        talk: number,
        began: plan.at,
        took: client.scheduler.now().since(began),
        result,
    });
}

impl<'a> Talking<'a> {
    /// Its HTTP server.
    fn http(&self) -> &'a Address {
        let addresses = &self.client.addresses;
        let plain = addresses.plain.as_ref();
        plain
            .filter(|_| self.plan.is_for_plain)
            .unwrap_or(&addresses.http)
    }

    /// A connection over which `first` was said. While the neighbour is unknown (no answer to ARP on a bad wire) it tries
    /// again, as people do.
    async fn connect(&self, target: &Address, first: &[u8]) -> Result<WorldStream, Problem> {
        let client = self.client;
        let mut attempts = 0;
        loop {
            let task = client.scheduler.current();
            let opened = client
                .engine
                .connect(target, &ConnectOptions::default(), task);
            let connected = match opened {
                Ok(stream) => {
                    self.note_end(&stream);
                    if client.asks_fast_open && !first.is_empty() {
                        stream.write(Payload::Copy(first));
                    }
                    stream.drained(0).await.map(|()| stream)
                }
                Err(error) => Err(error),
            };
            attempts += 1;
            match connected {
                Ok(stream) => {
                    if !client.asks_fast_open && !first.is_empty() {
                        stream.write(Payload::Copy(first));
                    }
                    return Ok(stream);
                }
                Err(StreamError::Unreachable) if attempts < ATTEMPTS_MAX => {
                    client.scheduler.sleep(Duration::from_secs(1)).await;
                }
                Err(error) => return Err(Problem::Connect(error)),
            }
        }
    }

    fn note_end(&self, stream: &WorldStream) {
        if let Some(end) = self.client.ends.borrow_mut().get_mut(self.number) {
            *end = match stream.local() {
                Address::Ip(address) => Some(address),
                Address::Unix(_) => None,
            };
        }
    }
}

/// Leaves without waiting: by RST or by closing.
fn leave(stream: WorldStream, by_reset: bool) {
    if by_reset {
        // An engine without it would close, which is another way to leave early.
        let _ = stream.set(StreamOption::ResetOnClose);
    }
    drop(stream);
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            client,
            talk,
            began,
            took,
            result,
        } = self;
        write!(
            formatter,
            "client {client} talk {talk}: began {began:?}, took {took:?}: {result:?}"
        )
    }
}

/// How often a client tries to connect: for longer than any partition of a world lasts, at three seconds until ARP
/// gives up.
const ATTEMPTS_MAX: u32 = 60;
