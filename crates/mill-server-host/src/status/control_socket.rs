//! The control socket of the process in charge: only its user and root may connect.

use super::{parcel, socket_path};
use crate::channel::{Channel, Parcel};
use mill_status::Request;
use mill_sys::{account, seqpacket};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The socket of this process, and its clients.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    listener: OwnedFd,
    file: Option<SocketFile>,
    /// Clients that have not sent their question yet.
    clients: Vec<Channel>,
}

/// The socket's file, removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// The process that made it: a forked child that has a copy does not remove the file.
    process: u32,
}

/// A client's question.
#[derive(Debug)]
pub struct Question {
    pub(crate) client: Channel,
    pub(crate) request: Request,
    /// The request as received, and the descriptor that came with it, to be passed on.
    pub(crate) body: Vec<u8>,
    pub(crate) files: Vec<OwnedFd>,
}

impl ControlSocket {
    /// Opens the socket of this process, and removes those of processes that have ended.
    pub(crate) fn open() -> io::Result<Self> {
        Self::open_in(&socket_path::own_folder())
    }

    fn open_in(folder: &Path) -> io::Result<Self> {
        socket_path::make(folder)?;
        clear(folder);
        let process = std::process::id();
        let path = socket_path::socket_in(folder, process);
        // Between bind(2) and listen(2) a socket refuses connections, which other processes would take for the sign of
        // a dead server: it is renamed to its name afterwards.
        let unlisted = path.with_extension("opening");
        // Left by a killed process that had the same number.
        let _ = fs::remove_file(&unlisted);
        let listener = seqpacket::listen(unlisted.as_os_str().as_bytes(), CLIENTS_MAX)?;
        // No other user could reach it before: the folder is this user's alone.
        fs::set_permissions(&unlisted, Permissions::from_mode(0o600))?;
        fs::rename(&unlisted, &path)?;
        Ok(Self {
            listener,
            file: Some(SocketFile { path, process }),
            clients: Vec::new(),
        })
    }

    /// The socket's file, to be kept longer than by the thread that has the socket.
    pub(crate) fn take_file(&mut self) -> Option<SocketFile> {
        self.file.take()
    }

    /// The descriptors to wait for, in the order of [`Self::questions`].
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let clients = self.clients.iter().map(AsFd::as_fd);
        [self.listener.as_fd()].into_iter().chain(clients)
    }

    /// Accepts waiting clients, and reads the questions of those whose descriptors are `ready`. Never waits.
    pub(crate) fn questions(&mut self, ready: &[bool]) -> Vec<Question> {
        let mut questions = Vec::new();
        let mut silent = Vec::new();
        let is_ready = |place: usize| ready.get(place + 1) == Some(&true);
        for (place, client) in std::mem::take(&mut self.clients).into_iter().enumerate() {
            if is_ready(place) {
                questions.extend(question(client));
            } else {
                silent.push(client);
            }
        }
        self.clients = silent;
        if ready.first() == Some(&true) {
            self.let_in();
        }
        questions
    }

    fn let_in(&mut self) {
        while let Ok(client) = seqpacket::accept(self.listener.as_fd()) {
            let user = seqpacket::peer(client.as_fd()).map(|peer| peer.user);
            let Ok(client) = Channel::of(client) else {
                continue;
            };
            let is_welcome = matches!(user, Ok(user) if user == 0 || user == account::own_user());
            if !is_welcome {
                let what = "only root and the user that the server runs as may ask";
                let _ = client.send(parcel::REFUSED, what.as_bytes(), &[]);
                continue;
            }
            // The oldest client without a question makes room.
            if self.clients.len() >= usize::from(CLIENTS_MAX) {
                self.clients.remove(0);
            }
            self.clients.push(client);
        }
    }
}

/// A client's question; a malformed one is refused with a message.
fn question(client: Channel) -> Option<Question> {
    let Parcel {
        kind,
        body,
        descriptors,
    } = client.receive().ok()??;
    let request = (kind == parcel::QUESTION)
        .then(|| serde_json::from_slice(&body))
        .and_then(Result::ok);
    let Some(request) = request else {
        let what = "the question is not understood: is it of another version?";
        let _ = client.send(parcel::REFUSED, what.as_bytes(), &[]);
        return None;
    };
    Some(Question {
        client,
        request,
        body,
        files: descriptors,
    })
}

/// Removes sockets that no process listens at any more.
pub(crate) fn clear(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if socket_path::process_of(&path).is_some() && is_dead(&path) {
            let _ = fs::remove_file(&path);
        }
    }
}

fn is_dead(socket: &Path) -> bool {
    let connected = seqpacket::connect(socket.as_os_str().as_bytes());
    matches!(connected, Err(error) if error.kind() == io::ErrorKind::ConnectionRefused)
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if std::process::id() == self.process {
            // A user may have removed it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Connections that may wait, and that may be open without a question.
const CLIENTS_MAX: u16 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Directory;
    use mill_sys::descriptor::wait_readable;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn ready(control_socket: &ControlSocket) -> Vec<bool> {
        let descriptors: Vec<_> = control_socket.descriptors().collect();
        wait_readable(&descriptors, None).unwrap()
    }

    fn path_of(control_socket: &ControlSocket) -> &Path {
        &control_socket.file.as_ref().unwrap().path
    }

    fn connect(control_socket: &ControlSocket) -> Channel {
        Channel::of(seqpacket::connect(path_of(control_socket).as_os_str().as_bytes()).unwrap())
            .unwrap()
    }

    #[test]
    fn a_question_arrives_with_what_it_brings() {
        let scratch = Directory::new();
        let mut control_socket = ControlSocket::open_in(&scratch.path("run/servers")).unwrap();
        let mode = path_of(&control_socket)
            .metadata()
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let client = connect(&control_socket);
        let request = Request {
            limit: 7,
            ..Default::default()
        };
        let body = serde_json::to_vec(&request).unwrap();
        let file = mill_sys::passing::memory_file(c"test").unwrap();
        client
            .send(parcel::QUESTION, &body, &[file.as_fd()])
            .unwrap();
        let silent = connect(&control_socket);
        assert!(
            control_socket.questions(&ready(&control_socket)).is_empty(),
            "both come in"
        );
        let questions = control_socket.questions(&ready(&control_socket));
        let [question] = questions.as_slice() else {
            panic!("{questions:?}");
        };
        assert_eq!(question.request, request);
        assert_eq!((&question.body, question.files.len()), (&body, 1));
        question.client.send(parcel::STATUS, b"x", &[]).unwrap();
        assert_eq!(client.receive().unwrap().unwrap().body, b"x");
        assert_eq!(control_socket.clients.len(), 1);
        drop(silent);
        assert!(control_socket.questions(&ready(&control_socket)).is_empty());
        assert_eq!(
            control_socket.clients.len(),
            0,
            "a disconnected client is removed"
        );
    }

    #[test]
    fn a_malformed_question_is_refused() {
        let scratch = Directory::new();
        let mut control_socket = ControlSocket::open_in(&scratch.path("run/servers")).unwrap();
        let client = connect(&control_socket);
        client.send(parcel::QUESTION, b"{", &[]).unwrap();
        control_socket.questions(&ready(&control_socket));
        assert!(control_socket.questions(&ready(&control_socket)).is_empty());
        assert_eq!(client.receive().unwrap().unwrap().kind, parcel::REFUSED);
    }

    #[test]
    fn a_client_without_a_question_makes_room() {
        let scratch = Directory::new();
        let mut control_socket = ControlSocket::open_in(&scratch.path("run/servers")).unwrap();
        let mut clients = Vec::new();
        for _ in 0..2 {
            clients.extend((0..CLIENTS_MAX).map(|_| connect(&control_socket)));
            control_socket.questions(&ready(&control_socket));
            assert_eq!(control_socket.clients.len(), usize::from(CLIENTS_MAX));
        }
    }

    #[test]
    fn a_socket_that_is_being_opened_is_not_taken_for_a_dead_one() {
        let scratch = Directory::new();
        let folder = scratch.path("run/servers");
        socket_path::make(&folder).unwrap();
        let path = socket_path::socket_in(&folder, std::process::id());
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let others = scope.spawn(|| {
                let mut taken_for_dead = 0_u32;
                while !is_over.load(Ordering::Relaxed) {
                    taken_for_dead += u32::from(is_dead(&path));
                }
                taken_for_dead
            });
            // All stay open, so that only one that is being opened could refuse.
            let sockets: Vec<ControlSocket> = (0..SOCKETS)
                .map(|_| ControlSocket::open_in(&folder).unwrap())
                .collect();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(others.join().unwrap(), 0);
            drop(sockets);
        });
    }

    /// As many as the usual limit of descriptors allows.
    const SOCKETS: usize = 500;

    #[test]
    fn sockets_of_dead_processes_are_removed_and_the_own_one_with_its_process() {
        let scratch = Directory::new();
        let folder = scratch.path("run/servers");
        socket_path::make(&folder).unwrap();
        let dead = socket_path::socket_in(&folder, 1);
        drop(seqpacket::listen(dead.as_os_str().as_bytes(), 1).unwrap());
        let alive = socket_path::socket_in(&folder, 2);
        let _listener = seqpacket::listen(alive.as_os_str().as_bytes(), 1).unwrap();
        let control_socket = ControlSocket::open_in(&folder).unwrap();
        assert!(!dead.exists() && alive.exists());
        let path = path_of(&control_socket).to_owned();
        assert!(path.exists());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "the living only");
        drop(control_socket);
        assert!(!path.exists());
    }
}
