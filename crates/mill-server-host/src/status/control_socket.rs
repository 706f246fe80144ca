//! Where the process in charge is asked: a socket that only its user and root may connect to.

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

/// The socket of this process, and who has come to it.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    listener: OwnedFd,
    file: Option<SocketFile>,
    /// Who has not asked anything yet.
    clients: Vec<Channel>,
}

/// The name of the socket, gone with this value.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// The process that made it: a child that has a copy leaves the file alone.
    process: u32,
}

/// Somebody's question.
#[derive(Debug)]
pub struct Question {
    pub(crate) client: Channel,
    pub(crate) request: Request,
    /// The request as it came, and what came with it, to be handed on.
    pub(crate) body: Vec<u8>,
    pub(crate) files: Vec<OwnedFd>,
}

impl ControlSocket {
    /// Opens the door of this process, and clears away those of processes that are no more.
    pub(crate) fn open() -> io::Result<Self> {
        Self::open_in(&socket_path::own_folder())
    }

    fn open_in(folder: &Path) -> io::Result<Self> {
        socket_path::make(folder)?;
        clear(folder);
        let process = std::process::id();
        let path = socket_path::socket_in(folder, process);
        // A socket refuses between bind(2) and listen(2), which others would take for the mark of the dead: it gets its name afterwards.
        let unlisted = path.with_extension("opening");
        // Of a process that had the same number, and was killed.
        let _ = fs::remove_file(&unlisted);
        let listener = seqpacket::listen(unlisted.as_os_str().as_bytes(), CLIENTS_MAX)?;
        // Nobody could reach it before: the folder is the user's alone.
        fs::set_permissions(&unlisted, Permissions::from_mode(0o600))?;
        fs::rename(&unlisted, &path)?;
        Ok(Self {
            listener,
            file: Some(SocketFile { path, process }),
            clients: Vec::new(),
        })
    }

    /// The name, for who outlives the thread that has the door.
    pub(crate) fn take_file(&mut self) -> Option<SocketFile> {
        self.file.take()
    }

    /// What is readable when there is something to do, in the order of [`Self::questions`].
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let clients = self.clients.iter().map(AsFd::as_fd);
        [self.listener.as_fd()].into_iter().chain(clients)
    }

    /// Lets in who waits, and takes what those ask whose descriptors were `ready`. Never waits.
    pub(crate) fn questions(&mut self, ready: &[bool]) -> Vec<Question> {
        let mut questions = Vec::new();
        let mut silent = Vec::new();
        let is_ready = |place: usize| ready.get(place + 1) == Some(&true);
        for (place, guest) in std::mem::take(&mut self.clients).into_iter().enumerate() {
            if is_ready(place) {
                questions.extend(question(guest));
            } else {
                silent.push(guest);
            }
        }
        self.clients = silent;
        if ready.first() == Some(&true) {
            self.let_in();
        }
        questions
    }

    fn let_in(&mut self) {
        while let Ok(guest) = seqpacket::accept(self.listener.as_fd()) {
            let user = seqpacket::peer(guest.as_fd()).map(|peer| peer.user);
            let Ok(guest) = Channel::of(guest) else {
                continue;
            };
            let is_welcome = matches!(user, Ok(user) if user == 0 || user == account::own_user());
            if !is_welcome {
                let what = "only root and the user that the server runs as may ask";
                let _ = guest.send(parcel::REFUSED, what.as_bytes(), &[]);
                continue;
            }
            // Whoever says nothing makes room for the others.
            if self.clients.len() >= usize::from(CLIENTS_MAX) {
                self.clients.remove(0);
            }
            self.clients.push(guest);
        }
    }
}

/// What somebody asks; who asks nonsense is told so.
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

/// Removes sockets that nobody listens at any more.
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
            // It may have been cleared away by hand.
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
            "who went away is forgotten"
        );
    }

    #[test]
    fn nonsense_is_refused() {
        let scratch = Directory::new();
        let mut control_socket = ControlSocket::open_in(&scratch.path("run/servers")).unwrap();
        let client = connect(&control_socket);
        client.send(parcel::QUESTION, b"{", &[]).unwrap();
        control_socket.questions(&ready(&control_socket));
        assert!(control_socket.questions(&ready(&control_socket)).is_empty());
        assert_eq!(client.receive().unwrap().unwrap().kind, parcel::REFUSED);
    }

    #[test]
    fn who_says_nothing_makes_room() {
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
    fn a_door_that_is_being_opened_is_not_taken_for_a_dead_one() {
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
            // All stay open, so that none but one that is being opened could refuse.
            let doors: Vec<ControlSocket> = (0..DOORS)
                .map(|_| ControlSocket::open_in(&folder).unwrap())
                .collect();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(others.join().unwrap(), 0);
            drop(doors);
        });
    }

    /// As many as the usual limit of descriptors allows.
    const DOORS: usize = 500;

    #[test]
    fn sockets_of_the_dead_are_cleared_away_and_ones_own_goes_with_it() {
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
