//! Measuring programs: run with a time limit, and ended with the lab.

use crate::host::{Host, Line};
use mill_sys::descriptor;
use mill_sys::process::Pid;
use std::borrow::Cow;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// What a program printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Printed {
    pub success: bool,
    pub bytes: Vec<u8>,
    pub err: String,
}

/// Runs a program to its end, at most `patience` long; the error says why there is no output.
pub(super) fn run(host: &Host, line: &Line, patience: Duration) -> Result<Printed, String> {
    let program = line.argv.first().map_or("", String::as_str);
    if !matches!(host, Host::Remote(_)) && find(program).is_none() {
        return Err(missing(program));
    }
    let mut running = Running::start(host.command(line))
        .map_err(|error| format!("{program} can't be started: {error}"))?;
    let out = running.child.stdout.take();
    let err = running.child.stderr.take();
    let (status, out, err) = std::thread::scope(|scope| {
        let out = scope.spawn(|| all_of(out));
        let err = scope.spawn(|| all_of(err));
        let status = running.wait(patience);
        (status, out.join(), err.join())
    });
    let status =
        status.ok_or_else(|| format!("{program} did not end within {} s", patience.as_secs()))?;
    Ok(Printed {
        success: status.success(),
        bytes: out.unwrap_or_default(),
        err: String::from_utf8_lossy(&err.unwrap_or_default()).into_owned(),
    })
}

impl Printed {
    pub(super) fn out(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// The output of a program that succeeded; else its error message.
    pub(super) fn or_complaint(self, program: &str) -> Result<Self, String> {
        if self.success {
            return Ok(self);
        }
        Err(format!("{program}: {}", self.complaint()))
    }

    /// The first non-empty line on standard error.
    pub(super) fn complaint(&self) -> String {
        let line = self
            .err
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty());
        line.map_or_else(
            || String::from("it failed without a word"),
            |line| line.chars().take(COMPLAINT_MAX).collect(),
        )
    }
}

/// The most characters of a program's error message in a report's note.
const COMPLAINT_MAX: usize = 200;

/// Where a program is, as a shell would find it.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// What to do about a missing program; Debian's package names.
pub(super) fn missing(program: &str) -> String {
    let package = match program {
        "perf" => "linux-perf",
        "ping" => "iputils-ping",
        "ip" | "tc" => "iproute2",
        "systemctl" => "systemd",
        other => other,
    };
    format!("{program} is not installed: `apt install {package}`")
}

/// Time in addition to the measurement, for starting, writing and ending on a busy machine.
pub(super) const GRACE: Duration = Duration::from_secs(20);

/// A child process in a group of its own, so that Ctrl-C on the terminal does not reach it. Killed with its children
/// when dropped.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    pid: Pid,
}

impl Running {
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::new);
        Ok(Self {
            child,
            pid: pid.expect("a child has a positive number"),
        })
    }

    /// Its standard output, once.
    pub(super) fn output(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// None if it did not end by itself; it is then killed.
    fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let ended = self.pid.descriptor().and_then(|descriptor| {
            descriptor::wait_readable(&[descriptor.as_fd()], Some(patience))
        });
        let status = match ended {
            Ok(ready) if ready == [true] => self.child.wait().ok(),
            _ => None,
        };
        // Children that outlive their parent hold the pipes open.
        let _ = self.pid.kill_group(SIGKILL);
        status
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.pid.kill_group(SIGKILL);
        let _ = self.child.wait();
    }
}

const SIGKILL: i32 = 9;

/// The most bytes of a program's output that are kept; the rest is read and dropped, so that the program can end.
const OUTPUT_MAX: u64 = 64 << 20;

fn all_of(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Some(mut pipe) = pipe else {
        return bytes;
    };
    let _ = pipe.by_ref().take(OUTPUT_MAX).read_to_end(&mut bytes);
    let _ = io::copy(&mut pipe, &mut io::sink());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], patience: Duration) -> Result<Printed, String> {
        run(&Host::Local, &Line::new(words.iter().copied()), patience)
    }

    #[test]
    fn both_outputs_and_the_exit_status_are_returned() {
        let minute = Duration::from_secs(60);
        let printed = check(&["sh", "-c", "echo out; echo err >&2"], minute).unwrap();
        assert_eq!((&*printed.out(), printed.success), ("out\n", true));
        let failed = check(&["sh", "-c", "echo >&2; echo why >&2; exit 3"], minute).unwrap();
        assert_eq!(failed.or_complaint("tool"), Err(String::from("tool: why")));
        let silent = check(&["false"], minute).unwrap();
        assert_eq!(silent.complaint(), "it failed without a word");
    }

    #[test]
    fn a_program_that_does_not_end_is_ended_with_its_children() {
        let result = check(&["sh", "-c", "sleep 1000 & sleep 1000"], Duration::ZERO);
        assert_eq!(result, Err(String::from("sh did not end within 0 s")));
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let result = check(&["no-such-program"], Duration::ZERO);
        assert!(result.unwrap_err().contains("apt install"));
        assert!(missing("perf").contains("linux-perf"));
        assert_eq!(find("/no/such"), None);
    }
}
