//! Further programs on a device that a keeper has: `millstream run` for a second time with the same interface.
//!
//! The keeper listens at a name that follows from the device. It is an abstract one, so that each network namespace has its own, as it
//! has its own interfaces, and so that nothing is left when the keeper ends (unix(7)).
//!
//! ```text
//! millstream run            keeper of the first program
//!   │ connects to the name      │
//!   ├─ program, --stack ───────▶│ is the user root, or the keeper's own? Is the device described in the same way?
//!   │◀─ words, socket ──────────┤
//!   ╵ becomes the program       ╵ has one more to answer (keeper.rs)
//! ```
//!
//! What concerns the device holds for all of its programs: addresses, queues, rings, ports. Everything else in `--stack`, such as polling and
//! options of TCP, is each program's own.

use mill_device::specification::Specification;
use mill_device::specification::device::Device;
use mill_sys::{account, descriptor, passing, seqpacket};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Where further programs ask.
#[derive(Debug)]
pub(crate) struct Door(OwnedFd);

/// A program that asks.
#[derive(Debug)]
pub(crate) struct Visitor {
    connection: OwnedFd,
    pub(crate) program: String,
    /// The text of its `--stack`.
    pub(crate) stack: String,
}

/// What became of asking.
#[derive(Debug)]
pub(crate) enum Joined {
    /// The socket to the keeper, and what the program gets, in words.
    Yes(OwnedFd, String),
    /// No keeper has the device.
    NoKeeper,
    /// The keeper has ended meanwhile, and in a moment it has released the device; or many ask it.
    IsEnding,
    /// A sentence.
    Refused(String),
}

impl Door {
    /// `None` if another process has the name, or the device's name is too long for it: then no further program can join.
    pub(crate) fn open(specification: &Specification) -> Option<Self> {
        let listener = seqpacket::listen(&name(specification), BACKLOG).ok()?;
        Some(Self(listener))
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The next one; `None` if there is none that may ask.
    pub(crate) fn accept(&self) -> Option<Visitor> {
        let connection = seqpacket::accept(self.0.as_fd()).ok()?;
        if !is_trusted(connection.as_fd()) {
            return None;
        }
        let request = receive(connection.as_fd(), REQUEST_PATIENCE).ok()?.0;
        let (program, stack) = request.split_once(SEPARATOR)?;
        Some(Visitor {
            program: program.to_owned(),
            stack: stack.to_owned(),
            connection,
        })
    }
}

impl Visitor {
    /// Gives it the socket with which it asks for stacks. `false` if it is gone.
    pub(crate) fn admit(&self, socket: BorrowedFd<'_>, words: &str) -> bool {
        passing::send(self.connection.as_fd(), words.as_bytes(), &[socket]).is_ok()
    }

    pub(crate) fn refuse(&self, why: &str) {
        // One that is gone needs no answer.
        let _ = passing::send(self.connection.as_fd(), why.as_bytes(), &[]);
    }
}

/// Whether there is a keeper to ask.
pub(crate) fn has_keeper(specification: &Specification) -> bool {
    let connection = seqpacket::connect(&name(specification));
    connection.is_ok_and(|connection| is_trusted(connection.as_fd()))
}

/// Asks the keeper that has the device, if there is one.
pub(crate) fn join(program: &str, stack: &str, specification: &Specification) -> Joined {
    let connection = match seqpacket::connect(&name(specification)) {
        Ok(connection) => connection,
        // Many are waiting.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Joined::IsEnding,
        Err(_) => return Joined::NoKeeper,
    };
    // Any user can take an abstract name.
    if !is_trusted(connection.as_fd()) {
        return Joined::NoKeeper;
    }
    let request = format!("{program}{SEPARATOR}{stack}");
    let asked = passing::send(connection.as_fd(), request.as_bytes(), &[]);
    match asked.and_then(|()| receive(connection.as_fd(), ANSWER_PATIENCE)) {
        Ok((words, descriptors)) => match descriptors.into_iter().next() {
            Some(socket) => Joined::Yes(socket, words),
            None if words.is_empty() => Joined::IsEnding,
            None => Joined::Refused(words),
        },
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Joined::Refused(format!(
            "the keeper of another \"millstream run\" has {} and does not answer",
            specification.device
        )),
        Err(_) => Joined::IsEnding,
    }
}

/// Of a device. The two ends of a memif are two.
fn name(specification: &Specification) -> Vec<u8> {
    let device = &specification.device;
    let end = match (device, &specification.memif) {
        (Device::Memif { .. }, memif) => format!("/{:?}/{}", memif.role, memif.id),
        _ => String::new(),
    };
    format!("\0millstream-keeper/{}:{device}{end}", device.kind()).into_bytes()
}

/// Whether the other end is root's, or of this process's user.
fn is_trusted(connection: BorrowedFd<'_>) -> bool {
    let peer = seqpacket::peer(connection);
    peer.is_ok_and(|peer| peer.user == ROOT || peer.user == account::own_user())
}

/// A datagram, whose sender has this much time.
fn receive(connection: BorrowedFd<'_>, patience: Duration) -> io::Result<(String, Vec<OwnedFd>)> {
    let ready = descriptor::wait_readable(&[connection], Some(patience))?;
    if ready.first() != Some(&true) {
        return Err(io::Error::from(io::ErrorKind::TimedOut));
    }
    let mut text = vec![0; TEXT_MAX];
    let (len, descriptors) = passing::receive(connection, &mut text)?;
    text.truncate(len);
    Ok((String::from_utf8_lossy(&text).into_owned(), descriptors))
}

/// Between the parts of a request: no argument of a program has one.
const SEPARATOR: char = '\0';

/// Bytes of a request or an answer.
const TEXT_MAX: usize = 16 * 1024;

/// How many may wait at the name.
const BACKLOG: u16 = 64;

/// How long the keeper, which serves others meanwhile, waits for a request that follows on the connection at once.
const REQUEST_PATIENCE: Duration = Duration::from_millis(100);

/// How long a program waits for the keeper.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

const ROOT: u32 = 0;
