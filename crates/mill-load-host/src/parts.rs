//! Child processes of this program, each of which runs a part of the load.
//!
//! A part is a child whose standard input and output are pipes to this process, in a process group of its own: a Ctrl-C
//! at the terminal reaches only this process, which tells the parts. A part whose input ends has lost its parent, and
//! ends too.

use crate::interrupt::{Interrupts, Stop};
use crate::run;
use mill_load::platform::{ChildProcesses, FromPart, Launcher};
use mill_runtime::time::{Duration, Instant};
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};

/// Starts this program again.
#[derive(Debug)]
pub struct Processes {
    interrupts: Interrupts,
    /// `None`: this program, by /proc/self/exe.
    program: Option<PathBuf>,
    /// The arguments before those of a part.
    command: Vec<OsString>,
}

/// The parts of one run.
#[derive(Debug)]
struct Parts {
    children: Vec<Child>,
    lines: Receiver<(u32, Read)>,
    stop: Stop,
    /// The interrupt was passed on.
    interrupted: bool,
}

/// What was read from a part.
#[derive(Debug)]
enum Read {
    Line(String),
    End,
}

impl Processes {
    /// Parts that run `load` of this program; they end when `interrupts` says so.
    pub fn new(interrupts: Interrupts) -> Self {
        Self {
            interrupts,
            program: None,
            command: vec![OsString::from("load")],
        }
    }

    /// Starts `program` with `command` before a part's arguments instead, for tests.
    #[must_use]
    pub fn of(self, program: PathBuf, command: Vec<OsString>) -> Self {
        Self {
            program: Some(program),
            command,
            ..self
        }
    }

    fn program(&self) -> Result<PathBuf, String> {
        match &self.program {
            Some(program) => Ok(program.clone()),
            None => std::env::current_exe()
                .map_err(|error| format!("where this program lies is not known: {error}")),
        }
    }

    fn start_one(&self, program: &PathBuf, arguments: &[Vec<u8>]) -> Result<Child, String> {
        Command::new(program)
            .args(&self.command)
            .args(arguments.iter().map(|argument| OsStr::from_bytes(argument)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| {
                format!(
                    "a part could not be started: {error}; use fewer processes, or see ulimit -u"
                )
            })
    }
}

impl Launcher for Processes {
    fn now(&self) -> Instant {
        run::now()
    }

    fn start(&self, arguments: &[Vec<Vec<u8>>]) -> Result<Box<dyn ChildProcesses>, String> {
        let program = self.program()?;
        let (sender, lines) = mpsc::channel();
        let mut parts = Parts {
            children: Vec::new(),
            lines,
            stop: self.interrupts.begin_run(),
            interrupted: false,
        };
        for (number, own) in (0..).zip(arguments) {
            let mut child = self.start_one(&program, own)?;
            let output = child.stdout.take();
            parts.children.push(child);
            let sender = sender.clone();
            std::thread::Builder::new()
                .name(format!("part {number}"))
                .spawn(move || read(number, output, &sender))
                .map_err(|error| format!("a part could not be listened to: {error}"))?;
        }
        Ok(Box::new(parts))
    }

    fn order(&self) -> Option<String> {
        read_line(&mut std::io::stdin().lock())
    }

    fn interrupt_on_input(&self) {
        // From here on an interrupt ends the run instead of the process: the results count.
        drop(self.interrupts.begin_run());
        let interrupts = self.interrupts.clone();
        let spawned = std::thread::Builder::new()
            .name(String::from("orders"))
            .spawn(move || {
                read_line(&mut std::io::stdin().lock());
                interrupts.ask();
            });
        if spawned.is_err() {
            // No order to end could be received any more, so nothing is begun.
            self.interrupts.ask();
        }
    }
}

impl ChildProcesses for Parts {
    fn send(&mut self, part: u32, line: &str) {
        let child = self.children.get_mut(part as usize);
        if let Some(input) = child.and_then(|child| child.stdin.as_mut()) {
            // The end of its output shows that a part is gone.
            let _ = input.write_all(format!("{line}\n").as_bytes());
        }
    }

    fn receive(&mut self) -> FromPart {
        loop {
            if self.stop.is_interrupted() && !self.interrupted {
                self.interrupted = true;
                return FromPart::Interrupted;
            }
            match self.lines.recv_timeout(INTERRUPT_DELAY_MAX) {
                Ok((part, Read::Line(line))) => return FromPart::Line(part, line),
                Ok((part, Read::End)) => return FromPart::Ended(part, self.wait(part)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return FromPart::Ended(0, String::from("all parts have ended"));
                }
            }
        }
    }
}

impl Parts {
    /// How a part ended, after the end of its output.
    fn wait(&mut self, part: u32) -> String {
        let child = self.children.get_mut(part as usize);
        match child.map(Child::wait) {
            Some(Ok(status)) => status.to_string(),
            Some(Err(error)) => error.to_string(),
            None => String::from("never started"),
        }
    }
}

impl Drop for Parts {
    /// Kills and reaps all parts, whatever the reason.
    fn drop(&mut self) {
        for child in &mut self.children {
            if let Ok(None) = child.try_wait() {
                // It may be exiting at this moment; either way it is waited for.
                let _ = child.kill();
            }
            let _ = child.wait();
        }
    }
}

/// Passes a part's lines on until the end of its output.
fn read(part: u32, output: Option<ChildStdout>, events: &Sender<(u32, Read)>) {
    let lines = output
        .into_iter()
        .flat_map(|output| BufReader::new(output).lines());
    for line in lines.map_while(Result::ok) {
        if events.send((part, Read::Line(line))).is_err() {
            return;
        }
    }
    // When the run has failed, there is no receiver any more.
    let _ = events.send((part, Read::End));
}

fn read_line(input: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    match input.read_line(&mut line) {
        Ok(length) if length > 0 => Some(line),
        _ => None,
    }
}

/// How long it may take until the parts are lines about a Ctrl-C.
const INTERRUPT_DELAY_MAX: Duration = Duration::from_millis(50);
