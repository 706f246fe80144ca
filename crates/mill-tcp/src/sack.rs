//! Selective acknowledgements that arrive (RFC 2018 4, RFC 2883 4).

use crate::connection::{Cold, Connection};
use crate::env::Env;
use crate::scoreboard::Delivery;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp_option::SackBlocks;

impl Connection {
    /// Marks what the blocks report; `ack` is that of their segment. Returns the bytes that the peer says it got
    /// twice.
    pub(crate) fn take_sack_blocks(
        &self,
        cold: &mut Cold,
        blocks: &SackBlocks,
        ack: SeqNumber,
        delivery: &mut Delivery,
        env: &mut Env<'_>,
    ) -> u32 {
        let mut blocks = blocks.as_slice();
        let mut duplicate_bytes = 0;
        if let Some(duplicate) = self.duplicate_block(blocks, ack) {
            env.shared.counters.dsacks_in += 1;
            duplicate_bytes = duplicate;
            blocks = blocks.get(1..).unwrap_or_default();
        }
        for &(start, end) in blocks {
            // What was never sent, or makes no sense, is as if it were not there; as is what `ack` covers already.
            let is_sent = end.is_at_or_before(self.snd.nxt()) && start.is_before(end);
            if is_sent && end.is_after(ack) && start.is_at_or_after(ack) {
                cold.scoreboard.sack(start, end, delivery);
            }
        }
        duplicate_bytes
    }

    /// RFC 2883 4: the first block reports a duplicate if it lies before the acknowledgement, or inside the second
    /// block. Returns its length.
    fn duplicate_block(&self, blocks: &[(SeqNumber, SeqNumber)], ack: SeqNumber) -> Option<u32> {
        let &(start, end) = blocks.first()?;
        let len = end.since(start);
        let is_before_ack = end.is_at_or_before(ack)
            && ack.since(start) > 0
            && ack - start <= self.snd.wnd_max().max(SENT_LATELY_BYTES);
        let is_inside_second = blocks.get(1).is_some_and(|second| {
            start.is_at_or_after(second.0)
                && end.is_at_or_before(second.1)
                && second.1.is_at_or_before(self.snd.nxt())
                && start.is_at_or_after(ack)
        });
        if len > 0 && (is_before_ack || is_inside_second) {
            u32::try_from(len).ok()
        } else {
            None
        }
    }
}

/// How far before the acknowledgement a duplicate may lie, if no window was ever larger: bytes of the largest window
/// without scaling. Older ones say nothing of what is in flight now.
const SENT_LATELY_BYTES: u32 = 65_535;
