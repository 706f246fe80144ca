//! A connection's effects on its host: events, the end, memory.

use crate::host::Host;
use crate::link::{FRAMES_HELD_MAX, FrameId, Link};
use crate::queue::SendQueue;
use crate::slot::SlotFlags;
use crate::socket::SocketError;
use crate::unread::Unread;
use core::ops::Range;
use mill_tcp::arrived::Events;
use mill_tcp::time_wait::TimeWait;
use mill_wire::tcp::Flags;

impl<Q: SendQueue> Host<Q> {
    /// Makes sure that the timer's entry is not later than the connection's timer.
    #[inline]
    pub(crate) fn arm(&mut self, index: u32) {
        if let Some(slot) = self.slots.at(index)
            && let Some(at) = slot.connection.next_timer()
        {
            self.timers.arm_by(index, at);
        }
    }

    /// Handles the changes by a segment, a timer or an ICMP error.
    pub(crate) fn on_events(&mut self, index: u32, events: Events) {
        let Some(slot) = self.slots.at_mut(index) else {
            return;
        };
        if events.has_any(Events::ESTABLISHED) {
            slot.flags.set(SlotFlags::ESTABLISHED);
        }
        if events.has_any(Events::FINISHED) {
            slot.flags.set(SlotFlags::FINISHED);
        }
        slot.error = slot.error.or(if events.has_any(Events::RESET) {
            Some(SocketError::Reset)
        } else if events.has_any(Events::REFUSED) {
            Some(SocketError::Refused)
        } else if events.has_any(Events::TIMED_OUT) {
            Some(SocketError::Unreachable)
        } else {
            None
        });
        let failed = Events::REFUSED | Events::TIMED_OUT | Events::RESET;
        if events.has_any(failed) && !slot.flags.has(SlotFlags::ESTABLISHED) {
            self.counters.failed_opens += 1;
        }
        if events.has_any(Events::ESTABLISHED) {
            self.begin_path(index);
            self.end_fast_open(index);
        }
        if events.has_any(Events::PATH_MTU) {
            self.on_path_news(index);
        }
        if events.has_any(Events::ENDS) {
            self.end(index, events.has_any(Events::TIME_WAIT));
        }
        self.slots.mark_ready(index);
    }

    /// TCP has finished the connection, which is Closed: its flow is free, or in TIME-WAIT. The slot stays for the
    /// application to read the result, and is freed at once if the application has closed it.
    pub(crate) fn end(&mut self, index: u32, waits: bool) {
        self.send_last(index);
        let Some(slot) = self.slots.at_mut(index) else {
            return;
        };
        if slot.flags.has(SlotFlags::ENDED) {
            return;
        }
        slot.flags.set(SlotFlags::ENDED);
        // The rest of a cut segment belongs to the connection that ends, not to the next one in its slot.
        if self.cut.is_some_and(|cut| cut.is_of(index)) {
            self.cut = None;
        }
        let flow = slot.flow;
        let queue = slot.queue.take();
        if waits {
            let env = &mut self.tcp_context.env(slot.config, self.now);
            let time_wait = TimeWait::new(&slot.connection, env);
            let count_max = self.limits.time_wait_max.max(1) as usize;
            self.counters.time_waits_forgotten += self.flows.make_room_in_time_wait(count_max);
            self.counters.time_waits += 1;
            self.flows.begin_time_wait(&flow, index, time_wait);
        } else {
            self.flows.remove_connection(&flow, index);
        }
        if let Some(slot) = self.slots.at_mut(index) {
            self.tcp_context
                .count_reassembly(&mut slot.reassembly_bytes, &slot.connection);
        }
        self.end_fast_open(index);
        self.timers.disarm(index);
        if let Some(queue) = queue {
            self.vacant_queues.put(queue);
        }
        if self
            .slots
            .at(index)
            .is_some_and(|slot| slot.flags.has(SlotFlags::ORPHAN))
        {
            self.forget(index);
        }
    }

    /// Frees a slot whose connection has ended.
    pub(crate) fn forget(&mut self, index: u32) {
        self.discard_unread(index);
        self.slots.remove(index);
    }

    /// The application reads no more.
    pub(crate) fn discard_unread(&mut self, index: u32) {
        let Some(slot) = self.slots.at_mut(index) else {
            return;
        };
        let unread = core::mem::take(&mut slot.unread);
        self.tcp_context.sub_unread(unread.len());
        if let Unread::Gathered(gathered) = unread {
            self.buffers.put(gathered);
        }
    }

    /// Sends the last segments of the connection: the acknowledgement of the peer's FIN, or the reset because
    /// received bytes are not read.
    fn send_last(&mut self, index: u32) {
        let Some(slot) = self.slots.at_mut(index) else {
            return;
        };
        let env = &mut self.tcp_context.env(slot.config, self.now);
        if let Some(segment) = slot.connection.next_segment(0, env) {
            let flow = slot.flow;
            if segment.flags.has(Flags::RST) {
                self.send_own_reset(flow, segment);
            } else {
                self.answer(flow, segment);
            }
        }
    }

    /// Holds a frame in which `part` is all that is unread; false if something else is, or too many are held.
    #[inline]
    pub(crate) fn hold(&mut self, index: u32, frame: FrameId, part: &Range<usize>) -> bool {
        let Some(slot) = self.slots.at_mut(index) else {
            return false;
        };
        if !slot.unread.is_empty() || self.held.len() >= FRAMES_HELD_MAX as usize {
            return false;
        }
        self.tcp_context.add_unread(part.len());
        slot.unread = Unread::Frame {
            id: frame,
            start: u32::try_from(part.start).unwrap_or(0),
            len: u32::try_from(part.len()).unwrap_or(0),
        };
        self.held.push((frame, index));
        true
    }

    /// Copies bytes that are next in order behind those that are unread, which are in no frame.
    pub(crate) fn gather(&mut self, index: u32, bytes: &[u8]) {
        let Some(slot) = self.slots.at_mut(index) else {
            return;
        };
        self.tcp_context.add_unread(bytes.len());
        self.counters.bytes_gathered += bytes.len() as u64;
        if let Unread::Gathered(gathered) = &mut slot.unread {
            gathered.append(bytes);
            return;
        }
        debug_assert!(slot.unread.is_empty(), "a held frame was copied out before");
        let mut gathered = self.buffers.take();
        gathered.append(bytes);
        slot.unread = Unread::Gathered(gathered);
    }

    /// Copies what is unread out of `frame`, if it is there.
    pub(crate) fn copy_out<L: Link>(&mut self, index: u32, frame: FrameId, link: &mut L) {
        if let Some(slot) = self.slots.at_mut(index)
            && let Unread::Frame { id, start, len } = slot.unread
            && id == frame
        {
            let (start, len) = (start as usize, len as usize);
            let bytes = link.frame(frame).get(start..start + len);
            let mut gathered = self.buffers.take();
            gathered.append(bytes.unwrap_or_default());
            slot.unread = Unread::Gathered(gathered);
            self.counters.bytes_left += len as u64;
        }
    }
}
