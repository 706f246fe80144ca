//! A server process with a directory of its own.

use crate::answer;
use crate::cases::Subject;
use crate::content::{self, Directory};
use crate::origin::Origin;
use std::fmt::Write;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Nginx,
    Millstream,
}

/// A running one, ended when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// Configuration, logs, pid file.
    pub(crate) out: PathBuf,
    /// The upstream servers behind it, if the subject has any.
    pub(crate) origins: Vec<Origin>,
    child: Child,
}

const NGINX: &str = "/usr/sbin/nginx";

/// The user of the servers when the tests run as root, which may read everything: the unprivileged account of Debian.
const NOBODY: u32 = 65534;

/// How often a server is asked whether it answers, and how long in between: 10 s in all.
const ASKS_MAX: u32 = 1000;
const ASK_INTERVAL: Duration = Duration::from_millis(10);

/// Another process may take a free port before the server does.
const STARTS_MAX: u32 = 5;

impl Server {
    /// Starts a program for a subject; its own directory is `out`.
    pub(crate) fn start(program: Program, subject: &Subject, root: &Path, out: &Path) -> Self {
        if program == Program::Nginx && !Path::new(NGINX).exists() {
            panic!("{NGINX} is not installed. Install it: apt-get install nginx-core");
        }
        for _ in 0..STARTS_MAX {
            if let Some(server) = Self::try_start(program, subject, root, out) {
                return server;
            }
        }
        let said = fs::read_to_string(out.join("stderr")).unwrap_or_default();
        panic!("{program:?} does not start for {}:\n{said}", subject.name);
    }

    fn try_start(program: Program, subject: &Subject, root: &Path, out: &Path) -> Option<Self> {
        fs::create_dir_all(out).unwrap();
        let port = free_port();
        let mut origins = Vec::new();
        if !subject.scripts.is_empty() {
            origins.extend([false, true].map(|is_second| {
                let mut scripts = subject.scripts_of(is_second);
                if program == Program::Nginx {
                    scripts.extend(subject.reference.clone());
                }
                Origin::start(scripts)
            }));
        }
        let mut text = configuration(subject);
        for (name, origin) in ["%ORIGIN%", "%SECOND%"].iter().zip(&origins) {
            text = text.replace(name, &format!("127.0.0.1:{}", origin.port));
        }
        let text = text
            .replace("%ROOT%", root.to_str().unwrap())
            .replace("%OUT%", out.to_str().unwrap())
            .replace("%PORT%", &port.to_string());
        fs::write(out.join("nginx.conf"), text).unwrap();
        let stderr = fs::File::create(out.join("stderr")).unwrap();
        let mut command = command_of(program, out);
        let conf = out.join("nginx.conf");
        command
            .arg("-p")
            .arg(out)
            .arg("-c")
            .arg(conf)
            .args(["-e", "error.log"]);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut server = Self {
            address,
            out: out.to_owned(),
            origins,
            child: child.unwrap(),
        };
        server.answers().then_some(server)
    }

    /// Removes names and ports that differ from those of another server's texts.
    pub(crate) fn without_names(&self, text: &str) -> String {
        let mut text = answer::without_names(text, self.address.port());
        for (index, origin) in self.origins.iter().enumerate() {
            text = text.replace(
                &format!(":{}", origin.port),
                &format!(":ORIGIN{}", index + 1),
            );
        }
        text
    }

    /// What its upstream servers have been asked since this was last called.
    pub(crate) fn take_seen(&self) -> String {
        let mut shown = String::new();
        for (index, origin) in self.origins.iter().enumerate() {
            for seen in origin.take_seen() {
                let _ = write!(shown, "origin {} was asked {seen}", index + 1);
            }
        }
        shown
    }

    /// Ends its connections to upstream servers, once they carry no request.
    pub(crate) fn close_connections(&self) {
        self.origins.iter().for_each(Origin::close_all);
    }

    /// Waits until it listens; false if it exited instead.
    fn answers(&mut self) -> bool {
        for _ in 0..ASKS_MAX {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            if TcpStream::connect(self.address).is_ok() {
                // Another process may have taken the port: then this server is about to exit.
                return self.child.try_wait().unwrap().is_none();
            }
            thread::park_timeout(ASK_INTERVAL);
        }
        false
    }

    /// Waits for a file of its directory, which it makes behind an answer. One that does not come shows in the answer to
    /// the next request.
    pub(crate) fn await_file(&self, path: &str) {
        for _ in 0..ASKS_MAX {
            if self.out.join(path).exists() {
                return;
            }
            thread::park_timeout(ASK_INTERVAL);
        }
    }

    /// Ends it by QUIT, so that its logs are complete.
    pub(crate) fn stop(&mut self) {
        let pid = self.child.id().to_string();
        let killed = Command::new("kill").args(["-QUIT", &pid]).status();
        assert!(killed.unwrap().success(), "kill -QUIT {pid}");
        for _ in 0..ASKS_MAX {
            if self.child.try_wait().unwrap().is_some() {
                return;
            }
            thread::park_timeout(ASK_INTERVAL);
        }
        panic!("the server for {} does not stop", self.out.display());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The same for both.
fn configuration(subject: &Subject) -> String {
    let temporary = ["proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|module| format!("{module}_temp_path %OUT%/{module};"))
        .join(" ");
    let server = subject.server.as_ref().map_or_else(String::new, |directives| {
        format!(
            "server {{\nlisten 127.0.0.1:%PORT%;\nserver_name localhost;\nroot %ROOT%;\n{directives}}}\n"
        )
    });
    format!(
        "daemon off;\nmaster_process off;\nworker_processes 1;\npid %OUT%/pid;\n\
         error_log %OUT%/error.log info;\nevents {{ worker_connections 64; }}\nhttp {{\n{TYPES}\
         client_body_temp_path %OUT%/body; {temporary}\n\
         access_log %OUT%/access.log;\n{}{server}}}\n",
        subject.http
    )
}

const TYPES: &str = "types { text/html html; text/plain txt; text/css css; application/json json; \
                     text/xml xml; image/png png; }\ndefault_type application/octet-stream;\n";

pub(crate) fn command_of(program: Program, out: &Path) -> Command {
    let binary = match program {
        Program::Nginx => Path::new(NGINX),
        Program::Millstream => millstream(),
    };
    // The files belong to the user of the tests.
    let mut command = if fs::metadata(out).unwrap().uid() == 0 {
        content::give(out, NOBODY);
        let nobody = NOBODY.to_string();
        let mut command = Command::new("setpriv");
        command
            .args([
                "--reuid",
                &nobody,
                "--regid",
                &nobody,
                "--clear-groups",
                "--",
            ])
            .arg(binary);
        command
    } else {
        Command::new(binary)
    };
    if program == Program::Millstream {
        command.arg("serve");
    }
    command
}

/// The binary under test, where all users may execute it.
fn millstream() -> &'static Path {
    static COPY: OnceLock<(Directory, PathBuf)> = OnceLock::new();
    let (_, path) = COPY.get_or_init(|| {
        let directory = Directory::new();
        let path = directory.path().join("millstream");
        fs::copy(env!("CARGO_BIN_EXE_millstream"), &path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        (directory, path)
    });
    path
}

/// A port that nothing uses now. It is below those that the kernel gives to outgoing connections, of which the tests
/// make many, and no other test of this process gets it.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_mul(97) + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = PORTS_START + u16::try_from(number % PORTS_COUNT).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

const PORTS_START: u16 = 12_000;
const PORTS_COUNT: u32 = 20_000;
