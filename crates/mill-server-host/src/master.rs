//! What the master decides, without doing it: signals, ended children and time in, actions out.
//!
//! Order of calls: `Master::on_start` once; then the `on_` method of each event, and after each of them
//! `Master::next_action` until it is `None`, carrying out each action before asking for the next. Between events the
//! caller sleeps, at most until `Master::wake_at`, and then calls `Master::on_time`.
//!
//! Times count from any fixed moment, as long as they are monotonic.

use mill_config::config::LogLevel;
use mill_sys::process::Pid;
use mill_sys::signal::{Received, Signal};
use std::collections::VecDeque;
use std::time::Duration;

/// What the master does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write a line to the error log.
    Log(LogLevel, String),
    /// Read the configuration again and hand it to the worker process; keep the old one if it is bad.
    Reconfigure,
    /// Open the log files again and hand them to the worker process.
    ReopenLogs,
    /// Start a worker process, then call [`Master::on_worker_started`] or [`Master::on_worker_not_started`].
    StartWorker,
    /// Ask a worker process to exit once its requests are answered.
    Quit(Pid),
    /// Send a signal to a worker process.
    Signal(Pid, Signal),
    /// Start the new binary beside this process, then call [`Master::on_binary_started`] if that worked.
    StartBinary,
    /// Rename the pid file back: the new binary has ended.
    RestorePidFile,
    /// Close the listening sockets of this process.
    CloseListeners,
    /// Remove the pid file and exit.
    Exit,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Code(i32),
    Signal { number: i32, core_dumped: bool },
}

/// The state of the master.
#[derive(Debug)]
pub struct Master {
    /// Without a controlling terminal WINCH is an order, not a change of a window's size.
    daemonized: bool,
    phase: Phase,
    workers: Vec<Worker>,
    new_binary: Option<Pid>,
    /// The new binary takes connections only once it serves, since the network stack is not shared as listening sockets are: until then,
    /// or this time, its old one goes on.
    awaited_until: Option<Duration>,
    /// QUIT or WINCH, to be obeyed then.
    held: Option<Signal>,
    /// WINCH arrived, and no later signal has started a worker process again.
    not_accepting: bool,
    /// A worker process is started at this time.
    restart_at: Option<Duration>,
    /// Consecutive worker processes that ended before they were ready.
    failures: u32,
    actions: VecDeque<Action>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// QUIT arrived: the master exits after the last worker process.
    Quitting,
    /// TERM or INT arrived: processes that still run at this time are killed.
    Terminating {
        kill_at: Option<Duration>,
    },
}

#[derive(Debug)]
struct Worker {
    pid: Pid,
    /// It was asked to exit.
    exiting: bool,
}

impl Master {
    pub fn new(daemonized: bool) -> Self {
        Self {
            daemonized,
            phase: Phase::Running,
            workers: Vec::new(),
            new_binary: None,
            awaited_until: None,
            held: None,
            not_accepting: false,
            restart_at: None,
            failures: 0,
            actions: VecDeque::new(),
        }
    }

    /// The next action; `None` when nothing is to be done until the next event.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Master::on_time`] is to be called at the latest.
    pub fn wake_at(&self) -> Option<Duration> {
        let kill_at = match self.phase {
            Phase::Terminating { kill_at } => kill_at,
            Phase::Running | Phase::Quitting => None,
        };
        let waits = [kill_at, self.restart_at, self.awaited_until];
        waits.into_iter().flatten().min()
    }

    /// The worker process that serves; none while it is being restarted or after WINCH.
    pub fn serving(&self) -> Option<Pid> {
        self.workers
            .iter()
            .find(|worker| !worker.exiting)
            .map(|worker| worker.pid)
    }

    /// Whether a new binary runs beside this one: then the usual pid file is the new binary's.
    pub fn is_superseded(&self) -> bool {
        self.new_binary.is_some()
    }

    /// The configuration is read and the sockets are bound.
    pub fn on_start(&mut self) {
        self.start_worker();
    }

    /// A signal arrived. `beside_old_binary`: USR2 started this process, and the binary that did so still runs.
    pub fn on_signal(&mut self, received: Received, beside_old_binary: bool, now: Duration) {
        let ignored =
            received.signal == Signal::User2 && (beside_old_binary || self.new_binary.is_some());
        self.log_signal(received, ignored);
        match received.signal {
            Signal::Terminate | Signal::Interrupt => self.terminate(now),
            Signal::Quit if self.holds(Signal::Quit) => {}
            Signal::Quit => self.quit(),
            Signal::Hangup => self.reconfigure(),
            Signal::User1 => {
                self.log(LogLevel::Notice, "reopening logs");
                self.actions.push_back(Action::ReopenLogs);
            }
            Signal::User2 if ignored => self.log(
                LogLevel::Crit,
                "the changing binary signal is ignored: \
                 you should shutdown or terminate before either old or new binary's process",
            ),
            Signal::User2 if self.phase == Phase::Running => {
                self.log(LogLevel::Notice, "changing binary");
                self.actions.push_back(Action::StartBinary);
            }
            Signal::WindowChange if self.daemonized && self.phase == Phase::Running => {
                if !self.holds(Signal::WindowChange) {
                    self.stop_accepting();
                }
            }
            // A child's end is reported to `on_child_exit`.
            Signal::User2 | Signal::WindowChange | Signal::Child | Signal::Kill => {}
        }
    }

    pub fn on_worker_started(&mut self, pid: Pid) {
        self.log(LogLevel::Notice, &format!("start worker process {pid}"));
        self.workers.push(Worker {
            pid,
            exiting: false,
        });
    }

    /// A worker process could not be started, which the caller has logged: it is tried again later.
    pub fn on_worker_not_started(&mut self, now: Duration) {
        self.failures = self.failures.saturating_add(1);
        self.restart_at = Some(now + RESTART_DELAY);
    }

    /// The worker process has taken its first configuration.
    pub fn on_worker_ready(&mut self, pid: Pid) {
        if self.workers.iter().any(|worker| worker.pid == pid) {
            self.failures = 0;
        }
    }

    /// `is_to_tell`: the new binary says when it serves ([`Self::on_binary_serves`]).
    pub fn on_binary_started(&mut self, pid: Pid, is_to_tell: bool, now: Duration) {
        self.log(LogLevel::Notice, &format!("start new binary process {pid}"));
        self.new_binary = Some(pid);
        self.awaited_until = is_to_tell.then_some(now + BINARY_TIMEOUT);
    }

    /// The new binary serves, or does not tell.
    pub fn on_binary_serves(&mut self) {
        self.awaited_until = None;
        match self.held.take() {
            Some(Signal::Quit) => self.quit(),
            Some(_) if self.phase == Phase::Running => self.stop_accepting(),
            _ => {}
        }
    }

    /// A child has ended.
    pub fn on_child_exit(&mut self, pid: Pid, ending: Ending, now: Duration) {
        if let Some(index) = self.workers.iter().position(|worker| worker.pid == pid) {
            let worker = self.workers.swap_remove(index);
            self.log_ending("worker process", pid, ending);
            self.on_worker_exit(&worker, ending, now);
        } else if self.new_binary == Some(pid) {
            self.log_ending("new binary process", pid, ending);
            self.new_binary = None;
            self.actions.push_back(Action::RestorePidFile);
            // WINCH was an order for the time after it.
            self.held = self.held.filter(|held| *held == Signal::Quit);
            self.on_binary_serves();
            if self.not_accepting && self.phase == Phase::Running {
                self.not_accepting = false;
                self.start_worker();
            }
        } else {
            self.log_ending("unknown process", pid, ending);
        }
    }

    /// Time has passed.
    pub fn on_time(&mut self, now: Duration) {
        if self.restart_at.is_some_and(|at| at <= now) {
            self.start_worker();
        }
        if self.awaited_until.is_some_and(|at| at <= now) {
            self.on_binary_serves();
        }
        if let Phase::Terminating { kill_at: Some(at) } = self.phase
            && at <= now
        {
            self.phase = Phase::Terminating { kill_at: None };
            for worker in &self.workers {
                let kill = Action::Signal(worker.pid, Signal::Kill);
                self.actions.push_back(kill);
            }
        }
    }

    fn on_worker_exit(&mut self, worker: &Worker, ending: Ending, now: Duration) {
        if self.phase != Phase::Running {
            self.exit_if_alone();
            return;
        }
        if worker.exiting {
            return;
        }
        if ending == Ending::Code(FATAL_CODE) {
            let what = format!(
                "worker process {} exited with fatal code {FATAL_CODE} and cannot be respawned",
                worker.pid
            );
            self.log(LogLevel::Alert, &what);
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if self.failures <= RESTARTS_AT_ONCE {
            self.start_worker();
        } else {
            self.restart_at = Some(now + RESTART_DELAY);
        }
    }

    fn start_worker(&mut self) {
        self.restart_at = None;
        if self.phase == Phase::Running && self.serving().is_none() {
            self.log(LogLevel::Notice, "start worker processes");
            self.actions.push_back(Action::StartWorker);
        }
    }

    fn reconfigure(&mut self) {
        if self.phase != Phase::Running {
            return;
        }
        // As in nginx: while a new binary runs the old one keeps its configuration, and HUP starts its workers again.
        if self.new_binary.is_none() {
            self.log(LogLevel::Notice, "reconfiguring");
            self.actions.push_back(Action::Reconfigure);
        }
        self.not_accepting = false;
        self.held = self.held.filter(|held| *held == Signal::Quit);
        self.start_worker();
    }

    /// Whether QUIT or WINCH waits until the new binary serves; QUIT outweighs WINCH.
    fn holds(&mut self, order: Signal) -> bool {
        let is_held = self.awaited_until.is_some() && self.phase == Phase::Running;
        if is_held && self.held != Some(Signal::Quit) {
            self.held = Some(order);
            self.log(LogLevel::Notice, "waiting for the new binary to serve");
        }
        is_held
    }

    fn stop_accepting(&mut self) {
        self.not_accepting = true;
        self.restart_at = None;
        self.quit_workers();
    }

    fn quit(&mut self) {
        if self.phase != Phase::Running {
            return;
        }
        self.phase = Phase::Quitting;
        self.quit_workers();
        self.actions.push_back(Action::CloseListeners);
        self.exit_if_alone();
    }

    fn terminate(&mut self, now: Duration) {
        if matches!(self.phase, Phase::Terminating { .. }) {
            return;
        }
        self.phase = Phase::Terminating {
            kill_at: Some(now + TERMINATION_TIMEOUT),
        };
        self.restart_at = None;
        self.held = None;
        for worker in &mut self.workers {
            worker.exiting = true;
            let terminate = Action::Signal(worker.pid, Signal::Terminate);
            self.actions.push_back(terminate);
        }
        self.exit_if_alone();
    }

    fn quit_workers(&mut self) {
        self.restart_at = None;
        for worker in &mut self.workers {
            if !worker.exiting {
                worker.exiting = true;
                self.actions.push_back(Action::Quit(worker.pid));
            }
        }
    }

    fn exit_if_alone(&mut self) {
        if self.workers.is_empty() {
            self.actions.push_back(Action::Exit);
        }
    }

    fn log_signal(&mut self, received: Received, ignored: bool) {
        let signal = received.signal;
        let from = received
            .sender
            .map_or(String::new(), |pid| format!(" from {pid}"));
        let consequence = match signal {
            _ if ignored => ", ignoring",
            Signal::Terminate | Signal::Interrupt => ", exiting",
            Signal::Quit => ", shutting down",
            Signal::Hangup => ", reconfiguring",
            Signal::User1 => ", reopening logs",
            Signal::User2 => ", changing binary",
            Signal::WindowChange if self.daemonized => ", stop accepting connections",
            Signal::WindowChange | Signal::Child | Signal::Kill => "",
        };
        let (number, name) = (signal.number(), signal.name());
        let line = format!("signal {number} ({name}) received{from}{consequence}");
        self.log(LogLevel::Notice, &line);
    }

    fn log_ending(&mut self, what: &str, pid: Pid, ending: Ending) {
        match ending {
            Ending::Code(code) => self.log(
                LogLevel::Notice,
                &format!("{what} {pid} exited with code {code}"),
            ),
            Ending::Signal {
                number,
                core_dumped,
            } => {
                let core = if core_dumped { " (core dumped)" } else { "" };
                let line = format!("{what} {pid} exited on signal {number}{core}");
                self.log(LogLevel::Alert, &line);
            }
        }
    }

    fn log(&mut self, level: LogLevel, message: &str) {
        self.actions
            .push_back(Action::Log(level, message.to_owned()));
    }
}

/// The exit code of a process that would fail again in the same way (nginx's): it is not restarted.
pub const FATAL_CODE: i32 = 2;

/// How long worker processes may take to obey TERM before they are killed: the sum of nginx's waits of 50 ms to
/// 0.8 s, each twice the one before.
const TERMINATION_TIMEOUT: Duration = Duration::from_millis(1550);

/// Consecutive worker processes that may end before they are ready and are replaced at once.
const RESTARTS_AT_ONCE: u32 = 3;

/// The delay of the next one: an overloaded machine does not also get a thousand starts a second.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// How long a new binary may take to serve, until the old one obeys QUIT all the same. It has read a configuration by then, or never
/// will.
const BINARY_TIMEOUT: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests;
