//! Fast Open, the client's side (RFC 7413): the SYN asks for a cookie, or has one and the first bytes of the queue beside
//! it. Which cookies are known, and what becomes of new ones, are the host's business.
//!
//! ```text
//! client                                   server
//!   SYN, cookie, text  -------------->
//!                      <--------------    SYN-ACK of SYN and text:  the text is acknowledged
//!                      <--------------    SYN-ACK of the SYN only:  the text is sent again, at once
//!   (no answer) SYN, plain  --------->    in case it was the option or the text that a box on the way drops
//! ```
//!
//! Until the handshake is complete the text counts as not sent: SND.NXT stands behind the SYN, so that whatever the
//! peer has not taken leaves as new data does, with nothing to undo. What was sent is remembered here, to know which
//! acknowledgements are right.

use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::segment::SegmentOut;
use crate::state::State;
use alloc::boxed::Box;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp_option::{FastOpenCookie, OPTIONS_BYTES_MAX};

/// What only an opening connection has to know; it lies in the cold part until the handshake is complete.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handshake {
    /// The MSS that our SYN announces, whatever the other side's is.
    pub(crate) mss_announced: Option<u16>,
    option: Option<FastOpenCookie>,
    text_max: u16,
    /// Bytes of text that the first SYN carried.
    sent: u16,
}

impl Connection {
    /// For a connection whose SYN has not left: it carries `option`, an empty one to ask for a cookie, and up to
    /// `text_max` bytes of what is queued by then, as far as they fit into one segment beside any options.
    pub fn ask_fast_open(
        &mut self,
        option: Option<FastOpenCookie>,
        text_max: u16,
        env: &mut Env<'_>,
    ) {
        debug_assert_eq!(self.state, State::SynSent);
        debug_assert!(self.snd.is_all_acknowledged(), "the SYN has left");
        let text_max = text_max.min(self.snd_mss.saturating_sub(SYN_OPTIONS_BYTES));
        *self.handshake_part(env) = Handshake {
            option,
            text_max,
            ..Handshake::default()
        };
    }

    /// The other side has taken all text of the SYN.
    pub const fn is_syn_text_taken(&self) -> bool {
        self.flags.has(ConnectionFlags::SYN_TEXT_TAKEN)
    }

    /// The first SYN with what was asked for.
    pub(crate) fn add_fast_open(&mut self, syn: &mut SegmentOut, queued: u64) {
        let mss = self.snd_mss;
        let cold = self.cold.as_mut();
        let Some(asked) = cold.and_then(|cold| cold.handshake.as_deref_mut()) else {
            return;
        };
        let queued = u16::try_from(queued).unwrap_or(u16::MAX);
        asked.sent = queued.min(asked.text_max);
        syn.options.fast_open = asked.option;
        syn.len = u32::from(asked.sent);
        syn.mss = mss;
    }

    /// Bytes behind the SYN that an acknowledgement may cover.
    pub(crate) fn syn_text(&self) -> u32 {
        let asked = self.cold.as_ref().and_then(|cold| cold.handshake.as_ref());
        asked.map_or(0, |asked| u32::from(asked.sent))
    }

    /// The handshake is complete, with this acknowledgement: how many bytes behind the SYN it covers.
    pub(crate) fn take_syn_text_ack(&mut self, ack: SeqNumber) -> u32 {
        let sent = self.syn_text();
        if let Some(cold) = &mut self.cold {
            cold.handshake = None;
        }
        let acked = ack - self.snd.nxt();
        debug_assert!(acked <= sent && self.snd.is_all_acknowledged());
        if acked > 0 {
            self.snd.on_syn_text_acknowledged(ack);
            self.flags
                .set(ConnectionFlags::SYN_TEXT_TAKEN, acked == sent);
        }
        acked
    }

    pub(crate) fn handshake_part(&mut self, env: &mut Env<'_>) -> &mut Handshake {
        self.cold_part(env)
            .handshake
            .get_or_insert_with(Box::default)
    }

    /// A router says that the SYN was too large, which its text has made it: a plain one leaves at once. It counts as
    /// the first, for nothing was lost.
    pub(crate) fn on_syn_too_big(&mut self, seq: SeqNumber, mss: u16) -> bool {
        let end = self.snd.nxt() + self.syn_text();
        let is_ours = seq.is_at_or_after(self.snd.una()) && seq.is_before(end);
        let was_repeated = self.flags.has(ConnectionFlags::SYN_RETRANSMITTED);
        if self.syn_text() == 0 || !is_ours || was_repeated {
            return false;
        }
        if let Some(cold) = &mut self.cold {
            cold.handshake = None;
        }
        self.snd_mss = mss;
        self.snd.take_syn_back();
        self.flags.set(ConnectionFlags::SYN_DUE, true);
        true
    }
}

/// Room for the options of a SYN, whichever they are.
const SYN_OPTIONS_BYTES: u16 = 40;

const _: () = assert!(SYN_OPTIONS_BYTES as usize == OPTIONS_BYTES_MAX);

#[cfg(test)]
mod tests;
