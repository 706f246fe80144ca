//! The status client: finds a server, waits for its answers, and reads its shared memory if there are none.

use super::{board, control_socket, parcel, socket_path};
use crate::channel::Channel;
use crate::pid_file::{Content, PidFile};
use mill_metrics::WorkerFigures;
use mill_status::document::{FORMAT, Server, Total, Worker};
use mill_status::verdict::Observed;
use mill_status::{Part, Request, State, Status};
use mill_sys::process::Pid;
use mill_sys::{clock, descriptor, seqpacket};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A server and its control socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub process: u32,
    socket: PathBuf,
}

/// A message that says why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusError(String);

/// All servers of this machine that this user may ask. Sockets without a listener are removed.
pub fn servers() -> Vec<Found> {
    let mut found = Vec::new();
    for folder in socket_path::folders() {
        control_socket::clear(&folder);
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        found.extend(entries.filter_map(|entry| {
            let socket = entry.path();
            let process = socket_path::process_of(&socket)?;
            Some(Found { process, socket })
        }));
    }
    found.sort_by_key(|found| found.process);
    found
}

/// The server that a word names: a process (its master's or worker's number), a pid file, or something that only one
/// server's status contains: its configuration file, its device, its interface.
pub fn find(word: &str) -> Result<Found, StatusError> {
    if let Ok(process) = word.parse() {
        return of_process(process);
    }
    if word.contains('/') && !word.contains(':') {
        let file = PidFile::new(word.as_bytes());
        match file.read() {
            Ok(Content::Process(pid)) => {
                return of_process(u32::try_from(pid.number()).unwrap_or(0));
            }
            // It may be a configuration file.
            Ok(Content::Invalid(_)) => {}
            Err(error) => return Err(error_of(format!("\"{word}\" can't be read: {error}"))),
        }
    }
    let mut named: Vec<Found> = servers()
        .into_iter()
        .filter(|found| {
            let status = ask_shortly(found);
            status.is_ok_and(|status| is_called(&status.server, word))
        })
        .collect();
    match (named.pop(), named.is_empty()) {
        (Some(found), true) => Ok(found),
        (Some(last), false) => {
            let all = named
                .iter()
                .chain([&last])
                .map(|found| found.process.to_string());
            let all: Vec<_> = all.collect();
            let all = all.join(", ");
            Err(error_of(format!(
                "\"{word}\" names several servers: processes {all}"
            )))
        }
        (None, _) => Err(error_of(format!(
            "no server is called \"{word}\"; \"millstream status\" lists all servers"
        ))),
    }
}

fn of_process(process: u32) -> Result<Found, StatusError> {
    let Some(pid) = i32::try_from(process).ok().and_then(Pid::new) else {
        return Err(error_of(format!("{process} is no number of a process")));
    };
    // A worker's number means its master.
    let parent = field_of_status(process, "PPid:").and_then(|parent| parent.parse().ok());
    let mut refused = None;
    for process in [Some(process), parent].into_iter().flatten() {
        for folder in socket_path::folders() {
            let socket = socket_path::socket_in(&folder, process);
            match fs::symlink_metadata(&socket) {
                Ok(_) => return Ok(Found { process, socket }),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refused = Some(()),
                Err(_) => {}
            }
        }
    }
    if pid
        .kill(0)
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound || is_gone(&error))
    {
        return Err(error_of(format!("there is no process {process}")));
    }
    let user = field_of_status(process, "Uid:");
    let own = mill_sys::account::own_user().to_string();
    if let Some(user) = user.filter(|user| *user != own && refused.is_some()) {
        return Err(error_of(format!(
            "process {process} runs as user {user}, and only that user and root may ask: try \"sudo\""
        )));
    }
    // A server that could not make its socket may still have its memory open.
    if boards_of(process).is_empty() {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        let name = name.trim_end();
        return Err(error_of(format!(
            "process {process} ({name}) is no server of Millstream's, or one without a status socket"
        )));
    }
    Ok(Found {
        process,
        socket: PathBuf::new(),
    })
}

/// ESRCH of asm-generic/errno-base.h.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(3)
}

/// Whether a word names a server.
fn is_called(server: &Server, word: &str) -> bool {
    let file_name = |path: &str| {
        Path::new(path)
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let stem = |path: &str| {
        Path::new(path)
            .file_stem()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let pid_file = server.pid_file.as_deref().unwrap_or_default();
    let stack = server.stack.as_deref().unwrap_or_default();
    let interface = stack.split_once(':').map_or("", |(_, rest)| rest);
    let word = Some(word.to_owned());
    [
        Some(server.configuration.clone()),
        file_name(&server.configuration),
        Some(pid_file.to_owned()),
        stem(pid_file),
        Some(stack.to_owned()),
        Some(interface.to_owned()),
        Some(server.program.clone()),
    ]
    .contains(&word)
}

/// Asks a server and all its workers, and merges the answers. Whatever does not answer in two seconds is read from its
/// shared memory. `file` is passed with the question.
pub fn ask(
    found: &Found,
    request: &Request,
    file: Option<BorrowedFd<'_>>,
) -> Result<Status, StatusError> {
    let asked_at = clock::monotonic();
    let mut status = match exchange(found, request, file) {
        Ok(status) => status,
        Err(Failed::Refused(what)) => return Err(error_of(what)),
        Err(Failed::Silent(why)) => from_memory(found.process, &why)?,
    };
    let waited = clock::monotonic().saturating_sub(asked_at);
    observe(&mut status, waited);
    Ok(status)
}

/// What a server knows without asking its workers.
pub fn ask_shortly(found: &Found) -> Result<Status, StatusError> {
    let asked =
        connect(found).and_then(|channel| first_answer(&channel, &Request::default(), None));
    match asked {
        Ok(status) => Ok(status),
        Err(Failed::Refused(what)) => Err(error_of(what)),
        Err(Failed::Silent(why)) => from_memory(found.process, &why),
    }
}

enum Failed {
    Refused(String),
    Silent(String),
}

fn connect(found: &Found) -> Result<Channel, Failed> {
    if found.socket.as_os_str().is_empty() {
        return Err(Failed::Silent(String::from("it has no status socket")));
    }
    match seqpacket::connect(found.socket.as_os_str().as_bytes()) {
        Ok(socket) => {
            // The file's name is no proof, so the kernel names the peer; 0 is a process of another PID namespace.
            let listening = seqpacket::peer(socket.as_fd()).map_or(0, |peer| peer.process);
            let process = found.process;
            if listening != 0 && u32::try_from(listening) != Ok(process) {
                return Err(Failed::Refused(format!(
                    "another process, {listening}, listens at the socket of process {process}"
                )));
            }
            Channel::of(socket).map_err(|error| Failed::Silent(format!("its socket: {error}")))
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let process = found.process;
            Err(Failed::Refused(format!(
                "process {process} belongs to another user: only that user and root may ask"
            )))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Failed::Silent(
            String::from("too many clients are asking already"),
        )),
        Err(error) => Err(Failed::Silent(format!("its socket: {error}"))),
    }
}

fn exchange(
    found: &Found,
    request: &Request,
    file: Option<BorrowedFd<'_>>,
) -> Result<Status, Failed> {
    let channel = connect(found)?;
    let asked_at = clock::monotonic();
    let mut status = first_answer(&channel, request, file)?;
    let until = asked_at
        + TIMEOUT
        + Duration::from_millis(request.capture.as_ref().map_or(0, |capture| capture.ms));
    let runs = |worker: &&Worker| worker.state != State::Ended;
    let expected = status.workers.iter().filter(runs).count();
    while status.parts.len() < expected {
        let left = until.saturating_sub(clock::monotonic());
        let Some((kind, body)) = next(&channel, left) else {
            break;
        };
        match kind {
            parcel::PART => {
                let part: Result<Part, _> = serde_json::from_slice(&body);
                status.parts.extend(part);
            }
            parcel::REFUSED => {
                status
                    .notes
                    .push(String::from_utf8_lossy(&body).into_owned());
                break;
            }
            _ => {}
        }
    }
    Ok(status)
}

fn first_answer(
    channel: &Channel,
    request: &Request,
    file: Option<BorrowedFd<'_>>,
) -> Result<Status, Failed> {
    let body = super::answer::encode(request);
    let files: Vec<_> = file.into_iter().collect();
    let sent = channel.send(parcel::QUESTION, &body, &files);
    sent.map_err(|error| Failed::Silent(format!("asking failed: {error}")))?;
    match next(channel, TIMEOUT) {
        Some((parcel::STATUS, body)) => serde_json::from_slice(&body).map_err(|error| {
            Failed::Refused(format!(
                "the answer is not understood: {error}; is it of another version?"
            ))
        }),
        Some((parcel::REFUSED, body)) => {
            Err(Failed::Refused(String::from_utf8_lossy(&body).into_owned()))
        }
        Some(_) => Err(Failed::Refused(String::from(
            "the answer is not understood",
        ))),
        None => {
            let seconds = TIMEOUT.as_secs();
            Err(Failed::Silent(format!(
                "it has not answered for {seconds} s"
            )))
        }
    }
}

/// The next parcel, if it comes in time.
fn next(channel: &Channel, timeout: Duration) -> Option<(u8, Vec<u8>)> {
    let ready = descriptor::wait_readable(&[channel.as_fd()], Some(timeout)).ok()?;
    if ready.first() != Some(&true) {
        return None;
    }
    let parcel = channel.receive().ok()??;
    Some((parcel.kind, parcel.body))
}

/// The status of a server that does not answer, read from its shared memory.
fn from_memory(process: u32, why: &str) -> Result<Status, StatusError> {
    let boards = boards_of(process);
    if boards.is_empty() {
        return Err(error_of(format!(
            "process {process} does not answer: {why}"
        )));
    }
    let now_ns = u64::try_from(clock::monotonic().as_nanos()).unwrap_or(u64::MAX);
    let workers: Vec<Worker> = boards
        .iter()
        .flat_map(|(process, workers)| workers.iter().map(move |worker| (*process, worker)))
        .map(|(process, shown)| Worker::new(process, shown, now_ns, Observed::default()))
        .collect();
    let letter = letter_of(process, process);
    let stopped = if matches!(letter, Some('T' | 't')) {
        ", since it is stopped"
    } else {
        ""
    };
    Ok(Status {
        format: FORMAT,
        server: Server {
            pid: process,
            program: String::from("millstream"),
            ..Server::default()
        },
        total: Total::of(&workers),
        workers,
        notes: vec![format!(
            "process {process} does not answer ({why}){stopped}: the following are its workers' last figures"
        )],
        ..Status::default()
    })
}

/// The boards that a process has open: the worker process of each, and the figures.
fn boards_of(process: u32) -> Vec<(u32, Vec<WorkerFigures>)> {
    let entries = fs::read_dir(format!("/proc/{process}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let target = format!("/memfd:{}", board::NAME);
    let boards = entries.filter(|entry| {
        let link = fs::read_link(entry.path()).unwrap_or_default();
        link.as_os_str().as_bytes().starts_with(target.as_bytes())
    });
    boards
        .filter_map(|entry| board::read(&File::open(entry.path()).ok()?))
        .collect()
}

/// Adds what the kernel reports about each worker, and judges the workers again, with the time that they took to
/// answer.
fn observe(status: &mut Status, waited: Duration) {
    // If the server did not answer, its workers were not asked either.
    let is_asked = status.notes.is_empty();
    for worker in &mut status.workers {
        let of_worker =
            |part: &&mut Part| (part.process, part.worker) == (worker.process, worker.worker);
        let fresh = status
            .parts
            .iter_mut()
            .find(of_worker)
            .and_then(|part| part.figures.take());
        if let Some(fresh) = fresh {
            *worker = *fresh;
        }
        if worker.state == State::Ended {
            continue;
        }
        let letter = letter_of(worker.process, worker.thread);
        worker.cpu_s = cpu_s_of(worker.process, worker.thread);
        let has_answered = status
            .parts
            .iter()
            .any(|part| (part.process, part.worker) == (worker.process, worker.worker));
        if !has_answered && is_asked {
            // It has finished no turn since the process in charge read its figures.
            worker.no_turn_s += waited.as_secs_f64();
        }
        match letter {
            Some('T' | 't') => worker.state = State::Stopped,
            Some('Z' | 'X') => worker.state = State::Ended,
            _ if !has_answered && is_asked => worker.state = State::Hangs,
            _ => {}
        }
    }
    status.total = Total::of(&status.workers);
}

/// The letter of a thread's state: the third field of /proc/PID/task/TID/stat, behind a name in parentheses.
fn letter_of(process: u32, thread: u32) -> Option<char> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.trim_start().chars().next()
}

/// CPU time of a thread: the first number of /proc/PID/task/TID/schedstat, in nanoseconds.
fn cpu_s_of(process: u32, thread: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
    let ns: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(ns).as_secs_f64())
}

/// The first word of a field of /proc/PID/status.
fn field_of_status(process: u32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next().map(str::to_owned)
}

fn error_of(what: String) -> StatusError {
    StatusError(what)
}

impl fmt::Display for StatusError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for StatusError {}

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_called_as_its_files_and_its_device_are() {
        let server = Server {
            program: String::from("millstream"),
            configuration: String::from("/etc/mill/site.conf"),
            pid_file: Some(String::from("/run/mill.pid")),
            stack: Some(String::from("af_xdp:eth0")),
            ..Server::default()
        };
        for word in [
            "site.conf",
            "/etc/mill/site.conf",
            "mill",
            "af_xdp:eth0",
            "eth0",
            "millstream",
        ] {
            assert!(is_called(&server, word), "{word}");
        }
        for word in ["site", "eth1", "nginx"] {
            assert!(!is_called(&server, word), "{word}");
        }
        assert!(!is_called(&Server::default(), "x"));
    }

    #[test]
    fn a_process_that_is_no_server_is_an_error() {
        // Not this process: other tests make boards here.
        let other = std::os::unix::process::parent_id();
        let error = find(&other.to_string()).unwrap_err().to_string();
        assert!(error.contains("is no server of Millstream's"), "{error}");
        let error = find("4194305").unwrap_err().to_string();
        assert_eq!(error, "there is no process 4194305");
        assert_eq!(
            find("0").unwrap_err().to_string(),
            "0 is no number of a process"
        );
        let error = find("no-such-server").unwrap_err().to_string();
        assert!(
            error.starts_with("no server is called \"no-such-server\""),
            "{error}"
        );
    }

    #[test]
    fn the_kernel_reports_on_threads() {
        let own = std::process::id();
        let thread = mill_sys::process::thread_id();
        assert_eq!(letter_of(own, thread), Some('R'));
        assert!(cpu_s_of(own, thread).is_some());
        assert_eq!(letter_of(own, 0), None);
    }
}
