//! A private store and journal folder, and labs that run on them.

use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where one test's lab works. All of it is removed with the value.
pub(crate) struct Bench {
    folder: PathBuf,
}

/// A running lab, and its progress.
pub(crate) struct Lab {
    child: Child,
    progress: BufReader<ChildStderr>,
}

impl Bench {
    /// `None`, with a message, if namespaces can't be made.
    pub(crate) fn new() -> Option<Self> {
        let lacks = needs().find(|(has, _)| !has);
        if let Some((_, what)) = lacks {
            say(&format!("left out: this test needs {what}"));
            return None;
        }
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("millstream-lab-test-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Some(Self { folder })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// `millstream lab WORDS`, with this store.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
        command
            .arg("lab")
            .args(words)
            .arg("--store")
            .arg(self.path("store"))
            .env("MILLSTREAM_LAB_STATE", self.path("state"))
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn output(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Starts the smallest recipe and waits for its first trial: the second has a testbed, a server and soon a client.
    pub(crate) fn under_way(&self) -> Lab {
        let mut words = SMALLEST.to_vec();
        // Enough blocks that the run does not end before it is interrupted.
        words.extend(["--set", "repeat.blocks=60"]);
        self.under_way_of(&words)
    }

    /// Some run, past its first trial.
    pub(crate) fn under_way_of(&self, words: &[&str]) -> Lab {
        let mut child = self
            .command(words)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let progress = BufReader::new(child.stderr.take().unwrap());
        let mut lab = Lab { child, progress };
        lab.read_until("1/");
        lab
    }

    /// Namespaces that labs of this test's processes have left.
    pub(crate) fn namespaces_of(process: u32) -> Vec<String> {
        let output = Command::new("ip").args(["netns", "list"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let own = format!("ms{process}-");
        text.lines()
            .filter(|line| line.starts_with(&own))
            .map(String::from)
            .collect()
    }

    pub(crate) fn journals(&self) -> usize {
        // The file by which a lab locks the machine is there too, and stays.
        let is_journal = |entry: &std::fs::DirEntry| {
            let path = entry.path();
            path.extension()
                .is_some_and(|extension| extension == "journal")
        };
        let entries = std::fs::read_dir(self.path("state"));
        entries.map_or(0, |entries| entries.flatten().filter(is_journal).count())
    }

    /// Processes whose command line mentions this test's runs.
    pub(crate) fn processes(&self) -> Vec<String> {
        let runs = std::fs::read_dir(self.path("store/runs")).unwrap();
        let names: Vec<String> = runs
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&line).replace('\0', " "))
        });
        lines
            .filter(|line| names.iter().any(|name| line.contains(name)))
            .collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.command(&["restore"]).output();
        // A finished run is read-only, which does not affect root.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Lab {
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&self, signal: Signal) {
        self.pid().kill(signal.number()).unwrap();
    }

    /// As the OOM killer would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Exit status, and the output from now on.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut self.progress, &mut text).unwrap();
        (self.child.wait().unwrap().code(), text)
    }

    fn pid(&self) -> Pid {
        Pid::new(i32::try_from(self.child.id()).unwrap()).unwrap()
    }

    fn read_until(&mut self, beginning: &str) {
        let mut said = String::new();
        loop {
            let mut line = String::new();
            let count = self.progress.read_line(&mut line).unwrap();
            assert!(count > 0, "it ended early and said:\n{said}");
            if line.starts_with(beginning) {
                return;
            }
            said.push_str(&line);
        }
    }
}

/// Seconds instead of minutes; other tests run at the same time, which must not void a trial here.
pub(crate) const SMALLEST: [&str; 6] = [
    "run",
    "smallest",
    "--set",
    "repeat.foreign_cpu=1",
    "--set",
    "repeat.steal=1",
];

#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

fn needs() -> impl Iterator<Item = (bool, &'static str)> {
    let has = |name: &str| {
        ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
            .iter()
            .any(|folder| Path::new(folder).join(name).exists())
    };
    [
        (mill_sys::account::is_super_user(), "root, for namespaces"),
        (has("ip"), "ip (iproute2)"),
        (has("tc"), "tc (iproute2)"),
        (has("nginx"), "nginx"),
        (has("wrk"), "wrk"),
    ]
    .into_iter()
}
