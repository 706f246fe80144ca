//! `cargo xtask vm`: the tests of network cards (crates/millstream/tests/cards), in a guest of QEMU with its cards joined by a bridge.
//!
//! ```text
//! namespace msPID-vm            guest
//! br0 ─┬─ card0                 ─ 52:54:00:6d:67:01  virtio-net, 2 queues
//!      ├─ card1                 ─ 52:54:00:6d:67:02  virtio-net, 6 queues
//!      ├─ card2                 ─ 52:54:00:6d:67:03  igb
//!      └─ card3                 ─ 52:54:00:6d:67:04  virtio-net: the clients'
//! ```

/// What the guest shows.
mod console;
/// TAP devices and the bridge.
mod network;
/// The program of the tests.
mod program;

use console::Console;
use mill_guest::Kernel;
use mill_guest::initramfs::{self, Errand};
use mill_guest::machine::{self, Acceleration, Machine};
use mill_lab_host::host::{Host, Line, quoted};
use mill_lab_host::interrupt::Interrupt;
use mill_lab_host::journal::{Journal, left_behind, restore_all};
use mill_lab_host::process::{Process, Streams};
use mill_sys::clock;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

const USAGE: &str = "\
Usage: cargo xtask vm [FILTER]...

Runs the tests of network cards (those whose names contain a FILTER) in a guest of QEMU, with a current kernel: virtio-net
and igb, whose drivers have AF_XDP without copies. Brings what is missing by setup/ensure vm. Takes some minutes, fifteen at
most; needs root, for TAP devices. What was made is removed at the end, and by the next run after a crash.
";

pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    if let Some(option) = arguments.iter().find(|word| word.starts_with('-')) {
        if matches!(*option, "-h" | "--help") {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        eprintln!("xtask vm: cannot make sense of \"{option}\"\n\n{USAGE}");
        return ExitCode::from(crate::EXIT_USAGE);
    }
    match carry_out(root, arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask vm: {error}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(root: &Path, filters: &[&str]) -> io::Result<ExitCode> {
    let ensured = Command::new(root.join("setup/ensure")).arg("vm").status()?;
    if !ensured.success() {
        return Err(io::Error::other("setup/ensure vm has failed"));
    }
    let tests = program::build(root)?;
    let job = job(root, &tests, filters);
    // Before any other thread.
    let interrupt = Interrupt::listen()?;
    let state = PathBuf::from(STATE);
    if !left_behind(&state).is_empty() {
        restore_all(&state, &mut io::stderr())?;
    }
    let mut journal = Journal::begin(&state, &format!("vm-{}", std::process::id()))?;
    let status = in_guest(job, &mut journal, &interrupt);
    for problem in journal.restore() {
        eprintln!("xtask vm: {problem}");
    }
    Ok(match status? {
        0 => ExitCode::SUCCESS,
        status => {
            eprintln!("xtask vm: the tests ended with {status}");
            ExitCode::FAILURE
        }
    })
}

/// The script that the guest runs: at their own paths, for its root directory is this machine's.
fn job(root: &Path, tests: &Path, filters: &[&str]) -> String {
    let folder = root.join("crates/millstream").display().to_string();
    let mut words: Vec<String> = ["timeout", "-k", "5"].map(String::from).to_vec();
    words.push(TESTS_TIME_MAX.as_secs().to_string());
    words.push(tests.display().to_string());
    words.extend(["--test-threads=1", "--nocapture"].map(String::from));
    words.extend(filters.iter().map(|filter| String::from(*filter)));
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("cd {} && {}\n", quoted(&folder), words.join(" "))
}

/// Boots the guest; returns the exit status of the job.
fn in_guest(job: String, journal: &mut Journal, interrupt: &Interrupt) -> io::Result<i32> {
    let kernel = Kernel::find(None)?;
    let folder = folder(journal)?;
    let archive = folder.join("initramfs");
    let errand = Errand {
        job: Some(job),
        authorized_key: None,
    };
    fs::write(&archive, initramfs::build(&kernel, &errand)?)?;
    let (namespace, cards) = network::lay(journal)?;
    let machine = Machine {
        cpus: CPUS,
        memory_mib: MEMORY_MIB,
        acceleration: Acceleration::here(),
        cards,
        ssh_port: None,
        monitor: Some(folder.join("monitor")),
        console: machine::Console::Output,
    };
    let line = Line::new(machine.command(&kernel, &archive));
    let (out, err) = (folder.join("console"), folder.join("errors"));
    let streams = Streams {
        out: &out,
        err: &err,
    };
    let host = Host::Namespace(namespace);
    let mut guest = Process::start(&host, &line, "guest", streams, journal)?;
    let status = follow(&mut guest, &out, interrupt);
    guest.end(END_TIME_MAX);
    if status.is_err() {
        eprint!("{}", fs::read_to_string(&err).unwrap_or_default());
    }
    status
}

/// Shows what the guest does until its job has ended.
fn follow(guest: &mut Process, out: &Path, interrupt: &Interrupt) -> io::Result<i32> {
    let mut console = Console::open(out)?;
    let deadline = clock::monotonic() + TESTS_TIME_MAX + BOOT_TIME_MAX;
    loop {
        let has_ended = guest.wait(LOOK, interrupt).is_some();
        if let Some(status) = console.show()? {
            return Ok(status);
        }
        if interrupt.is_asked() {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        if has_ended {
            return Err(io::Error::other("the guest ended before its tests"));
        }
        if clock::monotonic() > deadline {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
    }
}

/// A private folder, removed with the rest.
fn folder(journal: &mut Journal) -> io::Result<PathBuf> {
    let path = std::env::temp_dir().join(format!("xtask-vm-{}", std::process::id()));
    journal.note(&mill_lab_host::journal::Entry::MadeFolder {
        path: path.display().to_string(),
    })?;
    fs::create_dir(&path)?;
    Ok(path)
}

/// Where the journal of what was made is, apart from the lab's.
const STATE: &str = "/run/millstream/vm";

/// A server and its clients.
const CPUS: u32 = 2;

/// The programs of the tests, as far as they are read, and 80 % of it for what they write.
const MEMORY_MIB: u32 = 1536;

const TESTS_TIME_MAX: Duration = Duration::from_secs(14 * 60);

/// Emulated, a guest was seen to take 10 s until its job began.
const BOOT_TIME_MAX: Duration = Duration::from_secs(60);

/// How long QEMU may take to end.
const END_TIME_MAX: Duration = Duration::from_secs(5);

/// How often the console is looked at.
const LOOK: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_runs_the_tests_that_were_asked_for() {
        let job = job(
            Path::new("/check out"),
            Path::new("/target/cards-1"),
            &["igb", "a b"],
        );
        let expected = "cd '/check out/crates/millstream' && timeout -k 5 840 /target/cards-1 --test-threads=1 --nocapture igb 'a b'\n";
        assert_eq!(job, expected);
    }
}
