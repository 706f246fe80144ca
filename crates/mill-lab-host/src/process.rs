//! A process that the lab started: leader of its own process group, so that Ctrl-C does not reach it; in the journal,
//! its output in files, ended with all its children when it is dropped.

use crate::host::{Host, Line};
use crate::interrupt::Interrupt;
use crate::journal::{self, Entry, Journal};
use crate::process_stat::ProcessStat;
use mill_lab::record::CommandLine;
use mill_sys::process::Pid;
use mill_sys::{clock, descriptor};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

/// A child process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pid: Pid,
    /// Its start time, of `ProcessStat`.
    start: u64,
    /// It has been waited for: its process id may be reused by now.
    is_reaped: bool,
    ended: OwnedFd,
    command: CommandLine,
}

/// Where its output goes.
#[derive(Clone, Copy, Debug)]
pub struct Streams<'a> {
    pub out: &'a Path,
    pub err: &'a Path,
}

impl Process {
    /// Starts `line` on `host`. `role` is what reports call it.
    pub fn start(
        host: &Host,
        line: &Line,
        role: &str,
        streams: Streams<'_>,
        journal: &mut Journal,
    ) -> io::Result<Self> {
        let mut child = host
            .command(line)
            .stdin(Stdio::null())
            .stdout(File::create(streams.out)?)
            .stderr(appending(streams.err)?)
            .spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::new);
        let pid = pid.expect("a child has a positive number");
        let start = ProcessStat::of(child.id()).map_or(0, |stat| stat.start);
        let noted = journal.note(&Entry::Started {
            process: child.id(),
            process_start: start,
            what: String::from(role),
        });
        match noted.and_then(|()| pid.descriptor()) {
            Ok(ended) => Ok(Self {
                child,
                pid,
                start,
                is_reaped: false,
                ended,
                command: CommandLine {
                    role: String::from(role),
                    line: host.text(line),
                },
            }),
            Err(error) => {
                let _ = pid.kill_group(SIGKILL);
                let _ = child.wait();
                Err(error)
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn command(&self) -> &CommandLine {
        &self.command
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().ok().flatten();
        self.is_reaped |= status.is_some();
        status
    }

    /// Waits for its end, at most `patience` and not after an interrupt.
    pub fn wait(&mut self, patience: Duration, interrupt: &Interrupt) -> Option<ExitStatus> {
        let deadline = clock::monotonic() + patience;
        loop {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            let left = deadline.checked_sub(clock::monotonic())?;
            if interrupt.is_asked() {
                return None;
            }
            let _ = descriptor::wait_readable(&[self.ended.as_fd()], Some(left.min(LOOK)));
        }
    }

    /// Lets it run until the journal is undone, which ends it.
    pub fn leave_to_journal(self) {
        std::mem::forget(self);
    }

    /// Ends it by SIGTERM, then SIGKILL.
    pub fn end(mut self, patience: Duration) {
        if self.ended().is_some() {
            return;
        }
        let _ = self.pid.kill_group(SIGTERM);
        let _ = self.wait(patience, &Interrupt::default());
    }
}

impl Drop for Process {
    /// Ends the rest of the group. As long as its leader has not been reaped, the id is the group's; afterwards
    /// members are recognised by their session and start time.
    fn drop(&mut self) {
        if self.is_reaped {
            journal::end_group(self.pid(), self.start);
            return;
        }
        let _ = self.pid.kill_group(SIGKILL);
        let _ = self.child.wait();
    }
}

/// The longest time until an interrupt is noticed.
const LOOK: Duration = Duration::from_millis(50);

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

fn appending(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}
