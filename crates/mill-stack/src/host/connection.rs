//! A connection's effects on its host: events, the end, memory.

use crate::host::Host;
use crate::link::{FrameId, Link};
use crate::queue::SendQueue;
use crate::slot::SlotFlags;
use crate::socket::SocketError;
use crate::unread::Unread;
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

    /// Adds bytes in order to what is unread: held where they are if they are the first, else gathered. Says whether
    /// the frame is held.
    pub(crate) fn deliver(
        &mut self,
        index: u32,
        bytes: &[u8],
        held: Option<(FrameId, u32)>,
    ) -> bool {
        let Some(slot) = self.slots.at_mut(index) else {
            return false;
        };
        self.tcp_context.add_unread(bytes.len());
        let unread = &mut slot.unread;
        match (unread, held) {
            (unread @ Unread::Nothing, Some((id, start))) => {
                let len = u32::try_from(bytes.len()).unwrap_or(0);
                *unread = Unread::Frame { id, start, len };
                self.held.push((id, index));
                true
            }
            (Unread::Gathered(gathered), _) => {
                gathered.append(bytes);
                self.counters.bytes_gathered += bytes.len() as u64;
                false
            }
            (unread, _) => {
                debug_assert!(unread.is_empty(), "a held frame was copied out before");
                let mut gathered = self.buffers.take();
                gathered.append(bytes);
                *unread = Unread::Gathered(gathered);
                self.counters.bytes_gathered += bytes.len() as u64;
                false
            }
        }
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
