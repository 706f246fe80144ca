//! The servers that are compared, each started fresh and checked before it is measured.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::case::{Case, Connections};
use super::client::Client;
use crate::bench::accounting::descendants;
use crate::bench::answer::Answer;
use crate::bench::child::{Child, SIGTERM};
use crate::bench::configuration::{Site, text};
use crate::bench::content::{self, body};
use crate::bench::failure::{Failure, Result};
use crate::bench::lab::Lab;
use crate::bench::patience::wait_for;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Nginx,
    Millstream,
    /// Parses nothing; see `bench/floor.rs`.
    Floor,
}

/// Where the servers' programs are.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) nginx: PathBuf,
    pub(super) millstream: PathBuf,
    /// This binary, optimised.
    pub(super) floor: Option<PathBuf>,
}

/// A server that answers.
#[derive(Debug)]
pub(super) struct Server<'a> {
    child: Child<'a>,
    pub(super) port: u16,
    /// One answer's bytes with head and framing.
    pub(super) answer_bytes: usize,
    output: PathBuf,
    /// All its processes, master first.
    pub(super) pids: Vec<u32>,
}

impl Subject {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Millstream => "millstream",
            Self::Floor => "floor",
        }
    }
}

impl Programs {
    pub(super) fn of(&self, subject: Subject) -> Result<&Path> {
        match subject {
            Subject::Nginx => Ok(&self.nginx),
            Subject::Millstream => Ok(&self.millstream),
            Subject::Floor => {
                let floor = self.floor.as_deref();
                floor.ok_or_else(|| Failure("the floor was not built".to_owned()))
            }
        }
    }
}

/// A server under valgrind takes this long to start on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a server may take for an orderly end: under valgrind it writes its sums then.
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// Of one worker; no case has more.
const CONNECTIONS_MAX: u32 = 16_384;

impl<'a> Server<'a> {
    /// Starts a server and checks one answer. `wrapper` is a program with its arguments that runs
    /// the server; empty for none.
    pub(super) fn start(
        lab: &'a Lab,
        programs: &Programs,
        subject: Subject,
        case: &Case,
        wrapper: &[String],
    ) -> Result<Self> {
        let folder = lab.empty_folder(subject.name())?;
        let port = lab.free_port()?;
        let mut arguments = wrapper.to_vec();
        arguments.extend(command_line(lab, programs, subject, case, &folder, port)?);
        let (program, arguments) = arguments
            .split_first()
            .expect("a command line begins with the program");
        let output = folder.join("output.txt");
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&folder);
        let mut child = Child::start(&lab.caretaker, &mut command, &output)?;
        let answer = wait_for(START_TIMEOUT, || {
            let answer = Client::connect(port, case).and_then(|mut client| client.ask());
            match answer {
                Ok(answer) => Some(Some(answer)),
                Err(_) => child.ended().map(|_| None),
            }
        });
        let Some(Some(answer)) = answer else {
            let said = fs::read_to_string(&output).unwrap_or_default();
            let message = format!("{} does not answer: {}", subject.name(), said.trim());
            return Err(Failure(message));
        };
        verify(lab, subject, case, &answer)?;
        let pids = descendants(child.pid());
        Ok(Self {
            child,
            port,
            output,
            answer_bytes: answer.wire_bytes,
            pids,
        })
    }

    /// Ends it in order. Returns what it wrote to its standard streams.
    pub(super) fn stop(mut self) -> Result<String> {
        match self.child.end(SIGTERM, END_TIMEOUT) {
            Some(_) => Ok(fs::read_to_string(&self.output).unwrap_or_default()),
            None => Err(Failure("the server did not end on SIGTERM".to_owned())),
        }
    }
}

/// The program and its arguments.
fn command_line(
    lab: &Lab,
    programs: &Programs,
    subject: Subject,
    case: &Case,
    folder: &Path,
    port: u16,
) -> Result<Vec<String>> {
    let program = programs.of(subject)?;
    let mut line = vec![program.display().to_string()];
    if subject == Subject::Floor {
        line.extend(["bench", crate::bench::floor::ARGUMENT].map(str::to_owned));
        line.extend([port.to_string(), lab.server_cpu.to_string()]);
        line.push(case.body_bytes.to_string());
        return Ok(line);
    }
    let site = Site {
        run: folder,
        content: &content::folder(lab, case.body_bytes)?,
        listen: (Ipv4Addr::LOCALHOST, port).into(),
        cpu: lab.server_cpu,
        requests_per_connection: match case.connections {
            Connections::OfRequests(count) => Some(count),
            Connections::KeepAlive | Connections::PerRequest => None,
        },
        connections_max: CONNECTIONS_MAX,
        gzip: case.gzip,
        access_log: case.access_log,
    };
    let configuration = folder.join("nginx.conf");
    fs::write(&configuration, text(site)).map_err(Failure::during(configuration.display()))?;
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    if !name.starts_with("nginx") {
        line.push("serve".to_owned());
    }
    line.push("-c".to_owned());
    line.push(configuration.display().to_string());
    line.push("-e".to_owned());
    line.push(folder.join("start.log").display().to_string());
    Ok(line)
}

/// The answer is what the file holds.
fn verify(lab: &Lab, subject: Subject, case: &Case, answer: &Answer) -> Result<()> {
    let wrong = |what: &str| {
        let name = subject.name();
        Err(Failure(format!("{name} answers {} with {what}", case.name)))
    };
    if answer.status != 200 {
        return wrong(&format!("status {}", answer.status));
    }
    if subject == Subject::Floor {
        return Ok(());
    }
    let expected = body(case.body_bytes);
    let content = if case.gzip {
        if answer.content == expected {
            return wrong("uncompressed content");
        }
        decompressed(lab, &answer.content)?
    } else {
        answer.content.clone()
    };
    if content != expected {
        return wrong(&format!("{} other bytes", content.len()));
    }
    Ok(())
}

fn decompressed(lab: &Lab, content: &[u8]) -> Result<Vec<u8>> {
    let path = lab.file("content.gz");
    fs::write(&path, content).map_err(Failure::during(path.display()))?;
    let file = File::open(&path).map_err(Failure::during(path.display()))?;
    let output = Command::new("gzip")
        .arg("-dc")
        .stdin(file)
        .stderr(Stdio::null())
        .output()
        .map_err(Failure::during("gzip"))?;
    Ok(output.stdout)
}
