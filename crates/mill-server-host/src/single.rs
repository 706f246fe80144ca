//! `master_process off`: one process does the work of both, and keeps its privileges.

use crate::cycle::{self, Cycle};
use crate::launch::Launch;
use crate::process_log::{describe, redirect_stderr};
use crate::status::answer::{self, Identity};
use crate::status::board::BoardFile;
use crate::status::control_socket::{ControlSocket, Question};
use crate::status::parcel;
use crate::worker_pool::WorkerPool;
use crate::worker_process::Event;
use mill_config::config::LogLevel;
use mill_config::load::load;
use mill_device::attach::Hold;
use mill_device::attachment::Attachment;

use mill_server::worker::Report;
use mill_sys::signal::{Received, Signal, SignalDescriptor};
use mill_sys::{clock, descriptor};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// Serves until a signal ends it.
pub(crate) fn run(
    launch: &Launch,
    cycle: Cycle,
    mut stack: Option<Attachment>,
    (signals, mut control_socket): (SignalDescriptor, Option<ControlSocket>),
    identity: &Identity,
    started: impl FnOnce(),
) -> ExitCode {
    let hold = stack.as_mut().map(Attachment::take_hold);
    if let Err(what) = stack.as_mut().map_or(Ok(()), crate::stack::open) {
        cycle.log.write(LogLevel::Emerg, &what);
        return ExitCode::FAILURE;
    }
    let (sender, events) = mpsc::channel();
    let _socket = control_socket.as_mut().and_then(ControlSocket::take_file);
    // Its descriptor stays open: a client reads the figures by it if this process does not answer.
    let board = BoardFile::create().and_then(|file| Ok((file.map()?, file)));
    let worker_pool = board.and_then(|(board, file)| {
        let worker_pool = WorkerPool::new(sender.clone(), &launch.options.hostname, stack, board)?;
        Ok((worker_pool, file))
    });
    let listener = std::thread::Builder::new()
        .name(String::from("signals"))
        .spawn(move || listen(&signals, control_socket, &sender));
    let (worker_pool, board) = match (worker_pool, listener) {
        (Ok(worker_pool), Ok(_)) => worker_pool,
        (Err(error), _) | (_, Err(error)) => {
            let what = format!("starting threads failed {}", describe(&error));
            cycle.log.write(LogLevel::Emerg, &what);
            return ExitCode::FAILURE;
        }
    };
    let mut process = Process {
        _hold: hold,
        launch,
        cycle,
        worker_pool,
        started: Some(started),
        identity,
        board,
        end_at: None,
        ending: false,
    };
    if !process.configure() {
        return ExitCode::FAILURE;
    }
    let code = loop {
        let event = match process.end_at {
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => events.recv_timeout(at.saturating_sub(clock::monotonic())),
        };
        let Ok(event) = event else {
            break ExitCode::SUCCESS;
        };
        if let Err(code) = process.on_event(event) {
            break code;
        }
        if process.ending && process.worker_pool.is_empty() {
            break ExitCode::SUCCESS;
        }
    };
    process.end();
    code
}

fn listen(
    signals: &SignalDescriptor,
    mut control_socket: Option<ControlSocket>,
    events: &Sender<Event>,
) {
    loop {
        let control_ready = control_socket.iter().flat_map(ControlSocket::descriptors);
        let sources: Vec<_> = [signals.as_fd()].into_iter().chain(control_ready).collect();
        let Ok(ready) = descriptor::wait_readable(&sources, None) else {
            return;
        };
        while let Ok(Some(received)) = signals.read() {
            if events.send(Event::Signal(received)).is_err() {
                return;
            }
        }
        let control_ready = ready.get(1..).unwrap_or_default();
        let questions = control_socket
            .as_mut()
            .map(|control_socket| control_socket.questions(control_ready));
        for question in questions.into_iter().flatten() {
            if events.send(Event::Question(question)).is_err() {
                return;
            }
        }
    }
}

struct Process<'a, Started> {
    /// What keeps the stack's device until the process ends. It goes before what the pool has of that, as in an [`Attachment`].
    _hold: Option<Hold>,
    launch: &'a Launch,
    cycle: Cycle,
    worker_pool: WorkerPool,
    /// Called once, when all threads listen.
    started: Option<Started>,
    identity: &'a Identity,
    /// The memory in which the threads publish their figures.
    board: BoardFile,
    /// When the process exits although requests are in progress.
    end_at: Option<Duration>,
    ending: bool,
}

impl<Started: FnOnce()> Process<'_, Started> {
    /// Has the threads serve the present cycle.
    fn configure(&mut self) -> bool {
        let taken = self
            .cycle
            .configuration()
            .map_err(|error| format!("dup() failed {}", describe(&error)))
            .and_then(|configuration| {
                // The threads share this configuration and keep it as long as they need it.
                let loaded = load(&configuration.bundle, &self.launch.options);
                let config = loaded.map_err(|failure| failure.error.line())?.config;
                self.worker_pool
                    .configure(config, configuration, &self.cycle.log)
            });
        if let Err(what) = &taken {
            self.cycle.log.write(LogLevel::Emerg, what);
        }
        taken.is_ok()
    }

    fn on_event(&mut self, event: Event) -> Result<(), ExitCode> {
        match event {
            Event::Signal(received) => self.on_signal(received),
            Event::Question(question) => self.answer(question),
            Event::Panicked { what, written } => {
                self.cycle.log.write(LogLevel::Alert, &what);
                // The panicking thread may have stopped waiting.
                let _ = written.send(());
            }
            Event::Ring { number } => self.worker_pool.ring(number),
            Event::Warning(level, what) => self.cycle.log.write(level, &what),
            Event::ThreadEnded { number } => {
                let ended = self.worker_pool.on_ended(number, &self.cycle.log);
                ended.map_err(|_| ExitCode::FAILURE)?;
            }
            Event::Thread(Report::Failed { index, what }) => {
                let what = format!("worker thread {index}: {what}");
                self.cycle.log.write(LogLevel::Emerg, &what);
                if self.started.is_some() {
                    return Err(ExitCode::FAILURE);
                }
            }
            Event::Thread(Report::Adopted { index, generation }) => {
                self.worker_pool.on_adopted(index, generation);
                if self.worker_pool.ready() == Some(generation) {
                    let what = format!("configuration {generation} is in force");
                    self.cycle.log.write(LogLevel::Notice, &what);
                    if let Some(started) = self.started.take() {
                        started();
                    }
                }
            }
            // There is no master that could send an order.
            Event::Thread(Report::Ended { .. }) | Event::Order(_) | Event::MasterGone => {}
        }
        Ok(())
    }

    fn on_signal(&mut self, received: Received) {
        let consequence = match received.signal {
            Signal::Terminate | Signal::Interrupt => ", exiting",
            Signal::Quit => ", shutting down",
            Signal::Hangup => ", reconfiguring",
            Signal::User1 => ", reopening logs",
            Signal::User2 => ", ignoring: there is no master process",
            Signal::WindowChange | Signal::Child | Signal::Kill => "",
        };
        let (number, name) = (received.signal.number(), received.signal.name());
        let from = received
            .sender
            .map_or(String::new(), |pid| format!(" from {pid}"));
        let what = format!("signal {number} ({name}) received{from}{consequence}");
        self.cycle.log.write(LogLevel::Notice, &what);
        match received.signal {
            Signal::Terminate | Signal::Interrupt => {
                self.worker_pool.stop();
                self.end_by(Some(STOP_TIMEOUT));
            }
            Signal::Quit if !self.ending => {
                let limit = self.worker_pool.drain();
                drop(std::mem::take(&mut self.cycle.listening));
                self.end_by(limit.map(|limit| limit + STOP_TIMEOUT));
            }
            Signal::Hangup if !self.ending => self.reconfigure(),
            Signal::User1 => {
                if let Ok(logs) = self.cycle.reopen_logs() {
                    redirect_stderr(&self.cycle.log);
                    self.worker_pool.reopen_logs(logs, &self.cycle.log);
                }
            }
            _ => {}
        }
    }

    fn answer(&self, question: Question) {
        let boards = [(std::process::id(), self.board.read())];
        let status = answer::status(self.identity, self.launch, &self.cycle, &boards);
        // The client may have disconnected.
        let _ = question
            .client
            .send(parcel::STATUS, &answer::encode(&status), &[]);
        self.worker_pool.inspect(question);
    }

    fn reconfigure(&mut self) {
        // After an error, which is logged, the old cycle goes on.
        if let Ok(next) = self.cycle.next(self.launch) {
            redirect_stderr(&next.log);
            self.cycle = next;
            self.configure();
        }
    }

    fn end_by(&mut self, patience: Option<Duration>) {
        self.ending = true;
        self.end_at = patience.map(|patience| clock::monotonic() + patience);
    }

    fn end(mut self) {
        self.worker_pool.close_logs();
        if let Some(pid_file) = &self.cycle.pid_file {
            cycle::remove_pid_file(pid_file, false, &self.cycle.log);
        }
        self.cycle.listening.remove_files(None, &self.cycle.log);
        self.cycle.log.write(LogLevel::Notice, "exit");
    }
}

/// How long threads that were asked to end may take to report their end.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);
