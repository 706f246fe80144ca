//! A directory, a configuration, and the processes started with it.

use crate::client;
use mill_sys::process::Pid;
use mill_sys::{account, signal::Signal};
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A site to be served; dropped, it ends every process that serves it.
pub(crate) struct Site {
    directory: PathBuf,
}

impl Site {
    /// A directory with `index.html`, a link `nginx` to the binary, and room for logs.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("millstream-process-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let site = Self { directory };
        fs::set_permissions(&site.directory, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(site.path("index.html"), "hello\n").unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_millstream"), site.path("nginx")).unwrap();
        site
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.join(name)
    }

    /// Writes the configuration, with temporary files in the directory: nginx beside, which is started as root, gives the
    /// folders of the system to another user. `main` outside all blocks, `http` in the http block.
    pub(crate) fn configure(&self, main: &str, http: &str) {
        let user = if account::is_super_user() {
            "user www-data;"
        } else {
            ""
        };
        let directory = self.directory.display();
        let text = format!(
            "{user}\n{main}\npid {directory}/pid;\nerror_log {directory}/error.log info;\n\
             events {{ worker_connections 512; }}\n\
             http {{\naccess_log {directory}/access.log;\nroot {directory};\n\
             client_body_temp_path {directory}/temporary-body;\nproxy_temp_path {directory}/temporary-proxy;\n{http}\n}}\n"
        );
        fs::write(self.path("nginx.conf"), text).unwrap();
    }

    /// Runs `nginx -c CONF` with more arguments, until the called process exits.
    pub(crate) fn nginx(&self, arguments: &[&str]) -> Output {
        let conf = self.path("nginx.conf");
        let mut all: Vec<&OsStr> = vec![OsStr::new("-c"), conf.as_os_str()];
        all.extend(arguments.iter().map(OsStr::new));
        // Standard error goes to a file: a pipe would be held open by a daemon.
        let stderr = fs::File::create(self.path("stderr")).unwrap();
        let output = Command::new(self.path("nginx"))
            .args(&all)
            .stdin(Stdio::null())
            .stderr(stderr)
            .output()
            .unwrap();
        Output {
            stderr: fs::read(self.path("stderr")).unwrap(),
            ..output
        }
    }

    /// Starts a daemon, and returns the number of its master.
    pub(crate) fn start(&self) -> Pid {
        let output = self.nginx(&[]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        self.master()
            .expect("the pid file is written before the start has succeeded")
    }

    /// The same for another server, which may write its pid file later.
    pub(crate) fn start_other(&self) -> Pid {
        assert!(self.nginx(&[]).status.success());
        wait_for("the pid file", || self.master())
    }

    /// The product that serves there, by the field Server.
    pub(crate) fn product(&self, address: SocketAddr) -> String {
        self.wait_until_served(address);
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"HEAD / HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let product = text.lines().find_map(|line| line.strip_prefix("Server: "));
        product.unwrap_or_default().to_owned()
    }

    /// The process that the pid file names.
    pub(crate) fn master(&self) -> Option<Pid> {
        pid_in(&self.path("pid"))
    }

    /// Waits for a worker process of `master` that is none of `others`.
    pub(crate) fn worker(&self, master: Pid, others: &[Pid]) -> Pid {
        wait_for("a worker process", || {
            let children = children(master).into_iter();
            children
                .filter(|child| is_worker(*child))
                .find(|child| !others.contains(child))
        })
    }

    pub(crate) fn error_log(&self) -> String {
        // Peers' bytes in it may be anything.
        let log = fs::read(self.path("error.log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Waits for a line of the error log that contains this.
    pub(crate) fn wait_for_log(&self, text: &str) {
        let found = || self.error_log().contains(text).then_some(());
        if poll(found).is_none() {
            panic!("no \"{text}\" in the error log:\n{}", self.error_log());
        }
    }

    /// Waits until `index.html` is served there.
    pub(crate) fn wait_until_served(&self, address: SocketAddr) {
        let served =
            || client::get(address, "/index.html").is_ok_and(|answer| answer.status == 200);
        if poll(|| served().then_some(())).is_none() {
            panic!("nothing at {address}; the error log:\n{}", self.error_log());
        }
    }

    /// All processes that were started with this directory, and their children.
    fn processes(&self) -> Vec<Pid> {
        // With the slash, or the first directory's name would begin the eleventh's.
        let name = format!("{}/", self.directory.display());
        let all = all_processes();
        let mut ours: Vec<Pid> = all
            .iter()
            .copied()
            .filter(|pid| command_line(*pid).contains(&name))
            .collect();
        ours.extend(pid_in(&self.path("pid")));
        ours.extend(pid_in(&self.path("pid.oldbin")));
        ours.retain(|pid| *pid != Pid::own());
        let started: Vec<Pid> = ours.iter().flat_map(|pid| children(*pid)).collect();
        ours.extend(started);
        ours
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // Masters first, else they start new worker processes.
        for pid in self.processes() {
            let _ = pid.kill(Signal::Kill.number());
        }
        if std::thread::panicking() {
            println!("the error log:\n{}", self.error_log());
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Sends a signal.
pub(crate) fn send(pid: Pid, signal: Signal) {
    pid.kill(signal.number()).unwrap();
}

/// An address of this machine that was unused a moment ago. Its port is below those that the kernel gives to clients
/// (ip_local_port_range): with thousands of connections one would soon have the same.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(97);
    let free = (0..PORTS).find_map(|_| {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST_PORT + start.wrapping_add(next) % PORTS;
        let address = SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).unwrap()));
        TcpListener::bind(address).is_ok().then_some(address)
    });
    free.expect("one of ten thousand ports is free")
}

/// Whether a process runs; a zombie does not.
pub(crate) fn is_running(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .map(|(_, rest)| rest.starts_with('Z'));
    state == Some(false)
}

/// Waits until a process has ended.
pub(crate) fn wait_until_ended(pid: Pid) {
    wait_for("the end of a process", || (!is_running(pid)).then_some(()));
}

/// Waits until `condition` returns a value.
pub(crate) fn wait_for<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    poll(condition).unwrap_or_else(|| panic!("waited in vain for {what}"))
}

fn poll<T>(mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..POLLS {
        if let Some(found) = condition() {
            return Some(found);
        }
        std::thread::park_timeout(POLL_PAUSE);
    }
    None
}

/// The user of a process.
pub(crate) fn user_of(pid: Pid) -> u32 {
    std::os::unix::fs::MetadataExt::uid(&fs::metadata(format!("/proc/{pid}")).unwrap())
}

/// What `ps` shows of a process.
pub(crate) fn command_line(pid: Pid) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// The names of the threads of a process.
pub(crate) fn threads(pid: Pid) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.map(|name| name.trim_end().to_owned()).collect()
}

/// How many worker threads a worker process has.
pub(crate) fn worker_threads(pid: Pid) -> usize {
    threads(pid)
        .iter()
        .filter(|name| name.starts_with("worker "))
        .count()
}

/// The children of a process.
pub(crate) fn children(parent: Pid) -> Vec<Pid> {
    let is_child = |pid: &Pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat
            .rsplit_once(") ")
            .map(|(_, rest)| rest.to_owned())
            .unwrap_or_default();
        fields.split(' ').nth(1).and_then(|ppid| ppid.parse().ok()) == Some(parent.number())
    };
    all_processes().into_iter().filter(is_child).collect()
}

fn is_worker(pid: Pid) -> bool {
    is_running(pid) && command_line(pid).starts_with("nginx: worker process")
}

fn all_processes() -> Vec<Pid> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::new))
        .collect()
}

fn pid_in(path: &Path) -> Option<Pid> {
    let text = fs::read_to_string(path).ok()?;
    text.trim_end().parse().ok().and_then(Pid::new)
}

/// How often a condition is tested before it fails, and the pause between: 20 seconds in all.
const POLLS: u32 = 4000;
const POLL_PAUSE: Duration = Duration::from_millis(5);

/// Ports to choose from.
const FIRST_PORT: u32 = 20_000;
const PORTS: u32 = 10_000;
