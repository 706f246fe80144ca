//! Listeners of the stack, of the inner engine, or of both.

use alloc::vec::Vec;
use mill_runtime::engine::ListenerId;
use mill_stack::socket;

/// The listeners of an engine with a stack. There are few: they are searched one by one.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    entries: Vec<Option<Entry>>,
}

/// One listener as the worker knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) inner: Option<ListenerId>,
    pub(crate) stack: Option<socket::ListenerId>,
    /// What its streams get.
    pub(crate) send_buffer_bytes: u32,
    /// Listens for IPv6 and IPv4: IPv4 addresses are shown as IPv6 shows them.
    pub(crate) is_dual: bool,
    pub(crate) accepting: bool,
    /// Connections wait at the stack, or did at the last poll.
    pub(crate) is_waiting: bool,
    /// The same at the inner engine, where each poll is a system call.
    pub(crate) is_inner_waiting: bool,
    /// Which of the two is polled first the next time, so that neither starves.
    pub(crate) stack_first: bool,
}

impl Listeners {
    pub(crate) fn insert(&mut self, entry: Entry) -> ListenerId {
        let index = match self.entries.iter().position(Option::is_none) {
            Some(index) => index,
            None => {
                self.entries.push(None);
                self.entries.len() - 1
            }
        };
        if let Some(place) = self.entries.get_mut(index) {
            *place = Some(entry);
        }
        ListenerId(u32::try_from(index).expect("fewer than 2^32 listeners"))
    }

    pub(crate) fn entry(&mut self, id: ListenerId) -> Option<&mut Entry> {
        self.entries.get_mut(id.0 as usize)?.as_mut()
    }

    pub(crate) fn remove(&mut self, id: ListenerId) -> Option<Entry> {
        self.entries.get_mut(id.0 as usize)?.take()
    }

    /// Replaces the inner engine's numbers, from position `from` on, by the worker's. Connections wait at these
    /// listeners.
    pub(crate) fn translate(&mut self, acceptable: &mut Vec<ListenerId>, from: usize) {
        let mut kept = from;
        for index in from..acceptable.len() {
            let Some(inner) = acceptable.get(index).copied() else {
                break;
            };
            if let Some(id) = self.position(|entry| entry.inner == Some(inner))
                && let Some(place) = acceptable.get_mut(kept)
            {
                *place = id;
                kept += 1;
                if let Some(entry) = self.entry(id) {
                    entry.is_inner_waiting = true;
                }
            }
        }
        acceptable.truncate(kept);
    }

    /// Connections wait at a listener of the stack.
    pub(crate) fn note_waiting(&mut self, stack: socket::ListenerId) {
        let mut entries = self.entries.iter_mut().flatten();
        if let Some(entry) = entries.find(|entry| entry.stack == Some(stack)) {
            entry.is_waiting = true;
        }
    }

    /// Whether connections that may be accepted wait at the stack.
    pub(crate) fn has_waiting(&self) -> bool {
        self.entries.iter().flatten().any(Entry::is_reported)
    }

    /// Reports the listeners at which connections wait, besides those reported already.
    pub(crate) fn report(&self, acceptable: &mut Vec<ListenerId>) {
        for (entry, index) in self.entries.iter().zip(0..) {
            let id = ListenerId(index);
            if entry.as_ref().is_some_and(Entry::is_reported) && !acceptable.contains(&id) {
                acceptable.push(id);
            }
        }
    }

    /// Removes and returns all listeners.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Entry> {
        self.entries.drain(..).flatten()
    }

    fn position(&self, is_meant: impl Fn(&Entry) -> bool) -> Option<ListenerId> {
        let mut entries = self.entries.iter().zip(0..);
        let (_, index) = entries.find(|(entry, _)| entry.as_ref().is_some_and(&is_meant))?;
        Some(ListenerId(index))
    }
}

impl Entry {
    fn is_reported(&self) -> bool {
        self.is_waiting && self.accepting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(inner: Option<u32>, stack: Option<u32>) -> Entry {
        Entry {
            inner: inner.map(ListenerId),
            stack: stack.map(socket::ListenerId),
            send_buffer_bytes: 1,
            is_dual: false,
            accepting: true,
            is_waiting: false,
            is_inner_waiting: false,
            stack_first: true,
        }
    }

    #[test]
    fn numbers_of_the_inner_engine_become_the_workers() {
        let mut listeners = Listeners::default();
        let first = listeners.insert(entry(None, Some(4)));
        let second = listeners.insert(entry(Some(0), None));
        let third = listeners.insert(entry(Some(9), Some(7)));
        let mut acceptable = alloc::vec![first, ListenerId(9), ListenerId(0), ListenerId(5)];
        listeners.translate(&mut acceptable, 1);
        assert_eq!(acceptable, [first, third, second]);
        for (id, expected) in [(first, false), (second, true), (third, true)] {
            assert_eq!(listeners.entry(id).unwrap().is_inner_waiting, expected);
        }

        listeners.note_waiting(socket::ListenerId(7));
        listeners.report(&mut acceptable);
        assert_eq!(acceptable, [first, third, second], "reported once");
        listeners.note_waiting(socket::ListenerId(4));
        acceptable.clear();
        listeners.report(&mut acceptable);
        assert_eq!(acceptable, [first, third]);
    }

    #[test]
    fn waiting_connections_are_reported_until_none_is_left_but_not_while_paused() {
        let mut listeners = Listeners::default();
        let id = listeners.insert(entry(None, Some(0)));
        assert!(!listeners.has_waiting());
        listeners.note_waiting(socket::ListenerId(0));
        assert!(listeners.has_waiting());
        listeners.entry(id).unwrap().accepting = false;
        assert!(!listeners.has_waiting());
        listeners.entry(id).unwrap().accepting = true;
        assert!(listeners.has_waiting());
        listeners.entry(id).unwrap().is_waiting = false;
        assert!(!listeners.has_waiting());
    }

    #[test]
    fn a_number_is_used_again_after_its_listener_closed() {
        let mut listeners = Listeners::default();
        let first = listeners.insert(entry(Some(1), None));
        let second = listeners.insert(entry(Some(2), None));
        assert!(listeners.remove(first).is_some());
        assert!(listeners.remove(first).is_none());
        assert_eq!(listeners.insert(entry(Some(3), None)), first);
        assert_ne!(first, second);
    }
}
