//! The servers, each started fresh in its namespace, and checked before it is measured.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cell::{Cell, Pace};
use super::client::{self, Client};
use super::exchange::Exchange;
use super::setting::Setting;
use super::subject::Kind;
use super::{raw, topology};
use crate::bench::accounting::descendants;
use crate::bench::answer::Answer;
use crate::bench::child::{Child, SIGTERM};
use crate::bench::configuration::{self, Site};
use crate::bench::content;
use crate::bench::failure::{Failure, Result};
use crate::bench::patience::wait_for;

/// A server that answers.
#[derive(Debug)]
pub(super) struct Server<'a> {
    kind: Kind,
    child: Child<'a>,
    output: PathBuf,
    pub(super) address: SocketAddr,
    /// One answer's bytes with head; of raw frames none.
    pub(super) answer_bytes: usize,
    /// All its processes, master first.
    pub(super) pids: Vec<u32>,
}

const START_TIMEOUT: Duration = Duration::from_secs(10);
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a started server may take for its first answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Of a head, before any server has been asked.
const HEAD_BYTES: usize = 240;

/// The network that is only in the memory of two processes.
pub(super) const MEMIF_SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 1);
pub(super) const MEMIF_CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 2);

impl<'a> Server<'a> {
    pub(super) fn start(setting: Setting<'a>, cell: &Cell, kind: Kind) -> Result<Self> {
        let lab = setting.lab;
        let folder = lab.empty_folder("server")?;
        let address = match kind {
            Kind::Memif => MEMIF_SERVER,
            Kind::Nginx | Kind::Kernel | Kind::Xdp | Kind::Raw => topology::SERVER,
        };
        let address = SocketAddr::from((address, lab.free_port()?));
        let mut command = setting.topology.server().command();
        command.args(command_line(setting, cell, kind, &folder, address)?);
        command.current_dir(&folder);
        let output = folder.join("output.txt");
        let mut server = Self {
            kind,
            child: Child::start(&lab.caretaker, &mut command, &output)?,
            output,
            address,
            answer_bytes: 0,
            pids: Vec::new(),
        };
        server.answer_bytes = server.first_answer(setting, cell)?;
        server.pids = descendants(server.child.pid());
        Ok(server)
    }

    /// Whether it is still there, or how it ended and what it said.
    pub(super) fn check(&mut self) -> Result<()> {
        match self.child.ended() {
            None => Ok(()),
            Some(status) => {
                let (name, said) = (self.kind.name(), self.said());
                Err(Failure(format!("{name} ended with {status}: {said}")))
            }
        }
    }

    /// Ends it in order.
    pub(super) fn stop(mut self) -> Result<()> {
        self.check()?;
        let name = self.kind.name();
        match self.child.end(SIGTERM, END_TIMEOUT) {
            Some(_) => Ok(()),
            None => Err(Failure(format!("{name} did not end on SIGTERM"))),
        }
    }

    /// Waits for it, and says how many bytes an answer has.
    fn first_answer(&mut self, setting: Setting<'_>, cell: &Cell) -> Result<usize> {
        match self.kind {
            Kind::Raw => self.wait_until(|server| server.said().contains(raw::READY).then_some(0)),
            Kind::Memif => {
                let socket = setting.memif_socket();
                self.wait_until(|_| socket.exists().then_some(()))?;
                let told = client::ask_once(setting, cell, self, Client::LoadMemif)?;
                Ok(usize::try_from(told.bytes / told.requests.max(1)).unwrap_or(usize::MAX))
            }
            Kind::Nginx | Kind::Kernel | Kind::Xdp => {
                let address = self.address;
                let client = setting.topology.client();
                let answer = self.wait_until(|_| {
                    let answer = client.within(|| Answer::ask(address, ANSWER_TIMEOUT));
                    answer.ok()?.ok()
                })?;
                let expected = content::body(cell.body_bytes);
                if answer.status != 200 || answer.content != expected {
                    let name = self.kind.name();
                    let (status, bytes) = (answer.status, answer.content.len());
                    return Err(Failure(format!(
                        "{name} answers with status {status} and {bytes} bytes that are not the file's"
                    )));
                }
                Ok(answer.wire_bytes)
            }
        }
    }

    fn wait_until<T>(&mut self, mut look: impl FnMut(&mut Self) -> Option<T>) -> Result<T> {
        let found = wait_for(START_TIMEOUT, || {
            let found = look(self).map(Ok);
            found.or_else(|| self.check().err().map(Err))
        });
        found.unwrap_or_else(|| {
            let (name, said) = (self.kind.name(), self.said());
            Err(Failure(format!("{name} does not answer: {said}")))
        })
    }

    /// The end of what it has written to its standard streams, in one line.
    fn said(&self) -> String {
        let text = fs::read_to_string(&self.output).unwrap_or_default();
        let lines: Vec<&str> = text.trim().lines().collect();
        let last = lines.get(lines.len().saturating_sub(3)..);
        last.unwrap_or_default().join("; ")
    }
}

/// The program and its arguments.
fn command_line(
    setting: Setting<'_>,
    cell: &Cell,
    kind: Kind,
    folder: &Path,
    address: SocketAddr,
) -> Result<Vec<String>> {
    let programs = setting.programs;
    let interface = setting.topology.server().interface;
    let mut line = Vec::new();
    let mut add = |words: &[&str]| line.extend(words.iter().map(|&word| word.to_owned()));
    if kind == Kind::Raw {
        let exchange = Exchange::of(cell, HEAD_BYTES).emit();
        add(&[&programs.xtask.display().to_string(), "bench"]);
        add(&[raw::ARGUMENT, "answer", interface, &exchange]);
        return Ok(line);
    }
    let site = Site {
        run: folder,
        content: &content::folder(setting.lab, cell.body_bytes)?,
        listen: address,
        cpu: setting.lab.server_cpu,
        requests_per_connection: cell.requests_per_connection().filter(|count| *count > 1),
        connections_max: cell.concurrency.max(CONNECTIONS_MIN) + CONNECTIONS_MORE,
        gzip: false,
        access_log: false,
    };
    let file = folder.join("nginx.conf");
    fs::write(&file, configuration::text(site)).map_err(Failure::during(file.display()))?;
    let start_log = folder.join("start.log").display().to_string();
    let files = ["-c", &file.display().to_string(), "-e", &start_log];
    let millstream = programs.millstream.display().to_string();
    match kind {
        Kind::Nginx => add(&[&programs.nginx.display().to_string()]),
        _ => add(&[&millstream, "serve"]),
    }
    add(&files);
    match kind {
        Kind::Xdp => add(&["--stack", &server_af_xdp(interface, cell)]),
        Kind::Memif => {
            let socket = setting.memif_socket();
            add(&[
                "--stack",
                &client::memif(&socket, "master", &[MEMIF_SERVER], cell),
            ]);
        }
        Kind::Nginx | Kind::Kernel | Kind::Raw => {}
    }
    Ok(line)
}

/// One that gets a share of its CPU has nothing to spin with.
fn server_af_xdp(interface: &str, cell: &Cell) -> String {
    if cell.pace == Pace::Overload {
        format!("af_xdp:{interface},polling=interrupt")
    } else {
        client::af_xdp(interface, cell)
    }
}

/// Of one worker: those that a cell asks for, and those of the block before that nobody has closed yet.
const CONNECTIONS_MIN: u32 = 16_384;
const CONNECTIONS_MORE: u32 = 1024;

/// Bytes of the head of an answer of the cell, as the server has answered.
pub(super) fn head_bytes(answer_bytes: usize, cell: &Cell) -> usize {
    answer_bytes
        .checked_sub(cell.body_bytes)
        .filter(|bytes| *bytes > 0)
        .unwrap_or(HEAD_BYTES)
}
