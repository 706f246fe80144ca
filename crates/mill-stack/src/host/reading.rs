//! Reading of applications.

use crate::host::Host;
use crate::link::Link;
use crate::queue::SendQueue;
use crate::slot::SlotFlags;
use crate::socket::{Readable, Ready, SocketError, SocketId};
use crate::unread::Unread;
use alloc::vec::Vec;

impl<Q: SendQueue> Host<Q> {
    /// The unread bytes. After a failure it still answers until the socket is closed.
    pub fn readable(&self, socket: SocketId) -> Readable {
        match self.slots.of(socket) {
            Some(slot) => Readable {
                unread: slot.unread.len(),
                finished: slot.flags.has(SlotFlags::FINISHED),
                error: slot.error,
            },
            None => Readable {
                error: Some(SocketError::Stale),
                ..Readable::default()
            },
        }
    }

    /// Lends all unread bytes, contiguous, to `take`, which returns how many of them it consumed: where they lie if
    /// they are in one frame, else gathered.
    pub fn read<L: Link, R>(
        &mut self,
        socket: SocketId,
        link: &mut L,
        take: impl FnOnce(&mut [u8]) -> (usize, R),
    ) -> R {
        let Some(slot) = self.slots.of_mut(socket) else {
            return take(&mut []).1;
        };
        let (consumed, result) = match &mut slot.unread {
            Unread::Nothing => return take(&mut []).1,
            Unread::Frame { id, start, len } => {
                let end = *start + *len;
                let bytes = link.frame(*id).get_mut(*start as usize..end as usize);
                let (consumed, result) = take(bytes.unwrap_or_default());
                let consumed = consumed.min(*len as usize);
                let count = u32::try_from(consumed).unwrap_or(*len);
                *start += count;
                *len -= count;
                if *len == 0 {
                    slot.unread = Unread::Nothing;
                }
                (consumed, result)
            }
            Unread::Gathered(gathered) => {
                let bytes = gathered.as_mut_slice();
                let len = bytes.len();
                let (consumed, result) = take(bytes);
                let consumed = consumed.min(len);
                if gathered.consume(consumed)
                    && let Unread::Gathered(gathered) = core::mem::take(&mut slot.unread)
                {
                    self.buffers.put(gathered);
                }
                (consumed, result)
            }
        };
        if consumed > 0 {
            self.consumed(socket.index, consumed);
        }
        result
    }

    /// The reader waits for so many unread bytes: the receive window becomes able to hold them.
    pub fn reserve_receive(&mut self, socket: SocketId, bytes: usize) {
        let Some(slot) = self.slots.of_mut(socket) else {
            return;
        };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if slot.connection.reserve_receive(bytes) {
            self.slots.want_transmit(socket.index);
        }
    }

    /// The connection's changes are reported with another token from now on.
    pub fn set_token(&mut self, socket: SocketId, token: u64) {
        if let Some(slot) = self.slots.of_mut(socket) {
            slot.token = token;
        }
    }

    /// Appends the connections that changed since the last call, each once: bytes or an end to read, bytes
    /// acknowledged, established, failed.
    pub fn take_ready(&mut self, into: &mut Vec<Ready>) {
        self.slots.take_ready(into);
    }

    fn consumed(&mut self, index: u32, count: usize) {
        self.tcp_context.sub_unread(count);
        let Some(slot) = self.slots.at_mut(index) else {
            return;
        };
        if !slot.flags.has(SlotFlags::ENDED) {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            let env = &mut self.tcp_context.env(slot.config, self.now);
            slot.connection.consumed(count, env);
            self.slots.want_transmit(index);
        }
    }
}
