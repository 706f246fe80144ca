//! The files, their buffers, and what happens when a write fails.
//!
//! It has no clock and no thread: time is an argument, so that tests can set it.

use super::evaluated_files::EvaluatedFiles;
use super::queue::{LogTarget, Waiting};
use super::table::Tables;
use mill_config::Text;
use mill_config::config::{LogBuffer, LogLevel};
use mill_runtime::time::{Duration, Instant};
use std::io::{self, ErrorKind, Write};

/// All logs, by their paths. `W` is a file, or a simulated one in tests.
#[derive(Debug)]
pub(super) struct Store<W> {
    files: Vec<(Text, LogFile<W>)>,
    /// Files of the previous configuration: requests that began under it still log there.
    retired: Vec<(Text, LogFile<W>)>,
    evaluated: EvaluatedFiles<W>,
    open: fn(&[u8]) -> io::Result<W>,
    tables: Tables,
    outcome: Outcome,
}

/// One open file.
#[derive(Debug)]
pub(super) struct LogFile<W> {
    output: W,
    /// Buffered lines that wait.
    held: Vec<u8>,
    held_lines: u64,
    flush_at: Instant,
    /// The rest of a line whose beginning is already in the file: the disk became full in the middle of it.
    owed: Vec<u8>,
    /// No write is attempted before this: the disk was full.
    full_until: Instant,
    /// When an error of this file was last reported.
    complained_at: Option<Instant>,
}

/// What has happened since it was last taken.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Lines that could not be written.
    pub(super) lost: u64,
    /// For the error log.
    pub(super) complaints: Vec<Complaint>,
}

/// A failed call, to be reported as nginx does.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    pub(super) path: Vec<u8>,
    pub(super) fault: Fault,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// `open()` and its error number.
    Open(i32),
    /// `write()` and its error number.
    Write(i32),
    /// Fewer bytes were written than should have been.
    Incomplete { written: usize, wanted: usize },
    /// The `root` of the request does not exist, so no log is created below it.
    NoRoot(i32),
    /// What happens to rows of a table.
    Table { level: LogLevel, text: String },
}

impl<W: Write> Store<W> {
    /// `open` opens a log to append to it.
    pub(super) fn new(files: Vec<(Text, W)>, open: fn(&[u8]) -> io::Result<W>) -> Self {
        Self {
            files: with_state(files),
            retired: Vec::new(),
            evaluated: EvaluatedFiles::default(),
            open,
            tables: Tables::default(),
            outcome: Outcome::default(),
        }
    }

    /// Adds the lines of a worker.
    pub(super) fn take_in(&mut self, waiting: &Waiting, now: Instant) {
        let mut rest = waiting.bytes.as_slice();
        for piece in &waiting.pieces {
            let Some((bytes, after)) = rest.split_at_checked(piece.len) else {
                debug_assert!(false, "the pieces are as long as the bytes");
                return;
            };
            rest = after;
            self.append(&piece.place, bytes, piece.lines, now);
        }
    }

    fn append(&mut self, place: &LogTarget, bytes: &[u8], lines: u64, now: Instant) {
        match place {
            LogTarget::Opened { path, buffer } => {
                let Some(index) = self.find_or_open(path) else {
                    self.outcome.lost += lines;
                    return;
                };
                let mut outcome = Outcome::default();
                let found = self.all_mut().nth(index);
                if let Some((path, file)) = found {
                    file.append(path, bytes, lines, *buffer, now, &mut outcome);
                }
                self.outcome.add(outcome);
            }
            LogTarget::Evaluated { path, root, cache } => {
                let mut outcome = Outcome::default();
                match self.evaluated.file(path, root, *cache, now, self.open) {
                    Ok(file) => file.append(path, bytes, lines, None, now, &mut outcome),
                    Err(fault) => outcome.fail(path, fault, lines),
                }
                self.outcome.add(outcome);
                self.evaluated.after_write(path, now);
            }
            LogTarget::Table(table) => {
                if !self.tables.append(table, bytes, lines, now) {
                    self.outcome.lost += lines;
                }
            }
        }
    }

    /// The index of a file. A path that is not open is opened now, with the privileges of this process.
    fn find_or_open(&mut self, path: &Text) -> Option<usize> {
        let all = self.files.iter().chain(&self.retired);
        let found = all.map(|(known, _)| known).position(|known| known == path);
        if found.is_some() {
            return found;
        }
        match (self.open)(path) {
            Ok(output) => {
                self.retired.push((path.clone(), LogFile::new(output)));
                Some(self.files.len() + self.retired.len() - 1)
            }
            Err(error) => {
                let code = error.raw_os_error().unwrap_or(0);
                self.outcome.fail(path, Fault::Open(code), 0);
                None
            }
        }
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut (Text, LogFile<W>)> {
        self.files.iter_mut().chain(&mut self.retired)
    }

    /// Writes lines that have waited long enough, and closes unused files.
    pub(super) fn expire(&mut self, now: Instant) {
        let mut outcome = Outcome::default();
        for (path, file) in self.all_mut() {
            if file.flush_at <= now {
                file.flush(path, now, &mut outcome);
            }
        }
        self.outcome.add(outcome);
        self.evaluated.expire(now);
        self.tables.expire(now);
    }

    /// When [`Store::expire`] has something to do.
    pub(super) fn deadline(&self) -> Instant {
        let all = self.files.iter().chain(&self.retired);
        let flushes = all.map(|(_, file)| file.flush_at);
        flushes
            .chain([self.evaluated.deadline(), self.tables.deadline()])
            .min()
            .unwrap_or(Instant::FAR)
    }

    /// Writes all buffers, full or not.
    pub(super) fn flush(&mut self, now: Instant) {
        let mut outcome = Outcome::default();
        for (path, file) in self.all_mut() {
            file.full_until = Instant::default();
            file.flush(path, now, &mut outcome);
        }
        self.outcome.add(outcome);
    }

    /// Replaces the open files: lines so far are in the old ones, lines from now on go to the new ones.
    pub(super) fn replace(&mut self, files: Vec<(Text, W)>, now: Instant) {
        self.flush(now);
        let old = std::mem::replace(&mut self.files, with_state(files));
        let is_new = |path: &Text| self.files.iter().any(|(new, _)| new == path);
        self.retired = old.into_iter().filter(|(path, _)| !is_new(path)).collect();
        self.evaluated = EvaluatedFiles::default();
        self.tables.end_idle();
    }

    /// Has rows inserted that still wait, as far as that is possible at once.
    pub(super) fn finish(&mut self) {
        self.tables.finish();
    }

    /// Writes a line at once and reports no error: for reports about other logs.
    pub(super) fn write_quietly(&mut self, path: &[u8], line: &[u8], now: Instant) {
        let file = self.all_mut().find(|(known, _)| **known == *path);
        if let Some((path, file)) = file {
            let mut outcome = Outcome::default();
            file.write(path, line, 1, now, &mut outcome);
            self.outcome.lost += outcome.lost;
        }
    }

    pub(super) fn take_outcome(&mut self) -> Outcome {
        for (path, fault, lost) in self.tables.take_reports() {
            self.outcome.lost += lost;
            if let Some(fault) = fault {
                self.outcome.fail(&path, fault, 0);
            }
        }
        std::mem::take(&mut self.outcome)
    }
}

fn with_state<W: Write>(files: Vec<(Text, W)>) -> Vec<(Text, LogFile<W>)> {
    let with_state = |(path, output)| (path, LogFile::new(output));
    files.into_iter().map(with_state).collect()
}

impl<W: Write> LogFile<W> {
    pub(super) const fn new(output: W) -> Self {
        Self {
            output,
            held: Vec::new(),
            held_lines: 0,
            flush_at: Instant::FAR,
            owed: Vec::new(),
            full_until: Instant::from_nanos(0),
            complained_at: None,
        }
    }

    /// Writes whole lines, or buffers them as `buffer` says.
    pub(super) fn append(
        &mut self,
        path: &[u8],
        bytes: &[u8],
        lines: u64,
        buffer: Option<LogBuffer>,
        now: Instant,
        outcome: &mut Outcome,
    ) {
        let Some(buffer) = buffer else {
            self.flush(path, now, outcome);
            self.write(path, bytes, lines, now, outcome);
            return;
        };
        let size = usize::try_from(buffer.size_bytes).unwrap_or(usize::MAX);
        if self.held.len().saturating_add(bytes.len()) > size {
            self.flush(path, now, outcome);
        }
        if bytes.len() > size {
            self.write(path, bytes, lines, now, outcome);
            return;
        }
        if self.held.is_empty() {
            self.flush_at = buffer.flush.map_or(Instant::FAR, |flush| now + flush);
        }
        self.held.extend_from_slice(bytes);
        self.held_lines += lines;
    }

    fn flush(&mut self, path: &[u8], now: Instant, outcome: &mut Outcome) {
        self.flush_at = Instant::FAR;
        if self.held.is_empty() && self.owed.is_empty() {
            return;
        }
        let mut held = std::mem::take(&mut self.held);
        let lines = std::mem::take(&mut self.held_lines);
        self.write(path, &held, lines, now, outcome);
        held.clear();
        self.held = held;
    }

    /// Writes lines with one call if possible. Lines that do not fit are lost, except the rest of a line that was
    /// begun.
    fn write(
        &mut self,
        path: &[u8],
        bytes: &[u8],
        lines: u64,
        now: Instant,
        outcome: &mut Outcome,
    ) {
        if now < self.full_until {
            outcome.lost += lines;
            return;
        }
        if !self.owed.is_empty() {
            let owed = std::mem::take(&mut self.owed);
            let (written, fault) = write_whole(&mut self.output, &owed);
            if let Some(fault) = fault {
                self.owed = owed.get(written..).unwrap_or_default().to_vec();
                outcome.lost += lines;
                self.complain(path, fault, now, outcome);
                return;
            }
        }
        let (written, fault) = write_whole(&mut self.output, bytes);
        let Some(fault) = fault else {
            return;
        };
        let (done, rest) = bytes.split_at_checked(written).unwrap_or((bytes, &[]));
        let is_torn = !rest.is_empty() && done.last().is_some_and(|&byte| byte != b'\n');
        let whole = if is_torn {
            let end = rest.iter().position(|&byte| byte == b'\n');
            let (owed, whole) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
            self.owed = owed.to_vec();
            whole
        } else {
            rest
        };
        outcome.lost += whole
            .iter()
            .map(|&byte| u64::from(byte == b'\n'))
            .sum::<u64>();
        self.complain(path, fault, now, outcome);
    }

    fn complain(&mut self, path: &[u8], fault: Fault, now: Instant, outcome: &mut Outcome) {
        if fault == Fault::Write(NO_SPACE) {
            self.full_until = now + FULL_DISK_REST;
        }
        if self
            .complained_at
            .is_none_or(|at| now.since(at) >= COMPLAINT_INTERVAL)
        {
            self.complained_at = Some(now);
            outcome.fail(path, fault, 0);
        }
    }
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.lost += other.lost;
        self.complaints.extend(other.complaints);
    }

    fn fail(&mut self, path: &[u8], fault: Fault, lines: u64) {
        self.lost += lines;
        if self.complaints.len() < COMPLAINTS_MAX {
            self.complaints.push(Complaint {
                path: path.to_vec(),
                fault,
            });
        }
    }
}

/// Writes until all is written or a call fails. Returns the number of bytes, and the error of the last call.
fn write_whole(output: &mut impl Write, bytes: &[u8]) -> (usize, Option<Fault>) {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match output.write(rest) {
            Ok(0) => {
                let wanted = bytes.len();
                return (written, Some(Fault::Incomplete { written, wanted }));
            }
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                return (
                    written,
                    Some(Fault::Write(error.raw_os_error().unwrap_or(0))),
                );
            }
        }
    }
    (written, None)
}

/// ENOSPC.
const NO_SPACE: i32 = 28;

/// How long a file on a full disk is not written to, as in nginx.
const FULL_DISK_REST: Duration = Duration::from_secs(1);

/// At most one error of a file is reported in this time, as in nginx.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(60);

/// Errors kept until they are reported: evaluated paths could make thousands.
const COMPLAINTS_MAX: usize = 16;

#[cfg(test)]
mod tests;
