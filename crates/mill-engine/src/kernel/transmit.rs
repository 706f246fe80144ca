//! One slot's socket: results of system calls, and sending the queue.

use super::outbound::{Chunk, Outbound, PIECES};
use super::slot::Slot;
use crate::files::KernelFile;
use mill_runtime::stream::StreamError;
use mill_sys::{file, socket};
use std::io::{self, IoSlice};
use std::os::fd::AsFd;

impl Slot {
    /// Updates the state after a receive into `space` bytes; returns the number of bytes received.
    pub(super) fn on_received(&mut self, received: io::Result<usize>, space: usize) -> usize {
        match received {
            Ok(0) => {
                self.flags.finished = true;
                self.flags.may_receive = false;
                0
            }
            Ok(count) => {
                // Less than there was room for: the socket is empty, and epoll will report new data.
                self.flags.may_receive = count == space || self.flags.fin_announced;
                count
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.flags.may_receive = false;
                0
            }
            Err(error) => {
                self.error = Some(stream_error(&error));
                self.flags.may_receive = false;
                0
            }
        }
    }

    /// Updates the state after a send of `offered` bytes; returns the number of bytes sent.
    pub(super) fn on_sent(&mut self, sent: io::Result<usize>, offered: u64) -> usize {
        match sent {
            Ok(count) => {
                self.sent += count as u64;
                self.flags.may_send = count as u64 == offered;
                count
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.flags.may_send = false;
                0
            }
            Err(error) => {
                self.error = Some(stream_error(&error));
                // Data that arrived before the error can still be received.
                self.flags.may_receive = !self.flags.finished;
                0
            }
        }
    }

    /// Updates the state after `sendfile` failed; nothing was sent. An error that is not the socket's is the file's,
    /// whose length was promised.
    fn on_file_failed(&mut self, failed: io::Result<usize>) -> u64 {
        self.on_sent(failed, 1);
        if matches!(self.error, Some(StreamError::Other(_))) {
            // A Unix socket has no RST; its peer sees the end of the stream.
            let _ = socket::set_reset_on_close(self.descriptor.as_fd());
        }
        0
    }

    /// A promised length cannot be delivered: the connection is reset.
    pub(super) fn truncate(&mut self) {
        self.error = Some(StreamError::Truncated);
        // A Unix socket has no RST; its peer sees the end of the stream.
        let _ = socket::set_reset_on_close(self.descriptor.as_fd());
    }

    /// Sends `gathered` and then the queue, until the socket is full or this turn's share is used up. The rest of
    /// `gathered` goes to the front of the queue.
    pub(super) fn send_queue(&mut self, gathered: &[u8]) {
        let Some(mut outbound) = self.outbound.take() else {
            return;
        };
        outbound.push_front_copy(gathered);
        let mut share = SHARE_PER_TURN;
        while share > 0 && self.flags.may_send && self.error.is_none() && !outbound.is_empty() {
            let sent = self.send_front(&outbound);
            outbound.advance(sent);
            share = share.saturating_sub(sent);
        }
        if self.error.is_some() {
            outbound.clear();
        }
        if outbound.is_empty() {
            self.set_corked(false);
        }
        self.outbound = Some(outbound);
    }

    /// While it is corked, `sendfile` fills packets whole; else each of its turns within the kernel, of as many pages as a pipe has, ends
    /// with a packet that is not full.
    fn set_corked(&mut self, on: bool) {
        if self.flags.corked != on && self.unix.is_none() {
            // Where it fails, packets are less full.
            let _ = socket::set_cork(self.descriptor.as_fd(), on);
            self.flags.corked = on;
        }
    }

    /// One call: a range of a file, or the memory at the front of the queue.
    fn send_front(&mut self, outbound: &Outbound) -> u64 {
        if let Some(Chunk::File { file, offset, len }) = outbound.front() {
            let count = usize::try_from((*len).min(SHARE_PER_TURN)).unwrap_or(usize::MAX);
            if *len >= CORKED_BYTES_MIN {
                self.set_corked(true);
            }
            let sent = socket::send_file(self.descriptor.as_fd(), file.as_fd(), *offset, count);
            let Ok(sent_count) = sent else {
                return self.on_file_failed(sent);
            };
            // A short send means that the socket is full, which epoll will report, or that the file has ended, which it
            // will not.
            let ended = || file_ends(file, offset.saturating_add(sent_count as u64));
            if sent_count == 0 || sent_count < count && ended() {
                self.truncate();
            }
            return self.on_sent(sent, count as u64) as u64;
        }
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let (count, more) = outbound.memory(&mut pieces);
        let pieces = pieces.get(..count).unwrap_or_default();
        self.send_pieces(pieces, more) as u64
    }

    /// One call for pieces of memory, with `more` to follow; returns the number of bytes sent.
    pub(super) fn send_pieces(&mut self, pieces: &[IoSlice<'_>], more: bool) -> usize {
        let offered: usize = pieces.iter().map(|piece| piece.len()).sum();
        let sent = socket::send_vectored(self.descriptor.as_fd(), pieces, more);
        self.on_sent(sent, offered as u64)
    }

    /// A connect in progress whose socket has become writable, but for a reason that the report did not tell, has succeeded or
    /// failed.
    pub(super) fn check_connected(&mut self) {
        if self.flags.connecting && self.flags.may_send && self.error.is_none() {
            match socket::take_error(self.descriptor.as_fd()) {
                Ok(None) => self.flags.connecting = false,
                Ok(Some(code)) => {
                    self.error = Some(stream_error(&io::Error::from_raw_os_error(code)));
                }
                Err(error) => self.error = Some(stream_error(&error)),
            }
        }
    }

    /// Sends a pending FIN once the queue is empty.
    pub(super) fn finish_writing(&mut self) {
        let ready = !self.flags.connecting && self.queued() == 0 && self.error.is_none();
        if self.flags.shutdown_due && ready {
            self.flags.shutdown_due = false;
            // Fails only when the peer has reset, which the next receive reports.
            let _ = socket::shutdown_write(self.descriptor.as_fd());
        }
    }
}

/// Whether a file has no bytes at `offset` or after it.
fn file_ends(file: &KernelFile, offset: u64) -> bool {
    file::status_of(file.as_fd()).is_ok_and(|status| status.len <= offset)
}

/// The meaning of a system call's error for the connection.
pub(super) fn stream_error(error: &io::Error) -> StreamError {
    match error.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected
        | io::ErrorKind::ConnectionAborted => StreamError::Reset,
        io::ErrorKind::ConnectionRefused => StreamError::Refused,
        io::ErrorKind::TimedOut
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable => StreamError::Unreachable,
        _ => StreamError::Other(error.raw_os_error().unwrap_or(0)),
    }
}

/// Bytes that one connection may send in a turn, so that the others get their share. nginx's `sendfile_max_chunk` is
/// the same.
const SHARE_PER_TURN: u64 = 2 * 1024 * 1024;

/// A file that is sent in several turns. At 10 MB full packets save a tenth of the time, at 1 MB nothing; 100 kB take three times as long
/// as without.
const CORKED_BYTES_MIN: u64 = SHARE_PER_TURN;
