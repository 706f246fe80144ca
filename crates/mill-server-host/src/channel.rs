//! The socket between the master and the worker process: messages of any size with any number of descriptors.
//!
//! ```text
//! first datagram   kind u8 | in memory u8 | size of the body u32 | descriptors in all u32 | body
//! further ones     '+'                                          (253 descriptors each)
//! ```
//!
//! A body that is too large for a datagram travels as a file in memory, the first of the descriptors. Numbers are
//! little-endian.

use mill_sys::passing::{self, DESCRIPTORS_MAX};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// One end.
#[derive(Debug)]
pub struct Channel(OwnedFd);

/// A message that arrived.
#[derive(Debug)]
pub struct Parcel {
    /// The type of the message, one of [`crate::message`]'s numbers.
    pub kind: u8,
    pub body: Vec<u8>,
    pub descriptors: Vec<OwnedFd>,
}

impl Channel {
    /// Both ends.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (first, second) = passing::pair()?;
        passing::set_send_timeout(first.as_fd(), SEND_TIMEOUT)?;
        passing::set_send_timeout(second.as_fd(), SEND_TIMEOUT)?;
        Ok((Self(first), Self(second)))
    }

    /// An end that another process made.
    pub fn of(end: OwnedFd) -> io::Result<Self> {
        passing::set_send_timeout(end.as_fd(), SEND_TIMEOUT)?;
        Ok(Self(end))
    }

    /// Sends a message; the descriptors are duplicated on the way. Waits at most [`SEND_TIMEOUT`] for a reader that is
    /// behind; after an error the channel cannot be used any more.
    pub fn send(&self, kind: u8, body: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let memory = if body.len() > INLINE_MAX {
            let mut file = passing::memory_file(c"message")?;
            file.write_all(body)?;
            Some(file)
        } else {
            None
        };
        let mut all: Vec<BorrowedFd<'_>> = memory.iter().map(AsFd::as_fd).collect();
        all.extend_from_slice(descriptors);
        let mut datagram = vec![kind, u8::from(memory.is_some())];
        datagram.extend_from_slice(&count(body.len())?);
        datagram.extend_from_slice(&count(all.len())?);
        if memory.is_none() {
            datagram.extend_from_slice(body);
        }
        let (first, rest) = all.split_at(all.len().min(DESCRIPTORS_MAX));
        passing::send(self.0.as_fd(), &datagram, first)?;
        for chunk in rest.chunks(DESCRIPTORS_MAX) {
            passing::send(self.0.as_fd(), CONTINUATION, chunk)?;
        }
        Ok(())
    }

    /// The next message; waits for it. `None` when the other end is closed.
    pub fn receive(&self) -> io::Result<Option<Parcel>> {
        let mut buffer = vec![0; HEADER_SIZE + INLINE_MAX];
        let (len, mut descriptors) = passing::receive(self.0.as_fd(), &mut buffer)?;
        if len == 0 {
            return Ok(None);
        }
        buffer.truncate(len);
        let Some((&[kind, in_memory, s0, s1, s2, s3, d0, d1, d2, d3], inline)) =
            buffer.split_first_chunk::<HEADER_SIZE>()
        else {
            return Err(invalid());
        };
        let size = u32::from_le_bytes([s0, s1, s2, s3]) as usize;
        let total = u32::from_le_bytes([d0, d1, d2, d3]) as usize;
        while descriptors.len() < total {
            let (len, more) = passing::receive(self.0.as_fd(), &mut [0; CONTINUATION.len()])?;
            if len == 0 || more.is_empty() {
                return Err(invalid());
            }
            descriptors.extend(more);
        }
        let body = if in_memory == 0 {
            inline.to_vec()
        } else if descriptors.is_empty() {
            return Err(invalid());
        } else {
            read_whole(File::from(descriptors.remove(0)))?
        };
        if body.len() != size {
            return Err(invalid());
        }
        Ok(Some(Parcel {
            kind,
            body,
            descriptors,
        }))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn read_whole(mut file: File) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut body)?;
    Ok(body)
}

fn count(number: usize) -> io::Result<[u8; 4]> {
    let number = u32::try_from(number).map_err(|_| invalid())?;
    Ok(number.to_le_bytes())
}

fn invalid() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidData)
}

/// How long a sender waits for a peer that does not read. A thread of the worker process does nothing but read, so only
/// a stopped process takes that long.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(5);

const HEADER_SIZE: usize = 10;

/// Bytes of a body that go into the datagram itself; far below the kernel's default socket buffer (212 992).
const INLINE_MAX: usize = 16 * 1024;

/// The content of a datagram that only carries more descriptors.
const CONTINUATION: &[u8; 1] = b"+";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body_len: usize, descriptors: usize) {
        let (master, worker) = Channel::pair().unwrap();
        let body: Vec<u8> = (0..=250).cycle().take(body_len).collect();
        let file = passing::memory_file(c"test").unwrap();
        let borrowed = vec![file.as_fd(); descriptors];
        master.send(7, &body, &borrowed).unwrap();
        master.send(8, b"next", &[]).unwrap();
        let parcel = worker.receive().unwrap().unwrap();
        assert_eq!((parcel.kind, parcel.descriptors.len()), (7, descriptors));
        assert!(parcel.body == body, "{body_len} bytes");
        assert_eq!(worker.receive().unwrap().unwrap().body, b"next");
    }

    #[test]
    fn messages_of_any_size_arrive() {
        for body_len in [0, 1, INLINE_MAX, INLINE_MAX + 1, 3_000_000] {
            check(body_len, 0);
        }
    }

    #[test]
    fn any_number_of_descriptors_arrives() {
        for descriptors in [
            1,
            DESCRIPTORS_MAX - 1,
            DESCRIPTORS_MAX,
            DESCRIPTORS_MAX + 1,
            600,
        ] {
            check(5, descriptors);
            check(INLINE_MAX + 1, descriptors);
        }
    }

    #[test]
    fn a_closed_peer_is_the_end() {
        let (master, worker) = Channel::pair().unwrap();
        master.send(1, b"last", &[]).unwrap();
        drop(master);
        assert!(worker.receive().unwrap().is_some());
        assert!(worker.receive().unwrap().is_none());
    }

    #[test]
    fn malformed_datagrams_are_an_error() {
        let (master, worker) = Channel::pair().unwrap();
        for datagram in [
            &b"x"[..],
            b"\x01\x00\x05\x00\x00\x00\x00\x00\x00\x00abc",
            b"\x01\x01\0\0\0\0\0\0\0\0",
        ] {
            passing::send(master.as_fd(), datagram, &[]).unwrap();
            assert!(worker.receive().is_err());
        }
    }
}
