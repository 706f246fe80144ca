//! A process that this one started: leader of its own process group, known to the caretaker, and
//! ended with everything it started when it is dropped.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use mill_sys::process::Pid;

use super::caretaker::{Caretaker, kill_group};
use super::failure::{Failure, Result};
use super::patience::wait_for;

#[derive(Debug)]
pub(super) struct Child<'a> {
    process: std::process::Child,
    caretaker: &'a Caretaker,
}

/// The signal that asks for an end, by its number on every architecture of Linux. SIGINT would not
/// do: children of a job in the background ignore it.
pub(super) const SIGTERM: i32 = 15;

impl<'a> Child<'a> {
    /// Starts the command with both its output streams going to the file `output`.
    pub(super) fn start(
        caretaker: &'a Caretaker,
        command: &mut Command,
        output: &Path,
    ) -> Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let failed = |what: &str| Failure::during(format!("cannot {what} {program}"));
        let file = File::create(output).map_err(failed("make a file for the output of"))?;
        let copy = file.try_clone().map_err(failed("share the output of"))?;
        let process = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(copy)
            .process_group(0)
            .spawn()
            .map_err(failed("start"))?;
        let child = Self { process, caretaker };
        caretaker.adopt(child.pid())?;
        Ok(child)
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().ok().flatten()
    }

    pub(super) fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        wait_for(patience, || self.ended())
    }

    /// Sends the signal and waits for the end.
    pub(super) fn end(&mut self, signal: i32, patience: Duration) -> Option<ExitStatus> {
        if let Some(status) = self.ended() {
            return Some(status);
        }
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::new)?;
        // A failure means that it has ended meanwhile, which the wait tells.
        let _ended_already = pid.kill(signal);
        self.wait(patience)
    }
}

/// How long a server gets for an orderly end.
const END_TIMEOUT: Duration = Duration::from_secs(3);

impl Drop for Child<'_> {
    fn drop(&mut self) {
        let _killed_below = self.end(SIGTERM, END_TIMEOUT);
        // Also when the leader has ended: it may have left others behind.
        kill_group(self.pid());
        let _reaped = self.process.wait();
        if let Err(failure) = self.caretaker.release(self.pid()) {
            eprintln!("xtask bench: {failure}");
        }
    }
}
