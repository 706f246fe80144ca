//! The thread that owns the files.

/// The kernel's log.
mod records;

use super::LogSender;
use super::error::{LINE_BYTES_MAX, STDERR, append, emit_start, end_line, place_of};
use super::queue::{PlaceRef, Shared, Waiting};
use super::sender::Sink;
use super::store::{Complaint, Fault, Store};
use super::{Errno, error};
use mill_config::Text;
use mill_config::config::{ErrorLog, LogLevel};
use mill_http::date::emit_time_error_log;
use mill_runtime::time::{Instant, UnixTime};
use records::{KERNEL_LOG, Records};
use std::ffi::OsStr;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// The logs of a configuration, opened by a process with the rights to.
#[derive(Debug, Default)]
pub struct LogFiles {
    /// By absolute path, each path once, opened to append. The standard error stream is implied.
    pub files: Vec<(Text, File)>,
    /// Where the writer's own errors are logged: `error_log` of the main context.
    pub error_logs: Vec<ErrorLog>,
}

/// Facts about the process that the writer thread needs.
#[derive(Clone, Copy, Debug)]
pub struct WriterEnvironment {
    pub pid: u32,
    /// Seconds east of UTC at a Unix time.
    pub utc_offset: fn(i64) -> i32,
    /// The clocks of the engines whose workers log here.
    pub clock: fn() -> (Instant, UnixTime),
}

/// The handle of the writer thread. Dropped without [`LogWriter::stop`], it stops the thread too.
#[derive(Debug)]
pub struct LogWriter {
    shared: Arc<Shared<Command>>,
    thread: Option<JoinHandle<()>>,
}

/// Commands to the writer. Lines that were handed over before a command are handled before it.
#[derive(Debug)]
pub(super) enum Command {
    Replace(LogFiles),
    Stop,
}

impl LogWriter {
    /// Starts the thread.
    pub fn start(files: LogFiles, environment: WriterEnvironment) -> io::Result<Self> {
        let shared = Arc::new(Shared::new());
        let mut writer = Writer {
            shared: Arc::clone(&shared),
            error_logs: files.error_logs,
            store: Store::new(outputs(files.files), Output::open),
            environment,
            memory: Waiting::default(),
        };
        let thread = thread::Builder::new()
            .name(String::from("log writer"))
            .spawn(move || writer.run())?;
        shared.set_writer(thread.thread().clone());
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// For the worker threads.
    pub fn sender(&self) -> LogSender {
        LogSender(Sink::Writer(Arc::clone(&self.shared)))
    }

    /// Switches to newly opened files, on a reload (before the workers get the new configuration) or when logs are
    /// reopened. Every line is whole in the old file or in the new one.
    pub fn replace(&self, files: LogFiles) {
        self.shared.command(Command::Replace(files));
    }

    /// Writes everything that was handed over and all buffers, and ends the thread. The workers must have ended.
    pub fn stop(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.shared.command(Command::Stop);
            // A writer that panicked has nothing left to flush.
            let _ = thread.join();
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The thread's state.
#[derive(Debug)]
struct Writer {
    shared: Arc<Shared<Command>>,
    store: Store<Output>,
    error_logs: Vec<ErrorLog>,
    environment: WriterEnvironment,
    memory: Waiting,
}

impl Writer {
    fn run(&mut self) {
        self.shared.set_writer(thread::current());
        while self.turn() {
            let (now, _) = (self.environment.clock)();
            let deadline = self.store.deadline();
            // Published before sleeping: a worker that hands lines over from here on either sees this deadline or wakes
            // the thread, and a wake-up before the sleep ends the sleep at once.
            self.shared.set_looks_at(deadline);
            if deadline == Instant::FAR {
                thread::park();
            } else if deadline > now {
                thread::park_timeout(deadline.since(now));
            }
        }
    }

    /// Writes all waiting lines; false after the command to stop.
    fn turn(&mut self) -> bool {
        self.shared.set_looks_at(Instant::FAR);
        let commands = self.shared.take_commands();
        let (now, _) = (self.environment.clock)();
        let store = &mut self.store;
        self.shared
            .drain(&mut self.memory, |waiting| store.take_in(waiting, now));
        let mut goes_on = true;
        for command in commands {
            match command {
                Command::Replace(files) => {
                    self.store.replace(outputs(files.files), now);
                    self.error_logs = files.error_logs;
                }
                Command::Stop => {
                    self.store.flush(now);
                    self.store.finish();
                    goes_on = false;
                }
            }
        }
        self.store.expire(now);
        self.report();
        goes_on
    }

    /// Counts lost lines, and logs the errors in the error logs.
    fn report(&mut self) {
        let outcome = self.store.take_outcome();
        self.shared.add_lost_by_writer(outcome.lost);
        let (now, wall_clock) = (self.environment.clock)();
        for complaint in &outcome.complaints {
            let line = self.line(complaint, wall_clock.seconds);
            for log in &self.error_logs {
                let path = match place_of(log) {
                    PlaceRef::Opened { path, .. } => path.as_bytes(),
                    _ => STDERR.as_bytes(),
                };
                if path != complaint.path && log.level >= complaint.fault.level() {
                    self.store.write_quietly(path, &line, now);
                }
            }
        }
        self.shared
            .add_lost_by_writer(self.store.take_outcome().lost);
    }

    fn line(&self, complaint: &Complaint, second: i64) -> Vec<u8> {
        let mut line = Vec::with_capacity(LINE_BYTES_MAX);
        let pid = self.environment.pid;
        emit_time_error_log(
            second,
            (self.environment.utc_offset)(second) / 60,
            &mut line,
        );
        emit_start(complaint.fault.level(), pid, pid, None, &mut line);
        append(&mut line, format_args!("{complaint}"));
        end_line(&mut line);
        line
    }
}

impl Fault {
    /// The level that nginx uses.
    const fn level(&self) -> LogLevel {
        match self {
            Self::Open(_) => LogLevel::Crit,
            Self::NoRoot(_) => LogLevel::Error,
            Self::Write(_) | Self::Incomplete { .. } => LogLevel::Alert,
            Self::Table { level, .. } => *level,
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = error::Text(&self.path);
        match &self.fault {
            Fault::Table { text, .. } => write!(f, "rows for \"{path}\": {text}"),
            Fault::Open(code) => write!(f, "open() \"{path}\" failed ({})", Errno(*code)),
            Fault::Write(code) => write!(f, "write() to \"{path}\" failed ({})", Errno(*code)),
            Fault::Incomplete { written, wanted } => {
                write!(
                    f,
                    "write() to \"{path}\" was incomplete: {written} of {wanted}"
                )
            }
            Fault::NoRoot(code) => {
                write!(
                    f,
                    "testing the root of \"{path}\" failed ({})",
                    Errno(*code)
                )
            }
        }
    }
}

/// What the writer writes to.
#[derive(Debug)]
enum Output {
    File(File),
    KernelLog(Records<File>),
    Stderr(io::Stderr),
}

impl Output {
    fn open(path: &[u8]) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options
            .append(true)
            .create(true)
            .open(OsStr::from_bytes(path))?;
        Ok(Self::of(path, file))
    }

    fn of(path: &[u8], file: File) -> Self {
        match path {
            KERNEL_LOG => Self::KernelLog(Records(file)),
            _ => Self::File(file),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            // All of it is given at once, and what is written in part would be held for an error.
            Self::KernelLog(records) => records.write_all(bytes).map(|()| bytes.len()),
            Self::Stderr(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        // There is no buffer below this.
        Ok(())
    }
}

fn outputs(files: Vec<(Text, File)>) -> Vec<(Text, Output)> {
    let files = files.into_iter().map(|(path, file)| {
        let output = Output::of(path.as_bytes(), file);
        (path, output)
    });
    files
        .chain([(Text::from(STDERR), Output::Stderr(io::stderr()))])
        .collect()
}

#[cfg(test)]
mod tests;
