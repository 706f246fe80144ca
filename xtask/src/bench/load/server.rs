//! The server that all clients ask: it answers always the same, on a CPU of its own.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::client::{CommandLine, Programs};
use crate::bench::accounting::descendants;
use crate::bench::answer::Answer;
use crate::bench::child::{Child, SIGTERM};
use crate::bench::content;
use crate::bench::failure::{Failure, Result};
use crate::bench::floor;
use crate::bench::lab::Lab;
use crate::bench::patience::wait_for;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `millstream load respond`.
    Respond,
    /// Parses nothing; see `bench/floor.rs`.
    Floor,
    /// Debian's nginx with a file.
    Nginx,
}

/// What the server gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) body_bytes: usize,
    /// As `millstream load respond --delay` reads it; the others have none.
    pub(super) delay: Option<String>,
}

/// A server that answers.
#[derive(Debug)]
pub(super) struct Server<'a> {
    child: Child<'a>,
    output: PathBuf,
    pub(super) port: u16,
    /// One answer's bytes with head.
    pub(super) answer_bytes: usize,
    pub(super) pids: Vec<u32>,
}

const START_TIMEOUT: Duration = Duration::from_secs(10);
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a started server may take for its first answer, a delay included.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The responder does not sleep in the last moment before an answer is due, so that a delay is what
/// was asked for to some microseconds.
const RESPOND_SPIN: &str = "100us";

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Respond, Self::Floor, Self::Nginx];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Respond => "respond",
            Self::Floor => "floor",
            Self::Nginx => "nginx",
        }
    }
}

impl Service {
    pub(super) const fn of_bytes(body_bytes: usize) -> Self {
        Self {
            body_bytes,
            delay: None,
        }
    }
}

impl<'a> Server<'a> {
    /// Starts a server. Its first answer is checked, except where that would begin the count of a
    /// stall, which is from the first request.
    pub(super) fn start(
        lab: &'a Lab,
        programs: &Programs,
        kind: Kind,
        service: &Service,
    ) -> Result<Self> {
        let folder = lab.empty_folder("server")?;
        let port = lab.free_port()?;
        let line = command_line(lab, programs, kind, service, port)?;
        let output = folder.join("output.txt");
        let mut command = Command::new("taskset");
        command
            .args(["-c", &lab.server_cpu.to_string()])
            .args(line.0)
            .current_dir(&folder);
        let mut child = Child::start(&lab.caretaker, &mut command, &output)?;
        let is_counting = service.delay.is_some();
        let answered = wait_for(START_TIMEOUT, || {
            let answer = if is_counting {
                listens(port).then_some(0)
            } else {
                let address = (Ipv4Addr::LOCALHOST, port).into();
                let answer = Answer::ask(address, ANSWER_TIMEOUT);
                answer.ok().map(|answer| answer.wire_bytes)
            };
            answer.map(Some).or_else(|| child.ended().map(|_| None))
        });
        let Some(Some(answer_bytes)) = answered else {
            let said = fs::read_to_string(&output).unwrap_or_default();
            let message = format!("{} does not answer: {}", kind.name(), said.trim());
            return Err(Failure(message));
        };
        let pids = descendants(child.pid());
        Ok(Self {
            child,
            output,
            port,
            answer_bytes,
            pids,
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}{}", self.port, content::target())
    }

    /// Ends it in order. Returns what it wrote to its standard streams.
    pub(super) fn stop(mut self) -> Result<String> {
        match self.child.end(SIGTERM, END_TIMEOUT) {
            Some(_) => Ok(fs::read_to_string(&self.output).unwrap_or_default()),
            None => Err(Failure("the server did not end on SIGTERM".to_owned())),
        }
    }
}

fn command_line(
    lab: &Lab,
    programs: &Programs,
    kind: Kind,
    service: &Service,
    port: u16,
) -> Result<CommandLine> {
    if kind != Kind::Respond && service.delay.is_some() {
        let message = "only \"millstream load respond\" has delays";
        return Err(Failure(message.to_owned()));
    }
    let absent = || Failure(format!("{} is not here", kind.name()));
    let Service { body_bytes, delay } = service;
    match kind {
        Kind::Respond => {
            let mut line = CommandLine::new(&programs.millstream);
            line.add(&format!(
                "load respond 127.0.0.1:{port} --bytes {body_bytes}"
            ));
            if let Some(delay) = delay {
                line.add(&format!("--spin {RESPOND_SPIN} --delay {delay}"));
            }
            Ok(line)
        }
        Kind::Floor => {
            let mut line = CommandLine::new(programs.floor.as_deref().ok_or_else(absent)?);
            let cpu = lab.server_cpu;
            line.add(&format!(
                "bench {} {port} {cpu} {body_bytes}",
                floor::ARGUMENT
            ));
            Ok(line)
        }
        Kind::Nginx => {
            let file = lab.file("server/nginx.conf");
            let run = lab.file("server");
            let served = content::folder(lab, *body_bytes)?;
            let text = nginx_configuration(&run.display(), &served.display(), port);
            fs::write(&file, text).map_err(Failure::during(file.display()))?;
            let mut line = CommandLine::new(programs.nginx.as_deref().ok_or_else(absent)?);
            line.add("-c").file(&file);
            Ok(line)
        }
    }
}

/// One worker and no logs, every connection kept as long as the client wants.
fn nginx_configuration(
    run: &dyn std::fmt::Display,
    served: &dyn std::fmt::Display,
    port: u16,
) -> String {
    format!(
        "daemon off;\nworker_processes 1;\npid {run}/pid;\nerror_log {run}/error.log crit;\n\
         events {{ worker_connections 16384; }}\n\
         http {{\n  access_log off;\n  sendfile on;\n  tcp_nopush on;\n  types {{ text/html html; }}\n  \
         keepalive_requests 1000000000;\n  open_file_cache max=10;\n  open_file_cache_valid 3600s;\n  \
         server {{ listen 127.0.0.1:{port} backlog=65535; root {served}; }}\n}}\n"
    )
}

fn listens(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}
