//! What the engine keeps of one stream of the stack.

use alloc::vec::Vec;
use mill_runtime::stream::StreamError;
use mill_stack::socket::SocketId;

/// A stream's part above its host. Idle it owns nothing.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) socket: SocketId,
    /// An error above the host: a file that could not be read, a write after the end.
    pub(crate) error: Option<StreamError>,
    /// The largest value that [`mill_runtime::stream::Stream::sent`] has returned; it never returns less.
    pub(crate) sent: u64,
    /// Bytes that count as taken before they are acknowledged.
    pub(crate) send_buffer_bytes: u32,
    /// Unread bytes that the reader has seen.
    pub(crate) seen_bytes: u32,
    pub(crate) flags: Flags,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flags {
    /// Our connect has not succeeded yet.
    pub(crate) connecting: bool,
    /// Close with RST.
    pub(crate) reset_on_close: bool,
    /// FIN was requested.
    pub(crate) shutdown: bool,
    /// IPv4 addresses are shown as IPv6 shows them: it came in by a listener of both.
    pub(crate) is_mapped: bool,
}

/// The slots of an engine, used again. A slot belongs to exactly one handle, so that an index is never stale.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    entries: Vec<Option<Slot>>,
    vacant: Vec<u32>,
}

impl Slots {
    pub(crate) fn insert(&mut self, slot: Slot) -> u32 {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(None);
            u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 connections")
        });
        if let Some(entry) = self.entries.get_mut(index as usize) {
            debug_assert!(entry.is_none(), "a slot has one tenant");
            *entry = Some(slot);
        }
        index
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<Slot> {
        let slot = self.entries.get_mut(index as usize)?.take()?;
        self.vacant.push(index);
        Some(slot)
    }

    pub(crate) fn slot(&self, index: u32) -> &Slot {
        self.entries
            .get(index as usize)
            .and_then(Option::as_ref)
            .expect(LIVES)
    }

    pub(crate) fn slot_mut(&mut self, index: u32) -> &mut Slot {
        self.entries
            .get_mut(index as usize)
            .and_then(Option::as_mut)
            .expect(LIVES)
    }

    /// How many streams live.
    pub(crate) fn count(&self) -> usize {
        self.entries.len() - self.vacant.len()
    }
}

/// Why a slot is in use.
const LIVES: &str = "a handle's slot lives as long as the handle";

/// Bytes that an idle stream takes here; the host's part is documented there, the handle's is in its task.
const _: () = assert!(size_of::<Option<Slot>>() <= 48);
