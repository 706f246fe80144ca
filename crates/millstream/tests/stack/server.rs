//! The binary, serving: started in the calling thread's namespace, ended whatever happens.

use crate::namespace::output_of;
use mill_sys::descriptor::wait_readable;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The device of most tests.
pub(crate) const STACK: &str =
    "tap:mill0,address=10.77.0.2/24,host=10.77.0.1/24,address=fd00::2/64,host=fd00::1/64";

/// A directory with files to serve, removed when it is dropped.
pub(crate) struct Site(PathBuf);

impl Site {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("millstream-stack-{}-{number}", std::process::id());
        let site = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&site.0).unwrap();
        fs::set_permissions(&site.0, fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(site.path("index.html"), "hello\n").unwrap();
        let large: Vec<u8> = (0..3_000_000_u32)
            .flat_map(|word| word.to_le_bytes())
            .collect();
        fs::write(site.path("large.bin"), large).unwrap();
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a configuration with a master; `main` outside all blocks, `http` in the http block.
    pub(crate) fn configure(&self, main: &str, http: &str) -> String {
        self.configure_for(512, main, http)
    }

    /// The same for so many connections of each worker.
    pub(crate) fn configure_for(&self, connections: u32, main: &str, http: &str) -> String {
        let directory = self.0.display();
        let text = format!(
            "user www-data;\ndaemon off;\n{main}\npid {directory}/pid;\nerror_log {directory}/error.log info;\n\
             events {{ worker_connections {connections}; }}\n\
             http {{\naccess_log off;\nroot {directory};\n\
             client_body_temp_path {directory}/temporary-body;\nproxy_temp_path {directory}/temporary-proxy;\n{http}\n}}\n"
        );
        let path = self.path("nginx.conf");
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn error_log(&self) -> String {
        fs::read_to_string(self.path("error.log")).unwrap_or_default()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // A leftover directory in /tmp does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running server, leader of a process group of its own.
pub(crate) struct Server {
    child: Child,
}

impl Server {
    /// `millstream serve DIRECTORY`; returns once it serves.
    pub(crate) fn directory(directory: &Path, arguments: &[&str]) -> Self {
        Self::directory_behind(&[], directory, arguments)
    }

    /// The same, run behind another command such as prlimit(1).
    pub(crate) fn directory_behind(before: &[&str], directory: &Path, arguments: &[&str]) -> Self {
        let own = ["serve", directory.to_str().unwrap(), "--port", "80"];
        let all = [&own, arguments].concat();
        let mut server = Self::start(before, &all, Stdio::piped());
        let mut line = String::new();
        let out = server.child.stdout.as_mut().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        assert!(
            line.ends_with("until Ctrl-C\n"),
            "{line:?} {}",
            server.complaint()
        );
        server
    }

    /// `millstream serve -c CONF`; returns once the configuration is in force.
    pub(crate) fn configured(site: &Site, conf: &str, arguments: &[&str]) -> Self {
        let server = Self::begin(conf, arguments);
        wait_for(|| site.error_log().contains("configuration 1 is in force"));
        server
    }

    /// The same, which returns at once.
    pub(crate) fn begin(conf: &str, arguments: &[&str]) -> Self {
        let words = ["serve", "-c", conf];
        Self::start(&[], &[&words, arguments].concat(), Stdio::null())
    }

    fn start(before: &[&str], arguments: &[&str], stdout: Stdio) -> Self {
        let words = [before, &[env!("CARGO_BIN_EXE_millstream")], arguments].concat();
        let child = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        Self {
            child: child.unwrap(),
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::new(i32::try_from(self.child.id()).unwrap()).unwrap()
    }

    /// The child of the master, once there is one.
    pub(crate) fn worker(&self) -> Pid {
        self.worker_if_any().unwrap()
    }

    pub(crate) fn worker_if_any(&self) -> Option<Pid> {
        let output = output_of("pgrep", &["-P", &self.pid().number().to_string()]);
        let text = String::from_utf8(output.stdout).unwrap();
        Pid::new(text.trim().parse().ok()?)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.pid().kill(signal.number()).unwrap();
    }

    /// Kills all of its processes at once.
    pub(crate) fn kill_all(&mut self) {
        self.pid().kill_group(Signal::Kill.number()).unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal, and waits for the end.
    pub(crate) fn end(mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        for _ in 0..END_TIME_MAX_MS / 10 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            // Waits for the time only.
            wait_readable(&[], Some(Duration::from_millis(10))).unwrap();
        }
        panic!("the server goes on {END_TIME_MAX_MS} ms after {signal:?}");
    }

    /// Its standard error before it ended.
    fn complaint(&mut self) -> String {
        let _ = self.child.kill();
        let mut text = String::new();
        let stderr = self.child.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // All of it may have ended.
        let _ = self.pid().kill_group(Signal::Kill.number());
        let _ = self.child.wait();
    }
}

/// Processor time that a process has used, in hundredths of a second (proc(5), stat: utime and stime).
pub(crate) fn ticks_of(process: Pid) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.number())).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks = |index: usize| fields[index].parse::<u64>().unwrap();
    ticks(11) + ticks(12)
}

/// Waits until a process is idle: it uses no CPU time for a fifth of a second.
pub(crate) fn wait_until_at_rest(process: Pid) {
    let (mut before, mut quiet_looks) = (0, 0);
    wait_for(|| {
        let now = ticks_of(process);
        quiet_looks = if now == before { quiet_looks + 1 } else { 0 };
        before = now;
        quiet_looks == 20
    });
}

/// Waits until a condition holds, at most ten seconds.
pub(crate) fn wait_for(mut holds: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        // Waits for the time only: the other side is a process of its own.
        let pause = Duration::from_millis(10);
        wait_readable(&[], Some(pause)).unwrap();
    }
    panic!("it does not come about");
}

/// How long a server without clients may take to end.
const END_TIME_MAX_MS: u32 = 30_000;
