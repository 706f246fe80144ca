//! The servers of a world: ours, and two that are only bytes.

use crate::WorldEngine;
use crate::content::Hash;
use crate::plan::{Plan, Talk};
use crate::talk::{Addresses, POST_ANSWER, POST_PATH, WorldStream, path};
use mill_config::{Memory, Options, load};
use mill_metrics::Board;
use mill_runtime::address::Address;
use mill_runtime::datagrams::DatagramEngine;
use mill_runtime::engine::{DrainListener, Engine, Keepalive, ListenOptions, Orphans};
use mill_runtime::payload::{Payload, Shared};
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::time::Duration;
use mill_runtime::worker::Worker;
use mill_server::local::Environment;
use mill_server::log::LogSender;
use mill_server::site::Site;
use mill_server::wakes::Doorbell;
use mill_server::worker::{self, Assigned, Order, WorkerSetup};
use mill_sim::files::SimFiles;
use mill_sim::random::Random;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender, channel};

/// One turn of a worker, whatever its tasks are; says how many there are.
pub type Turn = Box<dyn FnMut() -> usize>;

/// Our server.
pub struct HttpServer {
    workers: Vec<RunningWorker>,
    board: Board,
}

struct RunningWorker {
    turn: Box<dyn FnMut() -> bool>,
    /// Their other ends are the worker's: it ends when no order can come.
    _orders: Sender<Order>,
    _reports: Receiver<worker::Report>,
}

impl HttpServer {
    pub fn new(engine: WorldEngine, address: &Address, plan: &Plan) -> Self {
        Self::alone(engine, &site(address, plan))
    }

    /// One worker with another configuration than that of plans.
    pub(crate) fn alone(engine: WorldEngine, text: &str) -> Self {
        Self::of(vec![(engine, Doorbell::silent())], text)
    }

    /// A worker for each of these engines. Where there are several, the configuration has `listen … reuseport`.
    pub(crate) fn of<E>(engines: Vec<(E, Doorbell)>, text: &str) -> Self
    where
        E: DrainListener + Orphans + DatagramEngine + 'static,
    {
        let site = parsed(text);
        let board = Board::in_memory(u32::try_from(engines.len()).unwrap_or(1));
        let has_several = engines.len() > 1;
        let engines = (0..).zip(engines);
        let workers = engines.map(|(index, (engine, doorbell))| {
            let share = has_several.then_some(index);
            start(engine, doorbell, (index, share), &site, &board)
        });
        Self {
            workers: workers.collect(),
            board,
        }
    }

    pub fn turn(&mut self) {
        for worker in &mut self.workers {
            assert!((worker.turn)(), "a server that was not stopped has ended");
        }
    }

    /// Connections that the server has.
    pub fn connections(&self) -> u64 {
        self.board.server_counters().connections_active
    }
}

/// A worker, by its number, with its share of the listening socket.
fn start<E>(
    engine: E,
    doorbell: Doorbell,
    (index, share): (u32, Option<u32>),
    site: &Arc<Site>,
    board: &Board,
) -> RunningWorker
where
    E: DrainListener + Orphans + DatagramEngine + 'static,
{
    let (orders, inbox) = channel();
    let (reporter, reports) = channel();
    let listeners = vec![Assigned { listener: 0, share }];
    let site = Arc::clone(site);
    // The receiver is at hand: it takes everything.
    let _ = orders.send(Order::Adopt { site, listeners });
    let setup = WorkerSetup {
        index,
        environment: Environment {
            pid: 100,
            parent_pid: 99,
            thread_id: 101,
            hostname: Arc::from(&b"world"[..]),
            utc_offset: |_| 0,
            connection_numbers: Arc::new(AtomicU64::new(0)),
        },
        inbox,
        reports: reporter,
        logs: LogSender::memory(),
        board: board.clone(),
        doorbell,
    };
    RunningWorker {
        turn: Box::new(worker::start(engine, setup)),
        _orders: orders,
        _reports: reports,
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HttpServer({} connections)", self.connections())
    }
}

/// Everything that a plan's clients ask for.
pub fn write_files(plan: &Plan, files: &SimFiles) {
    files.create_directory("/site");
    files.write("/site/small", "small");
    let ours = plan.talks.iter().flatten().map(|talk| &talk.what);
    let plain = plan.plain.iter().flat_map(|plain| &plain.talks);
    for talk in ours.chain(plain.map(|talk| &talk.what)) {
        if let Talk::Get { files: asked, .. } = talk {
            for (number, len) in asked {
                let name = format!("/site{}", path(*number, *len));
                files.write(&name, crate::content::of(*number, *len));
            }
        }
    }
}

/// Timeouts are longer than any partition, and slow request content is read to the end; what a seed decides is how the
/// server sends.
fn site(address: &Address, plan: &Plan) -> String {
    let sends = [
        "sendfile on;",
        "sendfile off;",
        "sendfile on; tcp_nopush on;",
    ];
    let cached = ["", "open_file_cache max=100;"];
    let mut random = Random::new(plan.seed ^ SITES);
    format!(
        "error_log /error.log info; events {{ }} http {{ access_log off;
         client_max_body_size 0; client_header_timeout 3000s; client_body_timeout 3000s;
         send_timeout 3000s; lingering_time 3000s; lingering_timeout 300s;
         keepalive_timeout 3000s; {} {}
         server {{ listen {address}{}; root /site;
           location = {POST_PATH} {{ return 200 {POST_ANSWER}; }} }} }}",
        random.one_of(&sends),
        random.one_of(&cached),
        listen_parameters(plan),
    )
}

fn parsed(text: &str) -> Arc<Site> {
    let options = Options::default();
    let source = Memory::new().with(&*options.conf_file(), text);
    match load(&source, &options) {
        Ok(loaded) => Arc::new(Site::new(loaded.config, 1)),
        Err(failure) => panic!("the configuration is refused: {:?}\n{text}", failure.error),
    }
}

/// What a world's settings say of the listener; its keep-alive is as its station's.
fn listen_parameters(plan: &Plan) -> String {
    let settings = &plan.settings;
    let backlog = settings.backlog.map(|it| format!(" backlog={it}"));
    let fast_open = settings.fast_open.map(|it| format!(" fastopen={it}"));
    [backlog, fast_open].into_iter().flatten().collect()
}

/// A worker whose connections come to the hash and the echo server.
pub fn bytes_server(engine: WorldEngine, addresses: &Addresses, plan: &Plan) -> Turn {
    let (now, wall_clock) = engine.clock();
    let listen = |address: &Address| {
        let mut options = ListenOptions::new(address.clone());
        options.backlog = plan.settings.backlog.unwrap_or(options.backlog);
        options.fastopen = plan.settings.fast_open;
        // Clients may vanish while nothing is on the way to them.
        options.keepalive = Keepalive::On {
            idle: Some(Duration::from_secs(60)),
            interval: Some(Duration::from_secs(10)),
            count: Some(5),
        };
        match engine.listen(&options) {
            Ok(listening) => listening.id,
            Err(error) => panic!("{address} belongs to no station: {error:?}"),
        }
    };
    let (hash, echo) = (listen(&addresses.hash), listen(&addresses.echo));
    let mut worker = Worker::new(
        engine,
        Scheduler::new(now, wall_clock),
        move |stream, listener| serve(stream, listener == hash),
    );
    worker.add_listener(hash);
    worker.add_listener(echo);
    Box::new(move || {
        worker.turn();
        worker.tasks()
    })
}

async fn serve(stream: WorldStream, hashes: bool) {
    // A client that breaks its connection gets no answer; the client's side says whether that was planned.
    let _ = if hashes {
        hash(&stream).await
    } else {
        echo(&stream).await
    };
}

async fn hash(stream: &WorldStream) -> Result<(), StreamError> {
    let mut hash = Hash::new();
    loop {
        let readable = stream.readable(1).await?;
        stream.read(|bytes| {
            hash.feed(bytes);
            (bytes.len(), ())
        });
        if readable.finished {
            break;
        }
    }
    stream.write(Payload::Copy(&hash.to_bytes()));
    stream.drained(0).await
}

async fn echo(stream: &WorldStream) -> Result<(), StreamError> {
    loop {
        let readable = stream.readable(1).await?;
        let bytes = stream.read(|bytes| (bytes.len(), Shared::from(&*bytes)));
        let len = bytes.len();
        stream.write(Payload::Shared(bytes, 0..len));
        stream.drained(ECHO_QUEUED_BYTES).await?;
        if readable.finished {
            return Ok(());
        }
    }
}

/// Mixed into the seed for what the server is configured with.
const SITES: u64 = 0x0517_e500_0000_0002;

/// Bytes that the echo server lets wait before it reads on.
const ECHO_QUEUED_BYTES: u64 = 30_000;
