//! What the workers of one end send each other, and a process the next one: datagrams with descriptors, over pairs of sockets
//! that are made with the device, so that all processes that may have it hold them.
//!
//! ```text
//! leader, which has the control channel       another worker
//!        ◀────────────────────────────  want             "I have no rings"
//!   up   ────────────────────────────▶                   an agreement: memory, rings, events
//!   up anew ─────────────────────────▶                   the same; the process before was killed
//!   nothing ─────────────────────────▶                   "there are no rings for you yet"
//!   down ────────────────────────────▶                   the connection of this number, and those before, are over
//!        ◀────────────────────────────  broken           the peer has violated the protocol in one of my rings
//!
//! leader of one process ── whole: the agreement and the control channel ──▶ leader of the next
//! ```
//!
//! Connections are numbered by the time at which they began, so that a later one has a greater number in any process.

use super::agreement::Agreement;
use mill_sys::passing;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A message.
#[derive(Debug)]
pub(super) enum Dispatch {
    Word(Word),
    /// To a worker that wants rings.
    Up {
        number: u64,
        agreement: Agreement,
        /// What waits in them is to be passed over.
        is_anew: bool,
    },
    /// A connection, with its control channel.
    Whole(Whole),
}

/// All of a connection.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(super) number: u64,
    pub(super) agreement: Agreement,
    pub(super) socket: OwnedFd,
}

/// A message without an agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Want,
    Nothing,
    Down(u64),
    Broken(u64),
}

impl Word {
    pub(super) fn send(self, to: BorrowedFd<'_>) -> io::Result<()> {
        let (kind, number) = match self {
            Self::Want => (WANT, 0),
            Self::Nothing => (NOTHING, 0),
            Self::Down(number) => (DOWN, number),
            Self::Broken(number) => (BROKEN, number),
        };
        passing::send(to, &head(kind, number), &[])
    }
}

/// Sends another worker an agreement; with `is_anew` it passes over what waits in its rings.
pub(super) fn send_up(
    to: BorrowedFd<'_>,
    (number, agreement): (u64, &Agreement),
    is_anew: bool,
) -> io::Result<()> {
    let (content, descriptors) = agreement.emit();
    let kind = if is_anew { UP_ANEW } else { UP };
    let bytes = [&head(kind, number)[..], &content].concat();
    passing::send(to, &bytes, &descriptors)
}

/// Leaves a connection to the next process.
pub(super) fn send_whole(
    to: BorrowedFd<'_>,
    (number, agreement): (u64, &Agreement),
    socket: BorrowedFd<'_>,
) -> io::Result<()> {
    let (content, mut descriptors) = agreement.emit();
    descriptors.push(socket);
    let bytes = [&head(WHOLE, number)[..], &content].concat();
    passing::send(to, &bytes, &descriptors)
}

/// The next message; `None` if there is none. Those that are not understood are passed over.
pub(super) fn receive(from: BorrowedFd<'_>) -> Option<Dispatch> {
    let mut buffer = vec![0; BYTES_MAX];
    loop {
        let (len, descriptors) = match passing::receive(from, &mut buffer) {
            Ok((0, _)) => return None,
            Ok(received) => received,
            // One that is too long is lost.
            Err(error) if error.raw_os_error() == Some(EMSGSIZE) => continue,
            Err(_) => return None,
        };
        let bytes = buffer.get(..len).unwrap_or_default();
        if let Some(dispatch) = parse(bytes, descriptors) {
            return Some(dispatch);
        }
    }
}

fn parse(bytes: &[u8], mut descriptors: Vec<OwnedFd>) -> Option<Dispatch> {
    let (head, content) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let [VERSION, kind, number @ ..] = *head else {
        return None;
    };
    let number = u64::from_ne_bytes(number);
    Some(match kind {
        WANT => Dispatch::Word(Word::Want),
        NOTHING => Dispatch::Word(Word::Nothing),
        UP | UP_ANEW => Dispatch::Up {
            number,
            agreement: Agreement::parse(content, descriptors)?,
            is_anew: kind == UP_ANEW,
        },
        DOWN => Dispatch::Word(Word::Down(number)),
        BROKEN => Dispatch::Word(Word::Broken(number)),
        WHOLE => {
            let socket = descriptors.pop()?;
            Dispatch::Whole(Whole {
                number,
                agreement: Agreement::parse(content, descriptors)?,
                socket,
            })
        }
        _ => return None,
    })
}

fn head(kind: u8, number: u64) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    let (first, rest) = head.split_at_mut(2);
    first.copy_from_slice(&[VERSION, kind]);
    rest.copy_from_slice(&number.to_ne_bytes());
    head
}

/// A pair of sockets for such messages.
pub(crate) fn pair() -> io::Result<[OwnedFd; 2]> {
    let (one, other) = passing::pair()?;
    for end in [&one, &other] {
        mill_sys::descriptor::set_nonblocking(end.as_fd(), true)?;
    }
    Ok([one, other])
}

/// Of these messages: binaries of two versions may meet.
const VERSION: u8 = 1;

/// Version, kind, and a connection's number.
const HEAD_BYTES: usize = 10;

/// A message with as many descriptors as one can have.
const BYTES_MAX: usize = HEAD_BYTES + 5 + passing::DESCRIPTORS_MAX * super::message::MESSAGE_BYTES;

// Kinds of messages.
const WANT: u8 = 1;
const UP: u8 = 2;
const DOWN: u8 = 3;
const BROKEN: u8 = 4;
const WHOLE: u8 = 5;
const NOTHING: u8 = 6;
const UP_ANEW: u8 = 7;

/// "Message too long" (asm-generic/errno-base.h).
const EMSGSIZE: i32 = 90;
