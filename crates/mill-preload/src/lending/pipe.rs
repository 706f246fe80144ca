//! A connection of this process' stack, and the local socket by which a child has it.

use crate::kernel_options;
use crate::memory::errno;
use crate::originals;
use core::ffi::c_int;
use mill_device::AnyLink;
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use mill_sockets::sockets::Sockets;
use mill_sockets::sockets::closing::Half;
use mill_sys::clock;
use mill_sys::epoll::Event;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Bytes go both ways, without a buffer between: what one side has no room for stays at the other.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) id: u64,
    pub(super) number: Number,
    socket: OwnedFd,
    /// The child has written, or has no more to write.
    has_input: bool,
    /// The socket has no room for more.
    is_full: bool,
    /// The child has closed it.
    has_hung_up: bool,
    /// Bytes that it was given and has not read yet, which the connection still has.
    ahead: usize,
    ahead_since: Duration,
    /// The other process has closed it before it had read all.
    was_left_unread: bool,
    /// The peer has no more to say, and the child knows it.
    to_child_ended: bool,
    /// The child has no more to say, and the peer knows it.
    to_peer_ended: bool,
}

/// The connection has failed, or the child has closed it: nothing is left to move.
#[derive(Debug)]
pub(super) struct Over;

/// What became of one move.
enum Moved {
    Bytes,
    /// For now there is nothing, or no room.
    Nothing,
    End,
}

impl Pipe {
    pub(super) fn new(id: u64, number: Number, socket: OwnedFd) -> Self {
        Self {
            id,
            number,
            socket,
            has_input: true,
            is_full: false,
            has_hung_up: false,
            ahead: 0,
            ahead_since: Duration::ZERO,
            was_left_unread: false,
            to_child_ended: false,
            to_peer_ended: false,
        }
    }

    /// Ends the socket, of which a child that was forked since has a duplicate.
    pub(super) fn end(&self) -> BorrowedFd<'_> {
        // SAFETY: the call takes no pointer.
        unsafe { originals::shutdown(self.socket.as_raw_fd(), libc::SHUT_RDWR) };
        self.socket.as_fd()
    }

    /// Whether the child may have written what the connection has not got yet.
    pub(super) fn may_write(&self) -> bool {
        self.has_input && !self.to_peer_ended
    }

    /// The kernel has news of the socket.
    pub(super) fn note(&mut self, event: Event) {
        self.has_input |= event.readable();
        self.is_full &= !event.writable();
        self.has_hung_up |= event.hung_up();
    }

    /// Moves what there is; whether anything was moved. `is_ours` as long as this process has the connection, too: one that it has offered
    /// to another process, which closes it unread, it may offer to a third one with all bytes.
    pub(super) fn turn(
        &mut self,
        sockets: &mut Sockets<AnyLink>,
        is_ours: bool,
    ) -> Result<bool, Over> {
        // The peer has said all, and what it is told it refuses: no byte goes anywhere any more.
        if self.to_child_ended && sockets.is_over(self.number) {
            return Err(Over);
        }
        let to_peer = self.move_to_peer(sockets)?;
        Ok(self.move_to_child(sockets, is_ours)? | to_peer)
    }

    fn move_to_child(
        &mut self,
        sockets: &mut Sockets<AnyLink>,
        is_ours: bool,
    ) -> Result<bool, Over> {
        let mut has_moved = false;
        while !self.is_full && !self.to_child_ended && !self.has_hung_up {
            let socket = self.socket.as_raw_fd();
            // When they are read, the socket is reported as one with room.
            if self.ahead > 0 && is_ours && has_unread(socket) {
                let since = clock::monotonic().saturating_sub(self.ahead_since);
                if since >= UNREAD_MAX {
                    // It may look at them (MSG_PEEK), and wait for more.
                    has_moved |= self.give_more(sockets);
                }
                break;
            }
            // What it has not read is gone from the socket when it closes that.
            if self.ahead > 0 && is_ours && has_hung_up(socket) {
                self.has_hung_up = true;
                break;
            }
            self.leave_to_child(sockets)?;
            let mut ahead = 0;
            let read = sockets.read(self.number, |bytes| match bytes {
                [] => (0, Moved::End),
                bytes => match send(socket, bytes) {
                    Some(count) if is_ours => {
                        ahead = count;
                        (0, Moved::Bytes)
                    }
                    Some(count) => (count, Moved::Bytes),
                    None => (0, Moved::Nothing),
                },
            });
            self.ahead = ahead;
            if ahead > 0 {
                self.ahead_since = clock::monotonic();
            }
            match read {
                Ok(Some(Moved::Bytes)) => has_moved = true,
                Ok(Some(Moved::Nothing)) => self.is_full = true,
                Ok(Some(Moved::End)) => {
                    self.to_child_ended = true;
                    // SAFETY: the call takes no pointer.
                    unsafe { originals::shutdown(socket, libc::SHUT_WR) };
                }
                Ok(None) => break,
                Err(_) => return Err(Over),
            }
        }
        Ok(has_moved)
    }

    /// Gives the other process what follows on what it has not read; whether there was any.
    fn give_more(&mut self, sockets: &mut Sockets<AnyLink>) -> bool {
        let (ahead, socket) = (self.ahead, self.socket.as_raw_fd());
        let mut more = 0;
        let _ = sockets.read(self.number, |bytes| {
            let rest = bytes.get(ahead..).filter(|rest| !rest.is_empty());
            more = rest.and_then(|rest| send(socket, rest)).unwrap_or(0);
            (0, ())
        });
        if more > 0 {
            self.ahead += more;
            self.ahead_since = clock::monotonic();
        }
        more > 0
    }

    /// This process has read bytes that the other one was given, too.
    pub(super) fn note_read(&mut self, count: usize) {
        self.ahead = self.ahead.saturating_sub(count);
    }

    /// What the other process was given is no more this one's.
    fn leave_to_child(&mut self, sockets: &mut Sockets<AnyLink>) -> Result<(), Over> {
        while self.ahead > 0 {
            let ahead = self.ahead;
            let read = sockets.read(self.number, |bytes| {
                let count = bytes.len().min(ahead);
                (count, count)
            });
            match read {
                Ok(Some(count @ 1..)) => self.ahead -= count,
                Ok(_) => self.ahead = 0,
                Err(_) => return Err(Over),
            }
        }
        Ok(())
    }

    fn move_to_peer(&mut self, sockets: &mut Sockets<AnyLink>) -> Result<bool, Over> {
        let mut has_moved = false;
        while self.has_input && !self.to_peer_ended {
            let socket = self.socket.as_raw_fd();
            let mut moved = Moved::Nothing;
            let mut is_unread = false;
            let written = sockets.write(self.number, false, |queue, room| {
                let received =
                    queue.push_with(room.min(PART_BYTES), |room| match receive(socket, room) {
                        Ok(0) => {
                            moved = Moved::End;
                            Ok(0)
                        }
                        Ok(count) => {
                            moved = Moved::Bytes;
                            Ok(count)
                        }
                        Err(errno) => {
                            is_unread = errno == Errno::RESET;
                            Err(errno)
                        }
                    });
                received.unwrap_or(0)
            });
            self.was_left_unread |= is_unread;
            match (written, moved) {
                // The parent has shut it down, and the peer may go on: the child can't write, and reads.
                (Err(Errno::BROKEN_PIPE), _) => {
                    self.to_peer_ended = true;
                    // SAFETY: the call takes no pointer.
                    unsafe { originals::shutdown(socket, libc::SHUT_RD) };
                    // What it has written by now is lost; left there, it would make the socket's end a reset.
                    let mut lost = [0; 4096];
                    while receive(socket, &mut lost).is_ok_and(|count| count > 0) {}
                }
                (Err(_), _) => return Err(Over),
                // The peer has to read first.
                (Ok(None), _) => break,
                (Ok(Some(_)), Moved::Nothing) => self.has_input = false,
                // The last descriptor of it is closed, which the parent's are not.
                (Ok(Some(0)), Moved::End) if has_hung_up(socket) => return self.over(sockets),
                (Ok(Some(0)), Moved::End) => {
                    self.to_peer_ended = true;
                    has_moved = true;
                    let _ = sockets.shutdown(self.number, Half::Writing);
                }
                (Ok(Some(_)), Moved::Bytes | Moved::End) => has_moved = true,
            }
        }
        match self.has_hung_up && (self.to_peer_ended || !self.has_input) {
            true => self.over(sockets),
            false => Ok(has_moved),
        }
    }

    /// The other process has closed it: what it has read is its own, and the rest the connection's.
    fn over(&mut self, sockets: &mut Sockets<AnyLink>) -> Result<bool, Over> {
        // Where it has shut down its end before, nothing was received since.
        if !self.was_left_unread && !is_reset(&self.socket) {
            self.leave_to_child(sockets)?;
        }
        Err(Over)
    }
}

/// As many bytes as the socket has room for; `None` without any, or after the child has closed it, which is reported.
fn send(socket: c_int, bytes: &[u8]) -> Option<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the bytes live through the call.
    let sent = unsafe { originals::send(socket, bytes.as_ptr().cast(), bytes.len(), flags) };
    usize::try_from(sent).ok()
}

/// Whether the other end has not read all yet.
fn has_unread(socket: c_int) -> bool {
    let mut bytes: c_int = 0;
    // SAFETY: the pointer is to a local, which the call fills.
    let found = unsafe { originals::ioctl(socket, libc::TIOCOUTQ, (&raw mut bytes).addr()) };
    // The kernel's own reference is one, a segment's are hundreds.
    found == 0 && bytes > 1
}

/// Whether the other end was closed before all was read.
fn is_reset(socket: &OwnedFd) -> bool {
    let error = kernel_options::number(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR);
    error == Some(libc::ECONNRESET)
}

/// How long what was offered may stay unread before more is given.
const UNREAD_MAX: Duration = Duration::from_millis(20);

/// Whether the other end is closed, and not only shut down in one direction.
fn has_hung_up(socket: c_int) -> bool {
    let mut polled = libc::pollfd {
        fd: socket,
        events: 0,
        revents: 0,
    };
    // SAFETY: the pointer is to a local, of which there is one.
    let found = unsafe { originals::poll(&raw mut polled, 1, 0) };
    found == 1 && polled.revents & libc::POLLHUP != 0
}

fn receive(socket: c_int, room: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the room is as long as the call is told.
    let received = unsafe {
        originals::recv(
            socket,
            room.as_mut_ptr().cast(),
            room.len(),
            libc::MSG_DONTWAIT,
        )
    };
    usize::try_from(received).map_err(|_| errno())
}

/// Bytes that one call takes.
const PART_BYTES: usize = 64 * 1024;
