//! Sending, arriving, reading, closing.

use super::Network;
use crate::agenda::{Event, Item};
use crate::client::{Action, Reading};
use crate::endpoint::{EndpointId, Fin, Owner, Piece};
use mill_runtime::stream::{Readable, StreamError};
use mill_runtime::time::Duration;
use std::task::Poll;

impl Network {
    /// Lets an event happen. The calls of the test are not among them.
    pub(crate) fn happen(&mut self, event: Event) {
        match event {
            Event::ConnectArrives(end) => self.on_connect_arrives(end),
            Event::Established(end) => self.on_established(end),
            Event::Refused(end) => self.on_refused(end),
            Event::Arrives(end, item) => self.on_arrives(end, item),
            Event::WindowOpens(end, bytes) => self.on_window_opens(end, bytes),
            Event::Acts(end, action) => self.act(end, action),
            Event::Reads(end) => self.on_reads(end),
            Event::DatagramArrives(datagram) => self.on_datagram(datagram),
            Event::DatagramRefused(sender, target) => self.on_datagram_refused(sender, target),
            Event::FileReady => self.report_all(),
            Event::FrameSwitched(frame) => self.on_switched(frame),
            Event::FrameArrives(station, frame) => self.on_frame(station, frame),
            Event::CardHasRoom(station) => self.on_card_has_room(station),
            Event::Call(_) => unreachable!("the caller runs the test's calls"),
        }
    }

    // Sending.

    /// Hands over a piece; it waits until the end is flushed.
    pub(crate) fn write(&mut self, id: EndpointId, piece: Piece, len: u64) {
        let end = self.end(id);
        if end.error.is_some() {
            return;
        }
        if end.sending.fin != Fin::NotYet {
            end.error = Some(StreamError::Other(EPIPE));
            return;
        }
        end.sending.push(piece, len);
        if let Owner::Task { engine, .. } = end.owner {
            let unsettled = &mut self.engines[engine].unsettled;
            if unsettled.last() != Some(&id) {
                unsettled.push(id);
            }
        }
    }

    /// Puts as much on the way as the window has room for, and FIN after the last byte if that was asked for.
    pub(crate) fn flush(&mut self, id: EndpointId) {
        loop {
            let end = &mut self.endpoints[id.0];
            let sending = &mut end.sending;
            let room = sending.window.saturating_sub(sending.outstanding);
            if !end.established || end.error.is_some() || sending.queue.is_empty() || room == 0 {
                break;
            }
            let len_max = end.link.segments.next_len_max(&mut self.random).min(room);
            match sending.next_segment(len_max) {
                Ok(segment) => self.depart(id, Item::Segment(segment)),
                Err(error) => {
                    self.reset(id);
                    self.end(id).error = Some(error);
                    self.report(id);
                }
            }
        }
        let end = self.end(id);
        if end.established && end.sending.queue.is_empty() && end.sending.fin == Fin::Asked {
            end.sending.fin = Fin::Sent;
            self.depart(id, Item::Fin);
        }
    }

    /// Puts an item on the way from `id` to its peer, behind everything that is on the way already.
    fn depart(&mut self, id: EndpointId, item: Item) {
        let end = &mut self.endpoints[id.0];
        let len = if let Item::Segment(bytes) = &item {
            bytes.len()
        } else {
            0
        };
        let sending = &mut end.sending;
        sending.link_free_at = sending.link_free_at.max(self.now) + end.link.transmission_time(len);
        let arrival = sending.link_free_at + end.link.delay + end.link.jitter(&mut self.random);
        sending.last_arrival = sending.last_arrival.max(arrival);
        self.agenda
            .enter(sending.last_arrival, Event::Arrives(id.peer(), item));
    }

    pub(crate) fn shutdown(&mut self, id: EndpointId) {
        let sending = &mut self.end(id).sending;
        if sending.fin == Fin::NotYet {
            sending.fin = Fin::Asked;
        }
        self.flush(id);
    }

    /// Forgets what was not sent and tells the peer.
    pub(crate) fn reset(&mut self, id: EndpointId) {
        let end = self.end(id);
        if end.error.is_some() {
            return;
        }
        end.sending.discard();
        end.error = Some(StreamError::Reset);
        self.depart(id, Item::Reset);
    }

    /// Sends what all tasks of an engine wrote in this turn.
    pub(crate) fn settle(&mut self, engine: usize) {
        let mut unsettled = std::mem::take(&mut self.engines[engine].unsettled);
        for id in unsettled.drain(..) {
            self.flush(id);
        }
        self.engines[engine].unsettled = unsettled;
    }

    fn on_window_opens(&mut self, id: EndpointId, bytes: u64) {
        let sending = &mut self.end(id).sending;
        sending.outstanding -= bytes;
        let queued = sending.queued;
        self.flush(id);
        if self.end(id).sending.queued < queued {
            self.report(id);
        }
    }

    pub(crate) fn poll_drained(
        &mut self,
        id: EndpointId,
        most: u64,
    ) -> Poll<Result<(), StreamError>> {
        self.flush(id);
        let end = self.end(id);
        match end.error {
            Some(error) => Poll::Ready(Err(error)),
            None if end.established && end.sending.queued <= most => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    }

    // Receiving.

    fn on_arrives(&mut self, id: EndpointId, item: Item) {
        let elapsed = self.elapsed();
        self.ladder.note_item(elapsed, id, &item);
        if matches!(self.end(id).owner, Owner::Gone) {
            // Bytes for an end that is gone are answered with RST (RFC 9293 3.10.7.1).
            if matches!(item, Item::Segment(_)) {
                self.reset(id);
            }
            return;
        }
        self.receive(id, item);
    }

    pub(crate) fn receive(&mut self, id: EndpointId, item: Item) {
        let elapsed = self.elapsed();
        let end = self.end(id);
        if end.error.is_some() {
            return;
        }
        let ends = !matches!(item, Item::Segment(_));
        let resets = matches!(item, Item::Reset);
        match item {
            Item::Segment(bytes) => end.receiving.push(bytes),
            Item::Fin => end.receiving.finished = true,
            Item::Reset => {
                end.sending.discard();
                end.error = Some(StreamError::Reset);
            }
        }
        if let Owner::Client(side) = &mut end.owner {
            if ends {
                side.ended_at.get_or_insert(elapsed);
            }
            side.was_reset |= resets;
            self.client_reads(id);
        }
        self.report(id);
    }

    pub(crate) fn poll_readable(
        &mut self,
        id: EndpointId,
        least: usize,
    ) -> Poll<Result<Readable, StreamError>> {
        let end = self.end(id);
        let unread = end.receiving.unread_len;
        let finished = end.receiving.finished;
        end.receiving.seen_len = unread;
        let readable = Readable { unread, finished };
        // What arrived before the error can be read first, as on Linux.
        if unread > 0 && unread >= least {
            return Poll::Ready(Ok(readable));
        }
        if let Some(error) = end.error {
            return Poll::Ready(Err(error));
        }
        if finished || unread >= least {
            return Poll::Ready(Ok(readable));
        }
        self.flush(id);
        if let Some(error) = self.end(id).error {
            return Poll::Ready(Err(error));
        }
        self.widen(id.peer(), least);
        Poll::Pending
    }

    /// A reader that waits for more bytes than the peer's window holds would wait forever: the window grows.
    fn widen(&mut self, sender: EndpointId, least: usize) {
        let sending = &mut self.end(sender).sending;
        if sending.window < least as u64 {
            sending.window = least as u64;
            self.flush(sender);
        }
    }

    /// The reader has taken bytes: after the link's delay the sender has room for as many more.
    pub(crate) fn on_consumed(&mut self, id: EndpointId, len: usize) {
        if len > 0 {
            let at = self.now + self.end(id).link.delay;
            self.agenda
                .enter(at, Event::WindowOpens(id.peer(), len as u64));
        }
    }

    // Closing.

    /// The handle was dropped. What fits the window is still sent; bytes that arrived and that the owner never
    /// looked at make it an RST (RFC 9293 3.10.4 and RFC 1122 4.2.2.13), as in Linux.
    pub(crate) fn close(&mut self, id: EndpointId) {
        let elapsed = self.elapsed();
        let end = self.end(id);
        if let Owner::Task { engine, .. } = end.owner {
            end.owner = Owner::Gone;
            self.engines[engine].streams -= 1;
        }
        let end = self.end(id);
        if end.error.is_some() {
            return;
        }
        let unseen = end.receiving.unread_len > end.receiving.seen_len;
        if end.reset_on_close || unseen || !end.established {
            self.reset(id);
            return;
        }
        self.flush(id);
        let lost = self.end(id).sending.discard();
        if lost > 0 {
            let text = format_args!("closed, {lost} bytes did not fit the window and are lost");
            self.ladder.note(elapsed, id.peer(), text);
        }
        self.shutdown(id);
    }

    // Scripted clients.

    pub(crate) fn act(&mut self, id: EndpointId, action: Action) {
        match action {
            Action::Send(bytes) => {
                let len = bytes.len() as u64;
                self.write(id, Piece::Copy(bytes, 0), len);
                self.flush(id);
            }
            Action::Finish => self.shutdown(id),
            Action::Reset => self.reset(id),
            Action::Read(reading) => {
                if let Owner::Client(side) = &mut self.end(id).owner {
                    side.reading = reading;
                }
                self.client_reads(id);
            }
        }
    }

    /// A client reads as it is set to.
    fn client_reads(&mut self, id: EndpointId) {
        let end = self.end(id);
        let Owner::Client(side) = &mut end.owner else {
            return;
        };
        if end.receiving.unread_len == 0 || side.reading_due {
            return;
        }
        match side.reading {
            Reading::Stopped => {}
            Reading::AtOnce => self.client_takes(id, usize::MAX),
            Reading::Rate(rate) => {
                side.reading_due = true;
                let at = self.now + reading_step(rate).0;
                self.agenda.enter(at, Event::Reads(id));
            }
        }
    }

    fn on_reads(&mut self, id: EndpointId) {
        let Owner::Client(side) = &mut self.end(id).owner else {
            return;
        };
        side.reading_due = false;
        if let Reading::Rate(rate) = side.reading {
            self.client_takes(id, reading_step(rate).1);
        }
        self.client_reads(id);
    }

    fn client_takes(&mut self, id: EndpointId, len_max: usize) {
        let end = self.end(id);
        let Owner::Client(side) = &mut end.owner else {
            return;
        };
        if len_max == usize::MAX {
            side.segments_len
                .extend(end.receiving.unread.iter().map(Vec::len));
        }
        let taken = end.receiving.take_up_to(len_max);
        side.received.extend_from_slice(&taken);
        self.on_consumed(id, taken.len());
    }
}

/// How often a slow client reads, and how many bytes each time.
fn reading_step(bytes_per_second: u32) -> (Duration, usize) {
    let rate = bytes_per_second.max(1);
    if rate < READS_PER_SECOND {
        return (Duration::from_secs(1) / rate, 1);
    }
    let len = rate.div_ceil(READS_PER_SECOND);
    let interval = Duration::from_secs(1) * len / rate;
    (interval, len as usize)
}

/// How often at most a slow client reads in a second: fine enough that a rate is smooth to a test of seconds.
const READS_PER_SECOND: u32 = 100;

/// Linux: the stream was shut down for writing.
const EPIPE: i32 = 32;
