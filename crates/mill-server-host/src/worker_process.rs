//! The worker process: its control thread takes orders from the master and signals from the kernel, and has the worker
//! threads carry them out.
//!
//! Threads: this one; the log writer; one that reads from the master and from the signal descriptor; one that reads the
//! reports of the worker threads; the worker threads.

use crate::channel::Channel;
use crate::master::FATAL_CODE;
use crate::message::{Configuration, Order, Report};
use crate::privileges::{self, Identity};
use crate::process_log::{ProcessLog, describe, redirect_stderr};
use crate::stack;
use crate::status::board::BoardFile;
use crate::status::control_socket::Question;
use crate::worker_pool::WorkerPool;
use mill_config::config::{LogLevel, Main};
use mill_config::load::{self, Options};
use mill_device::attachment::Attachment;
use mill_server::worker::Report as ThreadReport;
use mill_sys::clock;
use mill_sys::descriptor;
use mill_sys::signal::{Received, Signal, SignalDescriptor};
use mill_sys::title::Title;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// What the worker process gets from the master's memory, which it has a copy of.
#[derive(Debug)]
pub struct Inheritance<'a> {
    pub main: &'a Main,
    pub identity: Option<&'a Identity>,
    pub options: &'a Options,
    pub log: ProcessLog,
    pub(crate) stack: Option<&'a Attachment>,
    /// Where the worker threads publish their figures for the master.
    pub(crate) board: &'a BoardFile,
    /// What process titles begin with.
    pub program: &'static str,
    pub title: Option<Title>,
}

/// An event of the control thread.
#[derive(Debug)]
pub(crate) enum Event {
    Order(Order),
    /// The master has ended without an order to quit.
    MasterGone,
    Signal(Received),
    /// A client asks for the status.
    Question(Question),
    Thread(ThreadReport),
    ThreadEnded {
        number: u32,
    },
    /// A worker thread has something for another one, which may sleep.
    Ring {
        number: u32,
    },
    /// Something in a worker thread has failed; the rest goes on.
    Warning(LogLevel, String),
    /// A worker thread has panicked with this message, and waits until it is written.
    Panicked {
        what: String,
        written: Sender<()>,
    },
}

/// Runs the worker process until it exits. To be called right after the fork: it closes the descriptors that the master
/// had open.
pub fn run(channel: Channel, inheritance: Inheritance<'_>) -> ! {
    let code = match start(channel, inheritance) {
        Ok(control) => control.serve(),
        Err(code) => code,
    };
    std::process::exit(code)
}

fn start(channel: Channel, inheritance: Inheritance<'_>) -> Result<Control, i32> {
    let Inheritance {
        main,
        identity,
        options,
        log,
        stack,
        board,
        program,
        title,
    } = inheritance;
    // The master's own descriptors are in copied memory that is never dropped here.
    let log = log
        .duplicate()
        .map_err(|error| fatal(&log, "dup()", &error))?;
    let stack = stack.map(Attachment::duplicate).transpose();
    let mut stack = stack.map_err(|error| fatal(&log, "dup()", &error))?;
    let board = board.map().map_err(|error| fatal(&log, "mmap()", &error))?;
    let mut kept = vec![channel.as_fd()];
    kept.extend(stack.iter().flat_map(Attachment::descriptors));
    kept.extend(log.files().map(AsFd::as_fd));
    descriptor::close_all_but(&kept).map_err(|error| fatal(&log, "close_range()", &error))?;
    let open = || stack.as_mut().map_or(Ok(()), stack::open);
    privileges::become_worker(main, identity, &log, open).map_err(|_| FATAL_CODE)?;
    let signals = SignalDescriptor::open().map_err(|error| fatal(&log, "signalfd()", &error))?;
    let channel = Arc::new(channel);
    let (sender, events) = mpsc::channel();
    let worker_pool = WorkerPool::new(sender.clone(), &options.hostname, stack, board)
        .map_err(|error| fatal(&log, "starting threads", &error))?;
    let intake = Arc::clone(&channel);
    std::thread::Builder::new()
        .name(String::from("orders"))
        .spawn(move || listen(&intake, &signals, &sender))
        .map_err(|error| fatal(&log, "starting threads", &error))?;
    let mut control = Control {
        channel,
        events,
        options: options.clone(),
        log,
        worker_pool,
        generation: 0,
        ending: None,
        program,
        title,
    };
    control.show("worker process");
    Ok(control)
}

fn fatal(log: &ProcessLog, what: &str, error: &io::Error) -> i32 {
    let line = format!("{what} failed {}", describe(error));
    log.write(LogLevel::Alert, &line);
    FATAL_CODE
}

/// Turns messages of the master and signals into events, until the process exits.
fn listen(channel: &Channel, signals: &SignalDescriptor, events: &Sender<Event>) {
    let mut master_is_there = true;
    loop {
        let sources = [signals.as_fd(), channel.as_fd()];
        let count = if master_is_there { 2 } else { 1 };
        let sources = sources.get(..count).unwrap_or_default();
        let Ok(ready) = descriptor::wait_readable(sources, None) else {
            return;
        };
        while let Ok(Some(received)) = signals.read() {
            if events.send(Event::Signal(received)).is_err() {
                return;
            }
        }
        if ready.get(1) == Some(&true) {
            let event = match Order::receive(channel) {
                Ok(Some(order)) => Event::Order(order),
                Ok(None) | Err(_) => Event::MasterGone,
            };
            master_is_there = !matches!(event, Event::MasterGone);
            if events.send(event).is_err() {
                return;
            }
        }
    }
}

/// The control thread.
struct Control {
    channel: Arc<Channel>,
    events: Receiver<Event>,
    options: Options,
    log: ProcessLog,
    worker_pool: WorkerPool,
    /// The configuration in force; 0 before the first.
    generation: u64,
    ending: Option<Ending>,
    program: &'static str,
    title: Option<Title>,
}

/// The process is about to exit.
struct Ending {
    /// When it exits with requests in progress; `None` waits for them.
    at: Option<Duration>,
}

impl Control {
    /// Handles events until the process is to exit; returns the exit code.
    fn serve(mut self) -> i32 {
        loop {
            let event = match self.remaining() {
                None => self
                    .events
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
                Some(time) => self.events.recv_timeout(time),
            };
            match event {
                Ok(event) => {
                    if let Err(code) = self.on_event(event) {
                        return code;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.log
                        .write(LogLevel::Warn, "ending with requests under way");
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.ending.is_some() && self.worker_pool.is_empty() {
                break;
            }
        }
        self.log.write(LogLevel::Notice, "exiting");
        self.worker_pool.close_logs();
        self.log.write(LogLevel::Notice, "exit");
        0
    }

    /// Sets the process title that `ps` shows.
    fn show(&mut self, what: &str) {
        if let Some(title) = &mut self.title {
            title.set(&format!("{}: {what}", self.program));
        }
    }

    fn remaining(&self) -> Option<Duration> {
        let at = self.ending.as_ref()?.at?;
        Some(at.saturating_sub(clock::monotonic()))
    }

    fn on_event(&mut self, event: Event) -> Result<(), i32> {
        match event {
            Event::Order(Order::Configure(configuration)) => self.configure(configuration)?,
            Event::Order(Order::ReopenLogs(files)) => {
                self.log.write(LogLevel::Notice, "reopening logs");
                self.log = self.worker_pool.reopen_logs(files, &self.log);
                redirect_stderr(&self.log);
            }
            Event::Order(Order::Quit) => self.drain(),
            Event::Order(Order::Answer(question)) => {
                self.report(&Report::QuestionTaken);
                self.worker_pool.inspect(question);
            }
            Event::MasterGone if self.ending.is_none() => {
                let what = "the master process is gone: finishing requests, then exiting";
                self.log.write(LogLevel::Alert, what);
                self.drain();
            }
            // Clients ask the master.
            Event::MasterGone | Event::Question(_) => {}
            Event::Signal(received) => self.on_signal(received),
            Event::Thread(report) => self.on_report(report)?,
            Event::Panicked { what, written } => {
                self.log.write(LogLevel::Alert, &what);
                // The panicking thread may have stopped waiting.
                let _ = written.send(());
            }
            Event::Ring { number } => self.worker_pool.ring(number),
            Event::Warning(level, what) => self.log.write(level, &what),
            Event::ThreadEnded { number } => self.worker_pool.on_ended(number, &self.log)?,
        }
        Ok(())
    }

    fn on_signal(&mut self, received: Received) {
        let consequence = match received.signal {
            Signal::Terminate | Signal::Interrupt => ", exiting",
            Signal::Quit => ", shutting down",
            Signal::Hangup | Signal::User1 | Signal::User2 | Signal::WindowChange => ", ignoring",
            Signal::Child | Signal::Kill => "",
        };
        let (number, name) = (received.signal.number(), received.signal.name());
        let from = received
            .sender
            .map_or(String::new(), |pid| format!(" from {pid}"));
        let what = format!("signal {number} ({name}) received{from}{consequence}");
        self.log.write(LogLevel::Notice, &what);
        match received.signal {
            Signal::Terminate | Signal::Interrupt => self.stop(),
            Signal::Quit => self.drain(),
            // Other signals are the master's to decide: WINCH may only be a change of a window's size.
            _ => {}
        }
    }

    /// Exits when the requests in progress are answered, at the latest after `worker_shutdown_timeout`.
    fn drain(&mut self) {
        if self.ending.is_some() {
            return;
        }
        self.log.write(LogLevel::Notice, "gracefully shutting down");
        self.show("worker process is shutting down");
        let timeout = self.worker_pool.drain();
        // The threads keep this limit themselves; this catches one that does not.
        let at = timeout.map(|timeout| clock::monotonic() + timeout + STOP_TIMEOUT);
        self.ending = Some(Ending { at });
    }

    fn stop(&mut self) {
        self.worker_pool.stop();
        let at = clock::monotonic() + STOP_TIMEOUT;
        self.ending = Some(Ending { at: Some(at) });
    }

    /// Takes a configuration; the first must be good.
    fn configure(&mut self, configuration: Configuration) -> Result<(), i32> {
        if self.ending.is_some() {
            return Ok(());
        }
        let generation = configuration.generation;
        let taken = match load::load(&configuration.bundle, &self.options) {
            Ok(loaded) => self
                .worker_pool
                .configure(loaded.config, configuration, &self.log),
            Err(failure) => Err(failure.error.line()),
        };
        match taken {
            Ok(log) => {
                self.log = log;
                redirect_stderr(&self.log);
                self.report_if_ready();
                Ok(())
            }
            Err(why) => self.refuse(generation, why),
        }
    }

    fn refuse(&mut self, generation: u64, why: String) -> Result<(), i32> {
        self.log
            .write(LogLevel::Alert, &format!("configuration refused: {why}"));
        self.report(&Report::Refused { generation, why });
        if self.generation == 0 {
            Err(FATAL_CODE)
        } else {
            Ok(())
        }
    }

    fn on_report(&mut self, report: ThreadReport) -> Result<(), i32> {
        match report {
            ThreadReport::Adopted { index, generation } => {
                self.worker_pool.on_adopted(index, generation);
                self.report_if_ready();
            }
            ThreadReport::Failed { index, what } => {
                let what = format!("worker thread {index}: {what}");
                self.log.write(LogLevel::Emerg, &what);
                if self.generation == 0 {
                    return Err(FATAL_CODE);
                }
            }
            // The thread sends this before it returns; `ThreadEnded` follows.
            ThreadReport::Ended { .. } => {}
        }
        Ok(())
    }

    fn report_if_ready(&mut self) {
        if let Some(generation) = self.worker_pool.ready()
            && generation > self.generation
        {
            self.generation = generation;
            self.report(&Report::Ready { generation });
        }
    }

    fn report(&self, report: &Report) {
        // If the master has ended, the thread that reads from it reports that.
        let _ = report.send(&self.channel);
    }
}

/// How long threads that were asked to end may take to report their end.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);
