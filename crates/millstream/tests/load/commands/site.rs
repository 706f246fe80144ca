//! The server of the experiments' commands, and the links by which the tools are called.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const MILLSTREAM: &str = env!("CARGO_BIN_EXE_millstream");

/// The experiments' objects with their sizes in bytes. Onload's kB have 1000 bytes, DragonFlyBSD's 1024.
const OBJECTS: &[(&str, u64)] = &[
    ("index.html", 600),
    ("favicon.ico", 318),
    ("logo.svg", 2649),
    ("0kb.bin", 0),
    ("1kb.bin", 1000),
    ("10kb.bin", 10_000),
    ("100kb.bin", 100_000),
    ("1Mb.bin", 1_000_000),
    ("10Mb.bin", 10_000_000),
    ("100Mb.bin", 100_000_000),
    ("1K.bin", 1024),
    ("8K.bin", 8192),
    ("16K.bin", 16_384),
];

/// How often the server is tried, and how long in between: 10 s in all.
const LOOKS_MAX: u32 = 1000;
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Another process may take a free port before the server does.
const STARTS_MAX: u32 = 5;

/// A directory of its own and `millstream serve` on it. Both are removed when it is dropped.
pub(super) struct Site {
    directory: PathBuf,
    pub(super) address: SocketAddr,
    server: Child,
}

impl Site {
    pub(super) fn start() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("millstream-commands-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        for (name, bytes) in OBJECTS {
            let file = File::create(directory.join(name)).unwrap();
            file.set_len(*bytes).unwrap();
        }
        for tool in ["wrk", "wrk2", "ab"] {
            symlink(MILLSTREAM, directory.join(tool)).unwrap();
        }
        for _ in 0..STARTS_MAX {
            let address = free_address();
            let server = spawn(&directory, address);
            let mut site = Self {
                directory: directory.clone(),
                address,
                server,
            };
            if site.is_there() {
                return site;
            }
            // The next attempt needs the directory.
            site.directory = PathBuf::new();
        }
        let said = fs::read_to_string(directory.join("stderr")).unwrap_or_default();
        panic!("the server does not start: {said}");
    }

    /// A tool's program: its link, or our own name.
    pub(super) fn program(&self, tool: &str) -> PathBuf {
        match tool {
            "millstream" => PathBuf::from(MILLSTREAM),
            tool => self.directory.join(tool),
        }
    }

    /// The bytes of the answer to this request, its head included.
    pub(super) fn answer_bytes(&self, request: &str) -> u64 {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let text = String::from_utf8_lossy(&head);
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        let content: u64 = length.unwrap().parse().unwrap();
        content + u64::try_from(head.len()).unwrap()
    }

    /// Waits until it listens; false if it exited instead, as it does on a port in use.
    fn is_there(&mut self) -> bool {
        for _ in 0..LOOKS_MAX {
            if self.server.try_wait().unwrap().is_some() {
                return false;
            }
            if TcpStream::connect(self.address).is_ok() {
                return self.server.try_wait().unwrap().is_none();
            }
            std::thread::park_timeout(LOOK_INTERVAL);
        }
        false
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // It may have exited by itself; a leftover directory does no harm.
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// An address on which no socket listened a moment ago.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// The settings of the experiments' servers, on two threads.
fn spawn(directory: &std::path::Path, address: SocketAddr) -> Child {
    let place = directory.display();
    let text = format!(
        "daemon off; master_process off; worker_processes 2; pid {place}/pid; error_log {place}/error.log;\n\
         events {{ worker_connections 20000; multi_accept on; }}\n\
         http {{\n  access_log off; sendfile on; tcp_nopush on; root {place};\n\
         keepalive_timeout 600; keepalive_requests 10000000; open_file_cache max=1000 inactive=3600s;\n\
         server {{ listen {address} reuseport backlog=131072; }}\n}}\n"
    );
    let conf = directory.join("nginx.conf");
    fs::write(&conf, text).unwrap();
    let stderr = File::create(directory.join("stderr")).unwrap();
    Command::new(MILLSTREAM)
        .args(["serve", "-c"])
        .arg(conf)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .unwrap()
}
