//! A TCP segment, as the judge of a world reads it.

use super::{Record, flow_of};
use crate::packet::carrier::Effect;
use crate::packet::layout::{Layout, TCP};
use mill_runtime::time::Instant;
use mill_wire::tcp::{Flags, TcpHeader};
use std::net::SocketAddr;

/// A TCP segment that was sent, and whether it came to where it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentSegment {
    pub at: Instant,
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub flags: Flags,
    pub seq: u32,
    /// What it acknowledges, if it has the flag.
    pub ack: Option<u32>,
    /// Sequence numbers that it takes: payload, SYN and FIN.
    pub len: u32,
    /// One copy of it at least was neither dropped nor damaged.
    pub has_arrived: bool,
}

impl SentSegment {
    pub(super) fn of(record: &Record) -> Option<Self> {
        let head = &record.head[..];
        let layout = Layout::of_head(head).filter(|it| it.protocol == TCP && !it.is_fragment)?;
        let (from, to) = flow_of(head, &layout)?;
        let (header, header_len) = TcpHeader::parse(head.get(layout.transport..)?).ok()?;
        let flags = header.flags;
        let payload = (layout.end - layout.transport).checked_sub(header_len)?;
        let numbers = u32::from(flags.has(Flags::SYN)) + u32::from(flags.has(Flags::FIN));
        Some(Self {
            at: record.at,
            from,
            to,
            flags,
            seq: header.seq.0,
            ack: flags.has(Flags::ACK).then_some(header.ack.0),
            len: u32::try_from(payload).ok()? + numbers,
            has_arrived: has_arrived(record.effects.iter().map(|(_, effect)| effect)),
        })
    }
}

/// Whether fewer copies were spoilt than there were.
fn has_arrived<'a>(effects: impl Iterator<Item = &'a Effect>) -> bool {
    let (mut copies, mut spoilt) = (1, 0);
    for effect in effects {
        match effect {
            Effect::Duplicated => copies += 1,
            Effect::Marked | Effect::Overtaken(_) => {}
            Effect::Lost
            | Effect::Cut
            | Effect::QueueFull
            | Effect::TooBig(_)
            | Effect::Corrupted
            | Effect::Overrun => spoilt += 1,
        }
    }
    spoilt < copies
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_runtime::time::Duration;

    #[test]
    fn a_segment_has_arrived_if_one_copy_of_it_has() {
        let check = |effects: &[Effect], expected: bool| {
            assert_eq!(has_arrived(effects.iter()), expected, "{effects:?}");
        };
        check(&[], true);
        check(&[Effect::Marked, Effect::Overtaken(Duration::ZERO)], true);
        for spoils in [
            Effect::Lost,
            Effect::Cut,
            Effect::QueueFull,
            Effect::TooBig(1280),
            Effect::Corrupted,
            Effect::Overrun,
        ] {
            check(&[spoils], false);
            check(&[Effect::Duplicated, spoils], true);
            check(&[Effect::Duplicated, spoils, spoils], false);
        }
    }
}
