//! Messages between processes, as datagrams: a version, a kind, what is said of a process, and descriptors.

use super::{ProcessNumber, Way};
use crate::relay::FarEnd;
use mill_sys::passing;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What arrives in a channel.
#[derive(Debug)]
pub(crate) enum Message {
    /// The device, and a way to its former owner, of this number and identity; so many more ways follow.
    Given {
        former: (ProcessNumber, u64),
        way: Way,
        ways: u32,
    },
    /// A way to a process that stands by, which the former owner had: its number and identity.
    Passed((ProcessNumber, u64), Box<Way>, OwnedFd),
    Welcome(Way),
    Leaving,
    /// The other process opens connections: frames for their ports have to come.
    OpenPorts,
    /// The peer is gone, or sent something unknown.
    End,
}

/// The next message of a channel; `None` if there is none yet.
pub(crate) fn next_message(channel: &OwnedFd) -> Option<Message> {
    let (said, mut descriptors) = match receive_message(channel) {
        Ok(Some(received)) => received,
        Ok(None) => return None,
        Err(_) => return Some(Message::End),
    };
    let way = |descriptors: Vec<OwnedFd>, is_makers_end| {
        let [memory, first, second] = <[OwnedFd; 3]>::try_from(descriptors).ok()?;
        let doorbells = [first, second];
        let far = FarEnd { memory, doorbells };
        Some(Way { far, is_makers_end })
    };
    let message = match said.kind {
        // The giver has made the relay, and the detail is a number.
        GIVEN => way(descriptors, false).map(|way| Message::Given {
            former: (said.number, said.identity),
            way,
            ways: said.detail,
        }),
        PASSED => descriptors.pop().and_then(|channel| {
            let way = Box::new(way(descriptors, said.detail == MAKERS_END)?);
            Some(Message::Passed((said.number, said.identity), way, channel))
        }),
        WELCOME => way(descriptors, false).map(Message::Welcome),
        LEAVING => Some(Message::Leaving),
        OPEN_PORTS => Some(Message::OpenPorts),
        _ => None,
    };
    Some(message.unwrap_or(Message::End))
}

/// The content of a memory file, whose sender left its offset at the end.
pub(super) fn connections_in(mut memory: File) -> io::Result<Vec<u8>> {
    memory.rewind()?;
    let mut connections = Vec::new();
    memory
        .take(WAITING_BYTES_MAX)
        .read_to_end(&mut connections)?;
    Ok(connections)
}

/// What a message says besides its descriptors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) kind: u8,
    /// Of the process that it is about, which is its sender but in PASSED.
    pub(super) number: ProcessNumber,
    pub(super) identity: u64,
    /// How many ways follow, which end of one it is, or whether the device is wanted for itself.
    pub(super) detail: u32,
}

impl Said {
    /// Of which nothing else has to be known.
    pub(super) const fn of(kind: u8) -> Self {
        Self {
            kind,
            number: 0,
            identity: 0,
            detail: 0,
        }
    }

    fn to_bytes(self) -> [u8; SAID_BYTES] {
        let mut bytes = [0; SAID_BYTES];
        bytes[0] = VERSION;
        bytes[1] = self.kind;
        bytes[4..8].copy_from_slice(&self.detail.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_ne_bytes());
        bytes[16..].copy_from_slice(&self.identity.to_ne_bytes());
        bytes
    }

    /// `None` of another version.
    fn of_bytes(bytes: &[u8; SAID_BYTES]) -> Option<Self> {
        let (words, _) = bytes.as_chunks::<8>();
        let [first, number, identity] = *<&[[u8; 8]; 3]>::try_from(words).ok()?;
        let [version, kind, _, _, detail @ ..] = first;
        (version == VERSION).then_some(Self {
            kind,
            number: u64::from_ne_bytes(number),
            identity: u64::from_ne_bytes(identity),
            detail: u32::from_ne_bytes(detail),
        })
    }
}

pub(super) fn send_message(
    to: &OwnedFd,
    said: Said,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    passing::send(to.as_fd(), &said.to_bytes(), descriptors)
}

/// `None` if nothing has arrived; an error at the end of the channel, and for what is no message of this version.
pub(super) fn receive_message(from: &OwnedFd) -> io::Result<Option<(Said, Vec<OwnedFd>)>> {
    let mut bytes = [0; SAID_BYTES];
    match passing::receive(from.as_fd(), &mut bytes) {
        Ok((SAID_BYTES, descriptors)) => match Said::of_bytes(&bytes) {
            Some(said) => Ok(Some((said, descriptors))),
            None => Err(io::Error::from(io::ErrorKind::InvalidData)),
        },
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Ok(_) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        Err(error) => Err(error),
    }
}

/// Version of the messages, of the relay's format, and of what is locked. A process of another version cannot take part.
pub(crate) const VERSION: u8 = 7;

// What a message is.
pub(super) const TAKE: u8 = 1;
pub(super) const JOIN: u8 = 2;
pub(super) const GIVEN: u8 = 3;
pub(super) const WELCOME: u8 = 4;
pub(super) const LEAVING: u8 = 5;
pub(super) const WAITING: u8 = 6;
pub(super) const OPEN_PORTS: u8 = 7;
pub(super) const TAKE_AHEAD: u8 = 8;
pub(super) const PASSED: u8 = 9;

/// Bytes of a message.
pub(super) const SAID_BYTES: usize = 24;

/// In `detail`: the end of the process that has made the relay.
pub(super) const MAKERS_END: u32 = 1;

/// In `detail` of a request: the device is to be this process's, also while others serve.
pub(super) const OWN_PART: u32 = 1;

/// Bytes of connections that are taken from one message.
const WAITING_BYTES_MAX: u64 = 256 << 20;
