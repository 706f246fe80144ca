//! The memory of an idle tunnel: a WebSocket through a proxy on kernel sockets, as far as 101.

/// The clients of the tunnels, and the server behind them.
mod ends;

use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use super::recipe;
use crate::EXIT_USAGE;
use ends::{Clients, Origin};
use mill_lab::desk::sheet::{row, sheet};
use mill_sys::process::Pid;
use mill_sys::rlimit::Resource;

const USAGE: &str = "\
Usage: cargo xtask bench tunnels [--tunnels N] [--server PATH]

Opens N idle tunnels (20000 if not said) through nginx, if it is installed, and through Millstream (PATH, or
built optimised), with the request of a browser and nginx's combined access log. Prints the private memory of
all processes of the proxy, and how much the second half of the tunnels has added to it for each. A tunnel takes
two descriptors of the proxy; the threads of its clients and of the server behind have tables of their own.
";

const TUNNELS: usize = 20_000;
const NGINX: &str = "/usr/sbin/nginx";

pub(super) fn run(root: &Path, options: &[&str]) -> ExitCode {
    let (mut tunnels, mut server) = (TUNNELS, None);
    let mut words = options.iter();
    while let Some(word) = words.next() {
        match (*word, words.next().copied()) {
            ("--help" | "-h", _) => {
                print!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            ("--tunnels", Some(text)) if text.parse().is_ok_and(|count: usize| count >= 2) => {
                tunnels = text.parse().unwrap_or(TUNNELS);
            }
            ("--server", Some(path)) => server = Some(PathBuf::from(path)),
            _ => {
                eprintln!(
                    "xtask bench tunnels: \"{word}\" is no option, or lacks its value\n\n{USAGE}"
                );
                return ExitCode::from(EXIT_USAGE);
            }
        }
    }
    match measure(root, tunnels, server) {
        Ok(table) => {
            print!("{table}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("xtask bench tunnels: {message}");
            ExitCode::FAILURE
        }
    }
}

fn measure(root: &Path, tunnels: usize, server: Option<PathBuf>) -> Result<String, String> {
    let server = server.map_or_else(|| recipe::build(root, "millstream"), Ok)?;
    let files = descriptors().map_err(|error| format!("the limit of descriptors: {error}"))?;
    let mut rows = vec![row(["proxy", "bytes each", "half of them, kB", "all, kB"])];
    let nginx = Path::new(NGINX);
    let systems = [
        ("nginx", nginx, &[][..]),
        ("Millstream", &server, &["serve"][..]),
    ];
    for (name, program, words) in systems {
        if !program.exists() {
            continue;
        }
        let [half, all] = held(program, words, tunnels, files)?;
        let each = (all.saturating_sub(half) * 1024) as f64 / (tunnels - tunnels / 2) as f64;
        let (each, half, all) = (format!("{each:.0}"), half.to_string(), all.to_string());
        rows.push(row([name, &each, &half, &all]));
    }
    Ok(sheet(&rows, &[1, 2, 3]))
}

/// Descriptors that a table of this process may have.
fn descriptors() -> std::io::Result<u64> {
    let mut limit = Resource::Descriptors.limit()?;
    limit.soft = limit.hard;
    Resource::Descriptors.set_limit(limit)?;
    Ok(limit.hard)
}

/// kB of private memory of a proxy with half of the tunnels, and with all.
fn held(program: &Path, words: &[&str], tunnels: usize, files: u64) -> Result<[u64; 2], String> {
    let said = |what: &'static str| move |error: std::io::Error| format!("{what}: {error}");
    let origin = Origin::start(tunnels).map_err(said("the server behind"))?;
    let front = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
    let front = front.map_err(said("a free port"))?;
    let name = format!("xtask-tunnels-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    fs::create_dir_all(&folder.0).map_err(said("a temporary folder"))?;
    let conf = folder.0.join("conf");
    // A third of the descriptors stays free: the kernel does not give all workers the same share.
    let workers = (3 * tunnels as u64).div_ceil(files);
    fs::write(
        &conf,
        configuration(&folder.0, front, origin.address, workers, files),
    )
    .map_err(said("its configuration"))?;
    let proxy = Proxy::start(program, words, &conf).map_err(said("the proxy"))?;
    wait_until_served(front)?;
    let mut held = [0; 2];
    let clients = Clients::start(front, tunnels);
    for held in &mut held {
        clients.open_half().map_err(said("a tunnel"))?;
        *held = proxy.private_kb().map_err(said("smaps_rollup"))?;
    }
    Ok(held)
}

fn configuration(
    folder: &Path,
    front: SocketAddr,
    behind: SocketAddr,
    workers: u64,
    files: u64,
) -> String {
    let folder = folder.display();
    format!(
        "daemon off; worker_processes {workers}; worker_rlimit_nofile {files};
         pid {folder}/pid; error_log {folder}/error.log crit; events {{ worker_connections {files}; }}
         http {{
             access_log {folder}/access.log combined;
             server {{
                 listen {front} reuseport backlog=4096;
                 location / {{
                     proxy_pass http://{behind};
                     proxy_http_version 1.1;
                     proxy_set_header Host $host;
                     proxy_set_header Upgrade $http_upgrade;
                     proxy_set_header Connection upgrade;
                     proxy_set_header X-Real-IP $remote_addr;
                     proxy_read_timeout 1h;
                 }}
             }}
         }}"
    )
}

fn wait_until_served(front: SocketAddr) -> Result<(), String> {
    for _ in 0..500 {
        if TcpStream::connect(front).is_ok() {
            return Ok(());
        }
        thread::park_timeout(Duration::from_millis(10));
    }
    Err(String::from("the proxy does not listen"))
}

/// Removed with all that it holds.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A master process and its workers, in a process group of their own.
struct Proxy(Child);

impl Proxy {
    fn start(program: &Path, words: &[&str], conf: &Path) -> std::io::Result<Self> {
        let errors = conf.with_extension("err");
        let child = Command::new(program)
            .args(words)
            .args([
                OsStr::new("-c"),
                conf.as_os_str(),
                OsStr::new("-e"),
                errors.as_os_str(),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self(child))
    }

    /// What its processes have for themselves.
    fn private_kb(&self) -> std::io::Result<u64> {
        let master = self.0.id();
        let children = fs::read_to_string(format!("/proc/{master}/task/{master}/children"))?;
        let mut sum = 0;
        for process in children.split_whitespace().chain([&*master.to_string()]) {
            let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
            sum += private_kb(&text);
        }
        Ok(sum)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let group = i32::try_from(self.0.id()).ok().and_then(Pid::new);
        let _ = group.map(|group| group.kill_group(SIGKILL));
        let _ = self.0.wait();
    }
}

/// The sum of what a `smaps_rollup` calls private.
fn private_kb(rollup: &str) -> u64 {
    let lines = rollup.lines().filter(|line| line.starts_with("Private_"));
    let numbers = lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    numbers.sum()
}

const SIGKILL: i32 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_memory_is_clean_and_dirty() {
        let rollup = "00400000-7fff [rollup]\nRss: 100 kB\nShared_Dirty: 7 kB\nPrivate_Clean: 20 kB\n\
            Private_Dirty: 3 kB\nPrivate_Hugetlb: 0 kB\n";
        assert_eq!(private_kb(rollup), 23);
    }

    #[test]
    fn tunnels_stay_open_while_they_are_held() {
        let origin = Origin::start(4).unwrap();
        // Without a proxy: the server behind answers as one.
        let clients = Clients::start(origin.address, 4);
        clients.open_half().unwrap();
        clients.open_half().unwrap();
    }
}
