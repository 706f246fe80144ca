//! What a connection's two programs have said to each other, beside the stacks: every byte that arrives, every end and every
//! error is compared with it.

use crate::errno::Errno;

/// The sides.
pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// One connection: the client writes bytes that its port and their place determine, the server writes what it has read.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) port: u16,
    /// Bytes that the client means to write.
    pub(super) total: usize,
    pub(super) ends: [End; 2],
    /// A program has done something that may be answered with a reset.
    pub(super) may_reset: bool,
}

#[derive(Debug, Default)]
pub(super) struct End {
    /// connect(2) has said so.
    pub(super) is_connected: bool,
    pub(super) written: usize,
    pub(super) read: usize,
    /// It has shut down or closed.
    pub(super) has_finished: bool,
    pub(super) is_closed: bool,
    pub(super) reads_no_more: bool,
    /// It has read the end.
    pub(super) saw_end: bool,
    /// A call has told an error, and which was one that is told once.
    pub(super) saw_error: bool,
    was_told: bool,
}

impl End {
    pub(super) const fn is_over(&self) -> bool {
        self.saw_end || self.saw_error || self.is_closed
    }
}

impl Exchange {
    pub(super) fn new(port: u16, total: usize) -> Self {
        Self {
            port,
            total,
            ends: Default::default(),
            may_reset: false,
        }
    }

    /// The byte at a place of what a side writes.
    pub(super) fn byte(&self, side: usize, place: usize) -> u8 {
        let mixed = usize::from(self.port) * 31 + place * 7 + (place >> 8) * 13;
        let byte = u8::try_from(mixed % 251).unwrap_or(0);
        if side == CLIENT { byte } else { byte ^ 0x5a }
    }

    /// Bytes that a side could write now.
    pub(super) const fn to_write(&self, side: usize) -> usize {
        let given = match side {
            CLIENT => self.total,
            _ => self.ends[SERVER].read,
        };
        given - self.ends[side].written
    }

    /// A side has read bytes, or the end.
    pub(super) fn on_read(&mut self, side: usize, bytes: &[u8]) {
        let (start, written) = (self.ends[side].read, self.ends[1 - side].written);
        for (place, byte) in bytes.iter().enumerate() {
            let expected = self.byte(1 - side, start + place);
            assert_eq!(*byte, expected, "byte {} of {self:?}", start + place);
        }
        assert!(
            start + bytes.len() <= written,
            "more than was written: {self:?}"
        );
        let peer_finished = self.ends[1 - side].has_finished;
        let own = &mut self.ends[side];
        own.read += bytes.len();
        if bytes.is_empty() {
            let is_end = peer_finished && own.read == written;
            let is_allowed = is_end || own.saw_error || own.reads_no_more;
            own.saw_end = true;
            assert!(is_allowed, "an end that the peer has not said: {self:?}");
        }
    }

    /// A call on a stream has told an error.
    pub(super) fn on_error(&mut self, side: usize, error: Errno) {
        let known = [
            Errno::RESET,
            Errno::BROKEN_PIPE,
            Errno::NOT_CONNECTED,
            Errno::TIMED_OUT,
        ];
        let own = &mut self.ends[side];
        own.saw_error = true;
        let is_told_once = [Errno::RESET, Errno::TIMED_OUT].contains(&error);
        let was_told = is_told_once && core::mem::replace(&mut own.was_told, true);
        assert!(!was_told, "an error is told once: {error:?}: {self:?}");
        assert!(known.contains(&error), "{error:?}: {self:?}");
        assert!(self.may_reset, "{error:?} without a reason: {self:?}");
    }
}
