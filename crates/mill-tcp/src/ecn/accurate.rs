//! Accurate ECN as a server (RFC 9768): how many packets came marked, in three bits of each segment.
//!
//! ```text
//! client                              server
//!   SYN  AE CWR ECE  ------------->     Feedback::Accurate
//!        <-------------  SYN-ACK with the mark that the SYN had     (3.1.1, table 2)
//!   ACK with the mark that the SYN-ACK had  ----->                  (3.2.2.1, table 4)
//!        <------------>  ACE: packets that came marked, modulo 8    (3.2.2)
//! ```
//!
//! The counters are modulo 8 as they are on the wire: a sender that takes one reduction a round trip has no use for more. AccECN
//! options are neither sent nor read, which leaves stretch acknowledgements of eight marks, or sixteen, unseen (3.2.2.5.2).

use crate::connection::{Connection, ConnectionFlags};
use crate::segment::{Ecn, Segment};
use mill_wire::tcp::Flags;

/// What both sides tell each other of marks (RFC 9768 3.1.2, table 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    #[default]
    None,
    /// ECE until CWR (RFC 3168 6.1).
    Classic,
    /// A count. The latest SYN of the peer had this mark; and whether our data may leave as capable: not if a SYN of either
    /// side went without the flags (RFC 9768 3.1.5).
    Accurate { syn: Ecn, is_capable: bool },
}

impl Feedback {
    pub const fn is_accurate(self) -> bool {
        matches!(self, Self::Accurate { .. })
    }

    /// The flags of a SYN-ACK.
    pub(crate) const fn of_syn_ack(self) -> Flags {
        match self {
            Self::None => Flags(0),
            Self::Classic => Flags::ECE,
            Self::Accurate { syn, .. } => ace(of_mark(syn)),
        }
    }
}

/// Both counters of marked packets, and marks that came without text since we acknowledged something, in a byte.
///
/// Zero before accurate ECN is agreed, and without it: so its flags are those that are expected on every connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MarkCounters(u8);

impl MarkCounters {
    /// RFC 9768 3.2.1: r.cep and s.cep begin with 5, not with what a cleared field says.
    const INITIAL: Self = Self(CEP_INITIAL | CEP_INITIAL << 3);

    /// r.cep: what came marked.
    const fn received(self) -> u8 {
        self.0 & 7
    }

    /// s.cep: what the peer says came marked.
    const fn sent(self) -> u8 {
        self.0 >> 3 & 7
    }

    const fn pending(self) -> u8 {
        self.0 >> 6
    }

    const fn set_sent(&mut self, count: u8) {
        self.0 = self.0 & !(7 << 3) | (count & 7) << 3;
    }

    /// So many packets came marked. Says whether that is to be told although nothing else is (RFC 9768 3.2.2.5.1): three of
    /// them, so that two sides that mark each other's acknowledgements come to an end.
    fn on_marked(&mut self, packets: u16) -> bool {
        let [low, _] = packets.to_le_bytes();
        let received = self.received().wrapping_add(low) & 7;
        let pending = packets
            .saturating_add(self.pending().into())
            .min(PENDING_MAX);
        let [pending, _] = pending.to_le_bytes();
        self.0 = self.0 & (7 << 3) | received | pending << 6;
        u16::from(pending) >= PENDING_MAX
    }

    /// Something that says r.cep leaves.
    #[inline]
    pub(crate) const fn on_told(&mut self) {
        self.0 &= !(3 << 6);
    }

    /// The flags of a segment whose sender has seen no mark since the last one.
    #[inline]
    pub(crate) const fn expected(self) -> Flags {
        ace(self.sent())
    }

    /// The flags of what leaves.
    #[inline]
    pub(crate) const fn told(self) -> Flags {
        ace(self.received())
    }
}

impl Connection {
    /// Accurate feedback begins with the segment that completes the handshake, whose ACE field says how our SYN-ACK arrived
    /// (RFC 9768 3.2.2.1, table 4). It left as not capable, so that any mark on it tells of a path that overwrites
    /// them (3.2.2.3). Says whether it arrived marked as congested.
    pub(crate) fn begin_accurate(&mut self, segment: &Segment<'_>, is_capable: bool) -> bool {
        self.flags.set(ConnectionFlags::ACCURATE, true);
        self.flags.set(ConnectionFlags::NOT_CAPABLE, !is_capable);
        self.marks = MarkCounters::INITIAL;
        let count = ace_of(segment.flags);
        let is_pure = segment.is_empty() && segment.options.sack.is_empty();
        match count {
            0 => self.distrust(),
            CEP_INITIAL.. if !is_pure => {}
            MARK_1 | MARK_0 if is_pure => self.flags.set(ConnectionFlags::NOT_CAPABLE, true),
            MARK_CONGESTED => {
                self.flags.set(ConnectionFlags::NOT_CAPABLE, true);
                self.marks.set_sent(CEP_INITIAL + 1);
                return true;
            }
            _ => {}
        }
        false
    }

    /// What was agreed, for another host that goes on with the connection.
    pub(crate) fn feedback(&self) -> Feedback {
        if self.flags.has(ConnectionFlags::ACCURATE) {
            Feedback::Accurate {
                syn: Ecn::NotCapable,
                is_capable: !self.flags.has(ConnectionFlags::NOT_CAPABLE),
            }
        } else if self.flags.has(ConnectionFlags::ECN) {
            Feedback::Classic
        } else {
            Feedback::None
        }
    }

    /// A field that is cleared says nothing: data leaves as not capable, and what is said of marks is not believed
    /// (RFC 9768 3.2.2.1 note 1, 3.2.2.4). Marks of the peer's packets are still told.
    fn distrust(&mut self) {
        self.flags.set(ConnectionFlags::NOT_CAPABLE, true);
        self.flags.set(ConnectionFlags::MARKS_IGNORED, true);
    }

    /// An acknowledgement that is not older than another one before it: whether it tells of new marks (RFC 9768 3.2.2.2).
    pub(crate) fn take_marks(&mut self, segment: &Segment<'_>) -> bool {
        if !self.flags.has(ConnectionFlags::ACCURATE) || segment.flags.has(Flags::SYN) {
            return false;
        }
        let count = ace_of(segment.flags);
        let is_first = !self.flags.has(ConnectionFlags::MARKS_TOLD);
        self.flags.set(ConnectionFlags::MARKS_TOLD, true);
        if is_first && count == 0 {
            self.distrust();
        }
        let is_new = count != self.marks.sent();
        self.marks.set_sent(count);
        is_new && !self.flags.has(ConnectionFlags::MARKS_IGNORED)
    }

    /// An acceptable segment came: counts it if it is marked. Text that is marked is acknowledged at once (RFC 9768 3.2.2.5.1),
    /// so that at most as many marks are untold as a device merges.
    pub(super) fn count_mark(&mut self, segment: &Segment<'_>) {
        if segment.ecn != Ecn::Congested {
            return;
        }
        let are_many = self.marks.on_marked(segment.merged.max(1));
        if are_many || !segment.payload.is_empty() {
            self.flags.set(ConnectionFlags::ACK_NOW, true);
        }
    }

    /// Whether a device that cuts segments would change what they say: it takes CWR from all but the first, which is a bit of
    /// the count here.
    pub(crate) const fn may_not_be_cut(&self) -> bool {
        self.marks.told().has(Flags::CWR)
    }

    /// The accurate feedback that a SYN asks for, where that is wanted: by any flags that are no older request
    /// (RFC 9768 3.1.1, 3.1.3).
    pub(crate) const fn asked_by(syn: &Segment<'_>) -> Option<Feedback> {
        match ace_of(syn.flags) {
            0 | CLASSIC => None,
            _ => Some(Feedback::Accurate {
                syn: syn.ecn,
                is_capable: true,
            }),
        }
    }
}

/// Whether the acknowledgement of a SYN-ACK that nothing is remembered of is one of accurate ECN: these use neither 0 nor 1
/// there (RFC 9768 5.1).
pub const fn is_accurate_ack(flags: Flags) -> bool {
    ace_of(flags) > 1
}

/// The bits of AE, CWR and ECE as a number (RFC 9768 3.2.2).
pub(crate) const fn ace_of(flags: Flags) -> u8 {
    let [low, ..] = (flags.0 >> ACE_AT).to_le_bytes();
    low & 7
}

/// A number as these flags.
pub(crate) const fn ace(count: u8) -> Flags {
    Flags(((count & 7) as u16) << ACE_AT)
}

/// How the handshake says that a mark arrived (RFC 9768 3.1.2 table 2, 3.2.2.1 table 3).
const fn of_mark(mark: Ecn) -> u8 {
    match mark {
        Ecn::NotCapable => MARK_NONE,
        Ecn::Capable1 => MARK_1,
        Ecn::Capable0 => MARK_0,
        Ecn::Congested => MARK_CONGESTED,
    }
}

const MARK_NONE: u8 = 0b010;
const MARK_1: u8 = 0b011;
const MARK_0: u8 = 0b100;
const MARK_CONGESTED: u8 = 0b110;

/// The flags of a SYN that asks for classic ECN (RFC 3168 6.1.1), as a number.
pub(crate) const CLASSIC: u8 = 0b011;

/// The first value of both counters (RFC 9768 3.2.1).
pub(crate) const CEP_INITIAL: u8 = 5;

/// Marked packets without text that are told at the latest (RFC 9768 3.2.2.5.1).
const PENDING_MAX: u16 = 3;

/// Where ECE lies in the flags; CWR and AE follow it.
const ACE_AT: u16 = 6;

const _: () = assert!(
    Flags::ECE.0 == 1 << ACE_AT && Flags::CWR.0 == 2 << ACE_AT && Flags::AE.0 == 4 << ACE_AT
);

#[cfg(test)]
mod tests;
