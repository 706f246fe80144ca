//! Messages between processes, as datagrams: a version, a kind, the number of the process that sends it, and descriptors.

use super::ProcessNumber;
use crate::relay::FarEnd;
use mill_sys::passing;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What arrives in a channel.
#[derive(Debug)]
pub(crate) enum Message {
    Given(FarEnd),
    Welcome(FarEnd),
    Leaving,
    /// A request of a process further down the chain, forwarded.
    Join(OwnedFd),
    /// The successor opens connections: frames for their ports have to come.
    OpenPorts,
    /// The peer is gone, or sent something unknown.
    End,
}

/// The next message of a channel; `None` if there is none yet.
pub(crate) fn next_message(channel: &OwnedFd) -> Option<Message> {
    let (kind, descriptors) = match receive_message(channel) {
        Ok(Some(received)) => received,
        Ok(None) => return None,
        Err(_) => return Some(Message::End),
    };
    let far_end = |descriptors: Vec<OwnedFd>| {
        let [memory, first, second] = <[OwnedFd; 3]>::try_from(descriptors).ok()?;
        let doorbells = [first, second];
        Some(FarEnd { memory, doorbells })
    };
    let message = match kind {
        GIVEN => far_end(descriptors).map(Message::Given),
        WELCOME => far_end(descriptors).map(Message::Welcome),
        LEAVING => Some(Message::Leaving),
        OPEN_PORTS => Some(Message::OpenPorts),
        JOIN => descriptors.into_iter().next().map(Message::Join),
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

pub(super) fn send_message(
    to: &OwnedFd,
    kind: u8,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    send_numbered(to, (kind, 0), descriptors)
}

pub(super) fn send_numbered(
    to: &OwnedFd,
    (kind, number): (u8, ProcessNumber),
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut bytes = [VERSION, kind, 0, 0, 0, 0, 0, 0, 0, 0];
    if let Some((_, room)) = bytes.split_last_chunk_mut() {
        *room = number.to_ne_bytes();
    }
    passing::send(to.as_fd(), &bytes, descriptors)
}

/// `None` if nothing has arrived; an error at the end of the channel, and for what is no message of this version.
pub(super) fn receive_message(from: &OwnedFd) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let received = receive_numbered(from)?;
    Ok(received.map(|(kind, _, descriptors)| (kind, descriptors)))
}

/// The same with the number of the process that has sent it, if it has said that.
pub(super) fn receive_numbered(
    from: &OwnedFd,
) -> io::Result<Option<(u8, ProcessNumber, Vec<OwnedFd>)>> {
    let mut bytes = [0; 10];
    match passing::receive(from.as_fd(), &mut bytes) {
        Ok((10, descriptors)) if bytes[0] == VERSION => {
            let number = bytes.last_chunk().copied().unwrap_or_default();
            let number = ProcessNumber::from_ne_bytes(number);
            Ok(Some((bytes[1], number, descriptors)))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Ok(_) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        Err(error) => Err(error),
    }
}

/// Version of the messages and of the relay's format. A process of another version cannot take part.
pub(crate) const VERSION: u8 = 5;

// What a message is.
pub(super) const TAKE: u8 = 1;
pub(super) const JOIN: u8 = 2;
pub(super) const GIVEN: u8 = 3;
pub(super) const WELCOME: u8 = 4;
pub(super) const LEAVING: u8 = 5;
pub(super) const WAITING: u8 = 6;
pub(super) const OPEN_PORTS: u8 = 7;
pub(super) const TAKE_AHEAD: u8 = 8;

/// Bytes of connections that are taken from one message.
const WAITING_BYTES_MAX: u64 = 256 << 20;
