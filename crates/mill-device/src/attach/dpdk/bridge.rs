//! The bridge's process.
//!
//! It ends when its standard input does: a pipe that only processes which hold the device can write to, so that it lives
//! as long as one of them, the next binary included (USR2), and ends when the last one does, even if that is killed.

use super::output::Output;
use mill_sys::descriptor::wait_readable;
use mill_sys::process::Pid;
use mill_sys::program::on_its_own;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running bridge.
#[derive(Debug)]
pub(in crate::attach) struct Bridge {
    child: Child,
    /// Readable once it has ended.
    ended: OwnedFd,
    /// The end of the pipe that keeps it alive; `None` once this process has let it go.
    lifeline: Option<PipeWriter>,
    /// The other one: hung up once no process has the first.
    input: PipeReader,
}

impl Bridge {
    pub(super) fn start(arguments: &[String], output: &Output) -> Result<Self, String> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => format!(
                "\"{PROGRAM}\" is not installed, DPDK's program that passes frames between the port and the stack: \
                 Debian has it in the package dpdk-dev"
            ),
            _ => format!("\"{PROGRAM}\" can't be started: {error}"),
        };
        let (input, lifeline) = io::pipe().map_err(failed)?;
        let theirs = || -> io::Result<[Stdio; 3]> {
            let input = Stdio::from(input.try_clone()?);
            Ok([input, output.writer()?.into(), output.writer()?.into()])
        };
        let [stdin, stdout, stderr] = theirs().map_err(failed)?;
        let mut command = Command::new(PROGRAM);
        command.args(arguments);
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        // Ctrl-C in a terminal is for this process, which then ends the bridge.
        let mut child = on_its_own(&mut command).spawn().map_err(failed)?;
        let ended = descriptor_of(&child).inspect_err(|_| {
            // It ends by itself, as its input does.
            let _ = child.kill();
        });
        Ok(Self {
            ended: ended.map_err(failed)?,
            child,
            lifeline: Some(lifeline),
            input,
        })
    }

    /// Waits until the ports are started; the error is what it said instead.
    pub(super) fn wait_until_ready(&self, output: &Output) -> Result<(), String> {
        for _ in 0..START_TIME.as_millis() / LOOK.as_millis() {
            let has_ended = wait_readable(&[self.ended.as_fd()], Some(LOOK));
            let has_ended = has_ended.is_ok_and(|ready| ready == [true]);
            if output.is_refusing() {
                return Err(format!("the port can't be started: {}", output.summary()));
            }
            if output.is_ready() {
                return Ok(());
            }
            if has_ended {
                return Err(format!("the bridge has ended: {}", output.summary()));
            }
        }
        let (seconds, summary) = (START_TIME.as_secs(), output.summary());
        Err(format!(
            "the bridge is not ready after {seconds} s: {summary}"
        ))
    }

    /// What keeps it alive, for another process.
    pub(in crate::attach) fn lifeline(&self) -> BorrowedFd<'_> {
        match &self.lifeline {
            Some(lifeline) => lifeline.as_fd(),
            None => self.input.as_fd(),
        }
    }
}

/// Waits for its end, if no other process keeps it: a port belongs to one process at a time, which may be started next.
impl Drop for Bridge {
    fn drop(&mut self) {
        self.lifeline = None;
        let is_ready = |descriptor, time| {
            wait_readable(&[descriptor], Some(time)).is_ok_and(|is| is == [true])
        };
        if !is_ready(self.input.as_fd(), Duration::ZERO) {
            return;
        }
        if !is_ready(self.ended.as_fd(), END_TIME) {
            let _ = self.child.kill();
        }
        // In another process than the one that has started it there is nothing to wait for.
        let _ = self.child.wait();
    }
}

fn descriptor_of(child: &Child) -> io::Result<OwnedFd> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::new);
    pid.ok_or(io::ErrorKind::InvalidData)?.descriptor()
}

/// In the folders of $PATH.
pub(in crate::attach) const PROGRAM: &str = "dpdk-testpmd";

/// Until the ports are started: some cards take seconds until their firmware is ready.
const START_TIME: Duration = Duration::from_secs(60);

/// Between two looks at what it writes.
const LOOK: Duration = Duration::from_millis(20);

/// To stop its ports; it is killed then.
const END_TIME: Duration = Duration::from_secs(5);
