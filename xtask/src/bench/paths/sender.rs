//! What sends: the same server on kernel sockets, or on its own stack over AF_XDP on the same interface.

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mill_sys::descriptor;
use mill_sys::process::Pid;

use super::testbed::{INTERFACE, SERVER, Testbed};

/// Whose TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stack {
    Kernel,
    Ours,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Cubic,
    Bbr,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) stack: Stack,
    pub(super) algorithm: Algorithm,
}

/// A program that serves two files, `small` and `large`.
#[derive(Debug)]
pub(super) struct Program {
    millstream: PathBuf,
    folder: PathBuf,
    /// More options of the stack, behind a comma.
    options: String,
}

/// A process of it.
#[derive(Debug)]
pub(super) struct Sender {
    child: Child,
    pid: Pid,
    subject: Subject,
    segments_before: u64,
}

impl Subject {
    pub(super) fn name(self) -> &'static str {
        match (self.stack, self.algorithm) {
            (Stack::Kernel, Algorithm::Cubic) => "kernel cubic",
            (Stack::Kernel, Algorithm::Bbr) => "kernel bbr",
            (Stack::Ours, Algorithm::Cubic) => "our cubic",
            (Stack::Ours, Algorithm::Bbr) => "our bbr",
        }
    }

    /// Where it serves.
    pub(super) fn target(self) -> SocketAddr {
        let port = match self.stack {
            Stack::Kernel => 8080,
            Stack::Ours => 8081,
        };
        SocketAddr::V4(SocketAddrV4::new(SERVER, port))
    }
}

impl Algorithm {
    /// The kernel's word, and ours.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}

impl Program {
    /// Makes the files, in memory where the system has such a folder.
    pub(super) fn prepare(millstream: PathBuf, options: &str) -> io::Result<Self> {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() {
            memory.to_path_buf()
        } else {
            std::env::temp_dir()
        };
        let folder = place.join(format!("xtask-paths-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let made = Self {
            millstream,
            folder,
            options: String::from(options),
        };
        File::create(made.folder.join("small"))?;
        // A hole: its pages are never made.
        File::create(made.folder.join("large"))?.set_len(LARGE_BYTES)?;
        Ok(made)
    }

    /// What it said last, for messages.
    pub(super) fn last_words(&self) -> String {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Starts it, in the namespace of the calling thread, with which it ends.
    pub(super) fn start(&self, subject: Subject) -> io::Result<Sender> {
        let priority = PRIORITY.to_string();
        // However this program ends, its children do too.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "chrt", "--fifo", &priority]);
        command.arg(&self.millstream).arg("serve").arg(&self.folder);
        command.args(["--listen", &subject.target().to_string()]);
        if subject.stack == Stack::Ours {
            let (word, more) = (subject.algorithm.word(), &self.options);
            let stack = format!("af_xdp:{INTERFACE},congestion={word},offload=off{more}");
            command.args(["--stack", &stack]);
        }
        let log = File::options().append(true).create(true).open(self.log())?;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let segments_before = Testbed::kernel_segments()?;
        let child = mill_sys::program::on_its_own(&mut command).spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::new);
        Ok(Sender {
            child,
            pid: pid.expect("a child has a positive number"),
            subject,
            segments_before,
        })
    }

    fn log(&self) -> PathBuf {
        self.folder.join(".log")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Sender {
    pub(super) const fn subject(&self) -> Subject {
        self.subject
    }

    /// Whether what was sent since its start, and nothing else was, is from the stack that it is to be from: the kernel answers a few
    /// connections before the stack takes them.
    pub(super) fn is_of_its_stack(&self) -> io::Result<bool> {
        let segments = Testbed::kernel_segments()?.saturating_sub(self.segments_before);
        Ok((self.subject.stack == Stack::Kernel) == (segments > STRAY_SEGMENTS))
    }
}

impl Drop for Sender {
    /// By SIGTERM, and SIGKILL if that takes too long.
    fn drop(&mut self) {
        let _ = self.pid.kill_group(SIGTERM);
        if let Ok(ended) = self.pid.descriptor() {
            let _ = descriptor::wait_readable(&[ended.as_fd()], Some(PATIENCE));
        }
        let _ = self.pid.kill_group(SIGKILL);
        let _ = self.child.wait();
    }
}

/// More than a path of 200 Mbit/s carries in half a minute.
const LARGE_BYTES: u64 = 4 << 30;

/// Refusals before the stack listens; a download has thousands.
const STRAY_SEGMENTS: u64 = 200;

/// In real time, behind the emulator: in its thread the kernel's TCP sends what an acknowledgement allows, and never waits for a processor.
/// A process on its own stack would, where others compile.
const PRIORITY: i32 = 5;

const PATIENCE: Duration = Duration::from_secs(3);

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;
