//! Fast Open, the host's part (RFC 7413 4.1, 5.1): cookies, and how many connections may be open without a complete
//! handshake.

use crate::flow::Flow;
use crate::host::Host;
use crate::queue::SendQueue;
use crate::slot::SlotFlags;
use crate::socket::ListenerId;
use core::ops::Range;
use mill_tcp::connection::Connection;
use mill_tcp::segment::Segment;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp_option::FastOpenCookie;

/// The result of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FastOpen {
    /// It is an ordinary one.
    No,
    /// The peer gets this cookie for the next time.
    Give(FastOpenCookie),
    /// Its cookie is good.
    Open,
}

/// A connection that its SYN has opened, and the part of the SYN's payload that is for the reader.
pub(super) struct Opened {
    pub(super) index: u32,
    pub(super) deliver: Range<usize>,
}

impl<Q: SendQueue> Host<Q> {
    pub(super) fn fast_open_of(&self, id: ListenerId, flow: &Flow, syn: &Segment<'_>) -> FastOpen {
        let Some(listener) = self.listeners.at(id) else {
            return FastOpen::No;
        };
        let Some(may_open) = listener.may_open_fast() else {
            return FastOpen::No;
        };
        if listener.options.fast_open_without_cookie && !syn.payload.is_empty() && may_open {
            return FastOpen::Open;
        }
        let Some(theirs) = syn.options.fast_open else {
            return FastOpen::No;
        };
        let good = self.secrets.fast_open_cookie(flow).in_form_of(theirs);
        // RFC 7413 4.2.2: a peer that requests one, or has an old cookie, gets one. RFC 7413 5.1: while too many
        // connections are open by cookie alone, the next ones make the whole handshake.
        if theirs != good {
            FastOpen::Give(good)
        } else if may_open {
            FastOpen::Open
        } else {
            FastOpen::No
        }
    }

    /// The connection is there at once; `numbers` are ISS, timestamp offset and MSS.
    pub(super) fn open_fast(
        &mut self,
        id: ListenerId,
        flow: &Flow,
        hash: u64,
        syn: &Segment<'_>,
        numbers: (SeqNumber, u32, u16),
    ) -> Opened {
        let (iss, ts_offset, mss) = numbers;
        let config = self.listeners.at(id).map_or(0, |listener| listener.config);
        let env = &mut self.tcp_context.env(config, self.now);
        let (connection, arrived) = Connection::accept_fast_open(syn, iss, ts_offset, mss, env);
        let index = self.establish(id, *flow, hash, None, connection);
        if let Some(slot) = self.slots.at_mut(index) {
            slot.flags.set(SlotFlags::FAST_OPEN);
        }
        if let Some(listener) = self.listeners.at_mut(id) {
            listener.on_fast_open();
        }
        self.counters.fast_opens += 1;
        self.slots.want_transmit(index);
        Opened {
            index,
            deliver: arrived.deliver,
        }
    }

    /// The handshake is complete, which proves the peer's address, or the connection is over.
    pub(crate) fn end_fast_open(&mut self, index: u32) {
        let Some(slot) = self.slots.at_mut(index) else {
            return;
        };
        if slot.flags.has(SlotFlags::FAST_OPEN) {
            slot.flags.clear(SlotFlags::FAST_OPEN);
            let id = ListenerId(slot.listener);
            if let Some(listener) = self.listeners.at_mut(id) {
                listener.on_fast_open_over();
            }
        }
    }
}
