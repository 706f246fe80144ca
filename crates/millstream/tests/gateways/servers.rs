//! nginx and Millstream with one configuration, asked the same.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Nginx,
    Millstream,
}

impl Program {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Millstream => "millstream",
        }
    }

    /// Writes the configuration; `%DIR%` in the directives is the directory.
    pub(crate) fn configure(self, directory: &Path, directives: &str) -> PathBuf {
        let (dir, name) = (directory.display(), self.name());
        let directives = directives.replace("%DIR%", directory.to_str().unwrap());
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|module| format!("{module}_temp_path {dir}/{name}-{module};"))
            .join(" ");
        let text = format!(
            "daemon off; master_process off; pid {dir}/{name}.pid; error_log {dir}/{name}.log info;\n\
             events {{ worker_connections 64; }}\nhttp {{ {temporary}\naccess_log off;\n\
             server {{ listen unix:{dir}/{name}; root {dir}/www;\n{directives}\n}} }}\n"
        );
        let path = directory.join(format!("{name}.conf"));
        fs::write(&path, text).unwrap();
        path
    }
}

/// Both, as they run.
pub(crate) struct Servers {
    directory: PathBuf,
}

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(20);

impl Servers {
    pub(crate) fn new(directory: &Path) -> Self {
        let directory = directory.to_owned();
        Self { directory }
    }

    /// Both answer the request the same way: with this status, and this text somewhere.
    #[track_caller]
    pub(crate) fn compare(&self, head: &str, content: &str, status: &str, text: &str) {
        let nginx = self.ask(Program::Nginx, head, content);
        let millstream = self.ask(Program::Millstream, head, content);
        assert_eq!(millstream, nginx, "{head}");
        let expected = format!("HTTP/1.1 {status}");
        assert!(nginx.starts_with(&expected), "{head}: {nginx}");
        assert!(nginx.contains(text), "{head}: {nginx}");
    }

    /// The error log of both has a line with this text.
    #[track_caller]
    pub(crate) fn both_log(&self, text: &str) {
        for program in [Program::Nginx, Program::Millstream] {
            let path = self.directory.join(format!("{}.log", program.name()));
            let mut log = String::new();
            // Millstream's lines are written by a thread.
            for _ in 0..1000 {
                log = fs::read_to_string(&path).unwrap_or_default();
                if log.contains(text) {
                    break;
                }
                std::thread::park_timeout(Duration::from_millis(10));
            }
            assert!(log.contains(text), "{program:?}: {log}");
        }
    }

    /// The answer of one, without what may differ.
    pub(crate) fn ask(&self, program: Program, head: &str, content: &str) -> String {
        let mut stream = UnixStream::connect(self.directory.join(program.name())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!("{head}Host: a\r\nConnection: close\r\n\r\n{content}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        comparable(&String::from_utf8_lossy(&answer))
    }
}

/// An answer without what may differ: the date, the server's name, how the content is cut into chunks; and
/// `Accept-Ranges`, which nginx adds to values of memcached.
fn comparable(answer: &str) -> String {
    let (head, content) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let is_page = content.contains("<center>");
    let differs = |line: &str| {
        let own = ["Date: ", "Server: ", "Accept-Ranges: "];
        own.iter().any(|name| line.starts_with(name))
            || is_page && line.starts_with("Content-Length: ")
    };
    let lines = head.split("\r\n").filter(|line| !differs(line));
    let mut lines = lines.collect::<Vec<_>>();
    if let Some((_, fields)) = lines.split_first_mut() {
        // Only the order of lines with equal names means something (RFC 9110 5.3).
        fields.sort_by_key(|line| line.split(':').next());
    }
    let lines = lines.join("\n");
    let content = match head.contains("Transfer-Encoding: chunked") {
        true => without_chunks(content),
        false => content.to_owned(),
    };
    let product = concat!("millstream/", env!("CARGO_PKG_VERSION"));
    let content = content.replace(product, "SERVER");
    let content = content.replace("nginx/1.22.1", "SERVER");
    format!("{lines}\n\n{content}")
}

fn without_chunks(mut rest: &str) -> String {
    let mut content = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            content.push_str("(end)");
            break;
        }
        content.push_str(&after[..size]);
        rest = after[size..].strip_prefix("\r\n").unwrap();
    }
    content
}
