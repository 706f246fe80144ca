//! Connections that wait at a listener move to another host: of the process that listens there now.
//!
//! ```text
//! give_waiting   handshakes, and connections that are not accepted, leave this host without a segment
//! (format.rs)    as bytes, to the other process
//! take_waiting   its host goes on with them: the handshake, then the text, as if it arrived
//! ```
//!
//! Segments that arrive for them at the former host meanwhile are dropped; their peers send them again.

use crate::flow::Flow;
use crate::flow_table::Target;
use crate::host::Host;
use crate::host::tables::NextNumbers;
use crate::link::Link;
use crate::queue::SendQueue;
use crate::socket::ListenerId;
use crate::syn_cache::Entry;
use crate::unread::Unread;
use alloc::vec::Vec;
use mill_tcp::listen::HalfOpen;
use mill_tcp::migration::Migration;
use mill_tcp::segment::SegmentOut;
use mill_wire::ethernet::MacAddress;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;

/// Its bytes.
pub mod format;

/// A connection that was not accepted yet, or the handshake of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub flow: Flow,
    pub progress: Progress,
}

impl Waiting {
    /// What a reset of it needs, if it is open.
    pub fn next_numbers(&self) -> Option<NextNumbers> {
        let Progress::Open { migration, text } = &self.progress else {
            return None;
        };
        let text = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let fin = u32::from(migration.is_finished);
        Some(NextNumbers {
            flow: self.flow,
            snd_nxt: migration.half_open.iss + 1,
            rcv_nxt: migration.half_open.irs + 1 + text + fin,
        })
    }
}

/// How far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    Handshake(HalfOpen),
    /// Complete, with the text that has come.
    Open {
        migration: Migration,
        text: Vec<u8>,
    },
}

impl<Q: SendQueue> Host<Q> {
    /// Takes away all that waits at a listener, in the order in which it is to be accepted; nothing is sent to its peers. What
    /// can't move, such as a connection that Fast Open has opened, is reset. Between turns only: no text may be in a frame.
    pub fn give_waiting(&mut self, listener: ListenerId) -> Vec<Waiting> {
        let mut given = self.give_open(listener, usize::MAX);
        while let Some(index) = self.take_waiting_of(listener) {
            if let Some(slot) = self.slots.at(index) {
                self.abort(slot.id(index));
            }
        }
        given.extend(self.give_handshakes(listener));
        given
    }

    /// Takes away the handshakes of a listener that are under way.
    pub fn give_handshakes(&mut self, listener: ListenerId) -> Vec<Waiting> {
        let mut given = Vec::new();
        for index in self.flows.syn_cache().of_listener(listener.0) {
            let Some(entry) = self.flows.syn_cache().at(index).copied() else {
                continue;
            };
            self.flows.note_moving(&entry.flow);
            self.forget_half_open(index);
            self.note_moved(&entry.flow);
            given.push(Waiting {
                flow: entry.flow,
                progress: Progress::Handshake(entry.half_open),
            });
        }
        given
    }

    /// Takes away those that wait at a listener, have shaken hands and can move, as many as this. The others stay. Between turns only.
    pub fn give_open(&mut self, listener: ListenerId, count_max: usize) -> Vec<Waiting> {
        let mut given = Vec::new();
        let mut staying = Vec::new();
        while let Some(index) = self.take_waiting_of(listener) {
            if given.len() == count_max {
                staying.push(index);
                continue;
            }
            match self.give_connection(index) {
                Some(waiting) => given.push(waiting),
                None => staying.push(index),
            }
        }
        for index in staying {
            self.listeners.add_waiting(listener, index);
        }
        given
    }

    fn take_waiting_of(&mut self, listener: ListenerId) -> Option<u32> {
        self.listeners.at_mut(listener)?.take_waiting()
    }

    fn give_connection(&mut self, index: u32) -> Option<Waiting> {
        let slot = self.slots.at_mut(index)?;
        let flow = slot.flow;
        let text = match &slot.unread {
            Unread::Gathered(gathered) => gathered.as_slice().to_vec(),
            Unread::Nothing | Unread::Frame { .. } => Vec::new(),
        };
        let unread = slot.connection.unread_bytes();
        let env = &mut self.tcp_context.env(slot.config, self.now);
        let is_whole = unread as usize == text.len() && slot.acked == 0;
        let found = slot.connection.migrate(unread, env);
        let migration = found.filter(|_| is_whole && slot.error.is_none())?;
        slot.connection.forget(env);
        slot.abandon();
        self.flows.note_moving(&flow);
        self.end(index, false);
        // Its end here is not its end: nothing of it may stay noted.
        self.slots.note_young(index);
        self.note_moved(&flow);
        let progress = Progress::Open { migration, text };
        Some(Waiting { flow, progress })
    }

    fn note_moved(&mut self, flow: &Flow) {
        self.counters.moved_out += 1;
        let hash = self.flows.hash(flow);
        self.moved.note(hash, self.now.tick());
    }

    /// Goes on with what another host has given; gives it back if nothing listens at its address. What finds no room is reset.
    pub fn take_waiting<L: Link>(&mut self, link: &mut L, given: Waiting) -> Result<(), Waiting> {
        let flow = given.flow;
        let hash = self.flows.hash(&flow);
        let Some(listener) = self.listeners.find(flow.local(), hash) else {
            return Err(given);
        };
        let mut found = self.flows.find(&self.slots, &flow, hash);
        if let Some(Target::TimeWait(number)) = found {
            // The peer has opened the same flow anew, at the other host, which did not know of the former connection.
            self.flows.remove_time_wait(&flow, number, hash);
            found = None;
        }
        self.next_hops.hear(MacAddress::UNSPECIFIED);
        match (given.progress, found) {
            (Progress::Handshake(half_open), None) => {
                self.take_handshake(listener, flow, hash, half_open);
            }
            (Progress::Open { migration, text }, None | Some(Target::HalfOpen(_))) => {
                if let Some(Target::HalfOpen(index)) = found {
                    // The peer has sent its SYN again meanwhile.
                    self.forget_half_open(index);
                }
                self.take_connection(link, (listener, flow, hash), &migration, &text);
            }
            // The flow is in use again, so the peer has given this one up.
            (_, Some(_)) => {}
        }
        Ok(())
    }

    /// Resets a connection that another host has given and that finds no listener here.
    pub fn refuse_waiting(&mut self, given: &Waiting) {
        if let Progress::Open { migration, .. } = &given.progress {
            self.send_own_reset(given.flow, reset_at(migration.half_open.iss + 1));
        }
    }

    fn take_handshake(&mut self, listener: ListenerId, flow: Flow, hash: u64, half_open: HalfOpen) {
        if self.flows.syn_cache().len() >= self.limits.half_open_max as usize {
            return;
        }
        if let Some(listener) = self.listeners.at_mut(listener) {
            listener.on_half_open();
        }
        let entry = Entry {
            half_open,
            flow,
            listener: listener.0,
        };
        self.flows.insert_half_open(hash, entry);
        self.counters.moved_in += 1;
        // The other host's answer may not have left it, and would be missed for a second. A peer that has it acknowledges another.
        if half_open.retransmits == 0 {
            let config = self.listeners.at(listener).map_or(0, |it| it.config);
            let syn_ack = half_open.syn_ack(&mut self.tcp_context.env(config, self.now));
            self.answer(flow, syn_ack);
        }
    }

    fn take_connection<L: Link>(
        &mut self,
        link: &mut L,
        (listener, flow, hash): (ListenerId, Flow, u64),
        migration: &Migration,
        text: &[u8],
    ) {
        let listening = self.listeners.at(listener);
        let config = listening.map_or(0, |listener| listener.config);
        let env = &mut self.tcp_context.env(config, self.now);
        let options = migration.options(env);
        let has_room = self.slots.count() < self.limits.connections_max;
        let resumed = migration.resume(env).filter(|_| has_room);
        let Some(connection) = resumed else {
            self.send_own_reset(flow, reset_at(migration.half_open.iss + 1));
            return;
        };
        let index = self.establish(listener, flow, hash, None, connection);
        let mut offset = 0;
        // At least one, which says what the peer takes.
        loop {
            let rest = text.get(offset..).unwrap_or_default();
            let part = rest.get(..SEGMENT_BYTES).unwrap_or(rest);
            let is_last = part.len() == rest.len();
            let place = u32::try_from(offset).unwrap_or(u32::MAX);
            let segment = migration.segment(&options, place, part, is_last);
            self.on_segment_without_frame(link, index, &segment);
            if is_last {
                break;
            }
            offset += part.len();
        }
        self.counters.moved_in += 1;
    }
}

/// RST with this number.
fn reset_at(seq: SeqNumber) -> SegmentOut {
    SegmentOut {
        seq,
        flags: Flags::RST,
        ..SegmentOut::default()
    }
}

/// Text of a segment: no more than a header can say.
const SEGMENT_BYTES: usize = 60_000;
