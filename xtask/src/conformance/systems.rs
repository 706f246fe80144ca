//! The programs, how they are configured, started and ended.

use mill_sys::clock::monotonic;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, process, thread};

/// A program that is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Nginx,
    Varnish,
    HaProxy,
    Millstream,
}

/// In the order of the page's columns.
pub(super) const KINDS: [Kind; 4] = [Kind::Nginx, Kind::Varnish, Kind::HaProxy, Kind::Millstream];

impl Kind {
    /// As the command line names it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Varnish => "varnish",
            Self::HaProxy => "haproxy",
            Self::Millstream => "millstream",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Varnish => "Varnish",
            Self::HaProxy => "HAProxy",
            Self::Millstream => "Millstream",
        }
    }

    fn program(self, millstream: &Path) -> PathBuf {
        match self {
            Self::Nginx => PathBuf::from("/usr/sbin/nginx"),
            Self::Varnish => PathBuf::from("/usr/sbin/varnishd"),
            Self::HaProxy => PathBuf::from("/usr/sbin/haproxy"),
            Self::Millstream => millstream.to_path_buf(),
        }
    }

    const fn version_option(self) -> &'static str {
        match self {
            Self::Nginx | Self::HaProxy => "-v",
            Self::Varnish => "-V",
            Self::Millstream => "--version",
        }
    }
}

/// A program that runs; dropped, it ends.
pub(super) struct System {
    child: Child,
    port: u16,
    version: String,
    folder: PathBuf,
}

impl System {
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }
}

impl Drop for System {
    fn drop(&mut self) {
        // By SIGTERM, so that it ends its own processes.
        let _ = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        let deadline = monotonic() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && monotonic() < deadline {
            thread::park_timeout(STEP);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Starts a program in front of the origin at this port.
pub(super) fn start(kind: Kind, millstream: &Path, origin: u16) -> io::Result<System> {
    let program = kind.program(millstream);
    let version = version(&program, kind.version_option())?;
    let port = free_port()?;
    let folder = env::temp_dir().join(format!("conformance-{}-{}", kind.name(), process::id()));
    fs::create_dir_all(&folder)?;
    let file = folder.join("conf");
    let mut command = Command::new(&program);
    let at = folder.display();
    match kind {
        Kind::Nginx => {
            fs::write(&file, nginx(&folder, port, origin, ""))?;
            command.args(["-p", &at.to_string(), "-c"]).arg(&file);
        }
        Kind::Millstream => {
            let rules =
                "cache_rules rfc9111; cache_status mill; cache_targeted Mill-Cache-Control;";
            fs::write(&file, nginx(&folder, port, origin, rules))?;
            command.args(["serve", "-c"]).arg(&file);
        }
        Kind::HaProxy => {
            fs::write(&file, haproxy(port, origin))?;
            command.args(["-db", "-f"]).arg(&file);
        }
        Kind::Varnish => {
            command.args([
                "-F",
                "-j",
                "none",
                "-s",
                "malloc,16m",
                "-p",
                "default_grace=0",
            ]);
            command.args(["-n", &at.to_string(), "-a", &format!("127.0.0.1:{port}")]);
            command.args(["-b", &format!("127.0.0.1:{origin}")]);
        }
    }
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let system = System {
        child: child.spawn()?,
        port,
        version,
        folder,
    };
    wait_for(system.port)?;
    Ok(system)
}

fn version(program: &Path, option: &str) -> io::Result<String> {
    let output = Command::new(program).arg(option).output();
    let output =
        output.map_err(|error| io::Error::other(format!("{}: {error}", program.display())))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text
        .lines()
        .find(|line| line.chars().any(|it| it.is_ascii_digit()));
    Ok(line.unwrap_or_default().trim().to_owned())
}

/// One that was free a moment ago.
fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

fn wait_for(port: u16) -> io::Result<()> {
    let deadline = monotonic() + PATIENCE;
    loop {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(()),
            Err(error) if monotonic() > deadline => return Err(error),
            Err(_) => thread::park_timeout(STEP),
        }
    }
}

fn nginx(folder: &Path, port: u16, origin: u16, rules: &str) -> String {
    let at = folder.display();
    format!(
        "daemon off; worker_processes 1; pid {at}/pid; error_log {at}/error.log; user root;
         events {{ worker_connections 1024; }}
         http {{
           access_log off; client_body_temp_path {at}/body; proxy_temp_path {at}/proxy;
           fastcgi_temp_path {at}/fastcgi; uwsgi_temp_path {at}/uwsgi; scgi_temp_path {at}/scgi;
           proxy_cache_path {at}/cache keys_zone=one:10m;
           server {{ listen 127.0.0.1:{port}; {rules}
             location / {{ proxy_pass http://127.0.0.1:{origin}; proxy_http_version 1.1;
               proxy_set_header Connection ''; proxy_cache one; proxy_cache_revalidate on; }} }}
         }}\n"
    )
}

fn haproxy(port: u16, origin: u16) -> String {
    format!(
        "global\n  nbthread 1\n  maxconn 1024\n\
         cache one\n  total-max-size 16\n  process-vary on\n  max-age 3600\n\
         defaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n\
         frontend front\n  bind 127.0.0.1:{port}\n  default_backend behind\n\
         backend behind\n  http-request cache-use one\n  http-response cache-store one\n  \
         server one 127.0.0.1:{origin}\n"
    )
}

/// How long a program may take to begin, and to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Between two looks.
const STEP: Duration = Duration::from_millis(50);
