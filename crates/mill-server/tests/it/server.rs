//! A whole server in a simulated world.

use mill_config::config::Config;
use mill_config::{Memory, Options, load};
use mill_metrics::{Board, ServerCounters};
use mill_server::local::{Environment, Shared};
use mill_server::log::LogSender;
use mill_server::site::Site;
use mill_server::wakes::Doorbell;
use mill_server::worker::{self, Assigned, Order, Report, WorkerSetup};
use mill_sim::client::Client;
use mill_sim::engine::SimEngine;
use mill_sim::files::SimFiles;
use mill_sim::world::{Until, World};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Where the servers of these tests listen by default.
pub(crate) const ADDRESS: &str = "10.0.0.1:80";

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A world, its workers, and their log lines and counters.
pub(crate) struct Server {
    pub(crate) world: World,
    pub(crate) logs: LogSender,
    pub(crate) workers: Vec<RunningWorker>,
    /// Turns of what else runs in the world: origins.
    peers: Vec<Box<dyn FnMut()>>,
    board: Board,
    connection_numbers: Arc<AtomicU64>,
    generation: u64,
    /// The configuration in force.
    pub(crate) site: Arc<Site>,
}

/// One worker; its turn and engine are dropped when it has ended.
pub(crate) struct RunningWorker {
    index: usize,
    running: Option<Running>,
    orders: Sender<Order>,
    reports: Receiver<Report>,
}

struct Running {
    engine: SimEngine,
    turn: Box<dyn FnMut() -> bool>,
}

/// A configuration with one server: it listens at [`ADDRESS`], has no access log, and contains `directives`.
pub(crate) fn one_server(directives: &str) -> String {
    in_http(&format!(
        "server {{ listen {ADDRESS}; root /site; {directives} }}"
    ))
}

/// A configuration whose `http` block holds `directives`. Errors are logged to `/error.log`.
pub(crate) fn in_http(directives: &str) -> String {
    format!("error_log /error.log info; events {{ }} http {{ access_log off; {directives} }}")
}

/// The configuration of `text`.
pub(crate) fn site(text: &str, generation: u64) -> Arc<Site> {
    Arc::new(Site::new(config(text), generation))
}

fn config(text: &str) -> Config {
    config_with(text, &Options::default(), &[])
}

fn config_with(text: &str, options: &Options, files: &[(&str, &str)]) -> Config {
    let mut source = Memory::new().with(&*options.conf_file(), text);
    for (path, content) in files {
        source = source.with(*path, *content);
    }
    match load(&source, options) {
        Ok(loaded) => loaded.config,
        Err(failure) => panic!("the configuration is refused: {:?}\n{text}", failure.error),
    }
}

/// The arguments of a worker that a test starts by itself.
pub(crate) fn shared() -> Shared {
    Shared {
        index: 0,
        environment: Environment {
            pid: 1,
            parent_pid: 99,
            thread_id: 1,
            hostname: Arc::from(&b"sim"[..]),
            utc_offset: |_| 0,
            connection_numbers: Arc::default(),
        },
        logs: LogSender::memory(),
        board: Board::in_memory(1),
        doorbell: Doorbell::silent(),
    }
}

impl Server {
    /// One worker with [`one_server`], and a small site.
    pub(crate) fn new(seed: u64, directives: &str) -> Self {
        Self::configured(World::new(seed), &one_server(directives), 1)
    }

    /// `count` workers in a prepared world. With `reuseport` in its `listen` a port has a socket for each worker, else
    /// one socket.
    pub(crate) fn configured(world: World, text: &str, count: usize) -> Self {
        Self::serving(world, site(text, 1), count)
    }

    /// One worker, whose configuration names files.
    pub(crate) fn with_files(world: World, text: &str, files: &[(&str, &str)]) -> Self {
        let config = config_with(text, &Options::default(), files);
        Self::serving(world, Arc::new(Site::new(config, 1)), 1)
    }

    /// One worker with a configuration of Tempesta FW.
    pub(crate) fn of_tempesta(world: World, text: &str) -> Self {
        let options = Options {
            is_tempesta: true,
            ..Options::default()
        };
        let config = config_with(text, &options, &[]);
        Self::serving(world, Arc::new(Site::new(config, 1)), 1)
    }

    fn serving(world: World, site: Arc<Site>, count: usize) -> Self {
        world.files().write("/site/index.html", "home\n");
        world.files().write("/site/a.txt", "file a\n");
        world.files().write("/site/b.txt", "file b\n");
        world.files().write("/site/big.bin", big());
        let board = Board::in_memory(u32::try_from(count).expect("few workers"));
        let logs = LogSender::memory();
        let mut server = Self {
            world,
            logs,
            connection_numbers: Arc::default(),
            workers: Vec::new(),
            peers: Vec::new(),
            board,
            generation: 1,
            site: Arc::clone(&site),
        };
        for index in 0..count {
            let worker = server.start(index, &site);
            server.workers.push(worker);
        }
        server
    }

    fn start(&self, index: usize, site: &Arc<Site>) -> RunningWorker {
        let engine = self.world.engine();
        let (orders, inbox) = channel();
        let (reporter, reports) = channel();
        orders.send(adopt(site, index)).expect("the inbox is open");
        let setup = WorkerSetup {
            index: u32::try_from(index).expect("few workers"),
            environment: Environment {
                pid: 100,
                parent_pid: 99,
                thread_id: 101,
                hostname: Arc::from(&b"sim"[..]),
                utc_offset: |_| 0,
                connection_numbers: Arc::clone(&self.connection_numbers),
            },
            inbox,
            reports: reporter,
            logs: self.logs.clone(),
            board: self.board.clone(),
            doorbell: Doorbell::new(engine.mail_poster()),
        };
        let turn = Box::new(worker::start(engine.clone(), setup));
        RunningWorker {
            index,
            running: Some(Running { engine, turn }),
            orders,
            reports,
        }
    }

    /// Something else runs in the world: its turns.
    pub(crate) fn add_peer(&mut self, turn: Box<dyn FnMut()>) {
        self.peers.push(turn);
    }

    /// A client that connects now.
    pub(crate) fn connect(&self) -> Client {
        self.world.connect(ADDRESS)
    }

    pub(crate) fn files(&self) -> &SimFiles {
        self.world.files()
    }

    /// Runs until nothing is in flight, without waiting for timers.
    pub(crate) fn run(&mut self) {
        self.run_until(Until::Quiet);
    }

    /// Runs until no timer is left either.
    pub(crate) fn run_until_idle(&mut self) {
        self.run_until(Until::Idle);
    }

    /// Runs until this time since the world began.
    pub(crate) fn run_to(&mut self, elapsed: Duration) {
        self.run_until(Until::At(elapsed));
    }

    pub(crate) fn run_until(&mut self, until: Until) {
        self.run_each(until, || ());
    }

    /// The same; looks after each round of turns.
    pub(crate) fn run_each(&mut self, until: Until, mut look: impl FnMut()) {
        let Self {
            world,
            workers,
            peers,
            ..
        } = self;
        let turns = || {
            workers.iter_mut().for_each(RunningWorker::turn);
            peers.iter_mut().for_each(|turn| turn());
            look();
        };
        world.run(turns, until);
    }

    /// Puts another configuration in force, as a reload does.
    pub(crate) fn adopt(&mut self, text: &str) {
        self.generation += 1;
        let former = Some(&*self.site);
        let site = Site::following(former, config(text), self.generation, None);
        self.site = Arc::new(site);
        for worker in &self.workers {
            worker.order(adopt(&self.site, worker.index));
        }
    }

    pub(crate) fn order(&self, order: impl Fn() -> Order) {
        for worker in &self.workers {
            worker.order(order());
        }
    }

    /// The sum of all workers' counters.
    pub(crate) fn counters(&self) -> ServerCounters {
        self.board.server_counters()
    }

    /// The streams that are open at all workers.
    pub(crate) fn streams(&self) -> usize {
        self.workers.iter().map(RunningWorker::streams).sum()
    }

    /// Sends a request on a connection of its own, runs, and returns the received bytes.
    pub(crate) fn ask(&mut self, request: &str) -> Vec<u8> {
        let client = self.connect();
        client.send(request);
        self.run();
        client.received()
    }

    /// Nothing is left of any connection: no stream, no open file except cached ones, no count.
    pub(crate) fn assert_nothing_left(&self, open_files_max: usize) {
        let counters = self.counters();
        assert_eq!(self.streams(), 0, "streams");
        assert_eq!(counters.connections_active, 0, "{counters:?}");
        assert_eq!(counters.connections_reading, 0, "{counters:?}");
        assert_eq!(counters.connections_writing, 0, "{counters:?}");
        assert_eq!(counters.connections_waiting, 0, "{counters:?}");
        let open = self.files().open_files();
        assert!(open <= open_files_max, "{open} files are open");
    }

    /// The lines of the error log, without their time and level.
    pub(crate) fn error_log(&self) -> Vec<String> {
        self.logs.lines("/error.log")
    }

    /// Whether a line of the error log has this text.
    pub(crate) fn has_logged(&self, text: &str) -> bool {
        self.error_log().iter().any(|line| line.contains(text))
    }
}

impl RunningWorker {
    pub(crate) fn turn(&mut self) {
        if let Some(running) = &mut self.running
            && !(running.turn)()
        {
            self.running = None;
        }
    }

    pub(crate) fn order(&self, order: Order) {
        // A worker that has ended takes no orders.
        if let Some(running) = &self.running {
            self.orders
                .send(order)
                .expect("a worker's inbox is open while it runs");
            running.engine.post_mail();
        }
    }

    pub(crate) fn engine(&self) -> &SimEngine {
        &self.running.as_ref().expect("the worker runs").engine
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.running.is_none()
    }

    pub(crate) fn streams(&self) -> usize {
        self.running
            .as_ref()
            .map_or(0, |running| running.engine.streams())
    }

    /// The worker's reports since the last call.
    pub(crate) fn reports(&self) -> Vec<Report> {
        self.reports.try_iter().collect()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Server({} workers)", self.workers.len())
    }
}

fn adopt(site: &Arc<Site>, index: usize) -> Order {
    let share = u32::try_from(index).ok();
    let sockets = site.config.sockets();
    let assigned = sockets.enumerate().map(|(listener, configured)| Assigned {
        listener,
        share: share.filter(|_| configured.options.reuseport),
    });
    Order::Adopt {
        site: Arc::clone(site),
        listeners: assigned.collect(),
    }
}

/// A megabyte in which no two pieces are equal.
pub(crate) fn big() -> &'static [u8] {
    static BIG: LazyLock<Vec<u8>> = LazyLock::new(|| {
        (0..BIG_BYTES / 8)
            .flat_map(|index| format!("{index:07}\n").into_bytes())
            .collect()
    });
    &BIG
}

pub(crate) const BIG_BYTES: usize = 1 << 20;
