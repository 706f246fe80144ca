//! The passive side of a handshake, before there is a connection (RFC 9293 3.10.7.2, 3.10.7.4; RFC 4987).

use crate::arrived::SegmentDrop;
use crate::connection::Connection;
use crate::env::Env;
use crate::segment::{Segment, SegmentOut};
use crate::time::Tick;
use mill_wire::seq::SeqNumber;

/// A SYN that was answered: SYN-RECEIVED of a listener, in at most 64 bytes. SYN cookies make the same value from
/// the acknowledgement that comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HalfOpen {
    pub iss: SeqNumber,
    pub irs: SeqNumber,
    pub ts_offset: u32,
    /// The peer's first timestamp.
    pub ts_recent: u32,
    /// When the SYN-ACK is to be sent again, and how often it was.
    pub retransmit_at: Tick,
    pub retransmits: u8,
    /// What the peer announced; 536 if it did not (RFC 9293 3.7.1).
    pub mss: u16,
    /// What we announced.
    pub mss_local: u16,
    /// The peer's window in its SYN, not scaled.
    pub window: u16,
    /// What both sides agreed to; `None` if not both scale.
    pub snd_wind_shift: Option<u8>,
    pub timestamps: bool,
    pub sack: bool,
    pub ecn: bool,
}

const _: () = assert!(size_of::<HalfOpen>() <= 64);

/// What a segment meant to a half-open connection.
#[derive(Debug)]
pub enum HalfOpenOutcome {
    /// Its handshake is complete; the segment itself is to be given to `Connection::on_segment` next, for what else
    /// it carries.
    Established(Connection),
    /// A repeated SYN, or one out of window: this is to be sent.
    Answer(SegmentOut),
    /// An acceptable RST: it is to be forgotten.
    Reset,
    /// Nothing came of it.
    Dropped(SegmentDrop),
}

impl HalfOpen {
    /// An answer to a listener's SYN, for a path on which segments of `mss_local` fit.
    pub fn on_syn(
        syn: &Segment<'_>,
        iss: SeqNumber,
        ts_offset: u32,
        mss_local: u16,
        env: &mut Env<'_>,
    ) -> Self {
        let _ = env;
        Self {
            iss,
            irs: syn.seq,
            ts_offset,
            ts_recent: 0,
            retransmit_at: Tick::default(),
            retransmits: 0,
            mss: 536,
            mss_local,
            window: syn.window,
            snd_wind_shift: None,
            timestamps: false,
            sack: false,
            ecn: false,
        }
    }

    /// The SYN-ACK.
    pub fn syn_ack(&self, env: &mut Env<'_>) -> SegmentOut {
        let _ = env;
        SegmentOut::default()
    }

    /// A segment for it (RFC 9293 3.10.7.4 in SYN-RECEIVED).
    pub fn on_segment(&mut self, segment: &Segment<'_>, env: &mut Env<'_>) -> HalfOpenOutcome {
        let _ = (segment, env);
        HalfOpenOutcome::Dropped(SegmentDrop::NoAck)
    }

    /// `retransmit_at` has come: the SYN-ACK again, or `None` when it is to be forgotten.
    pub fn on_timer(&mut self, env: &mut Env<'_>) -> Option<SegmentOut> {
        let _ = env;
        None
    }
}
