//! A sending connection whose peer is the test.

use crate::config::Config;
use crate::connection::Connection;
use crate::pair::{Draft, Pair, SERVER, pattern};
use crate::recovery::Phase;
use crate::segment::SegmentOut;
use crate::time::Duration;
use alloc::vec::Vec;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp_option::SackBlocks;

/// A server with an endless queue, whose client is the test: it sees every segment and answers none by itself.
pub(crate) struct Sender {
    pub(crate) pair: Pair,
    /// The first byte of data.
    pub(crate) start: SeqNumber,
    mss: u32,
}

impl Sender {
    pub(crate) fn new(config: &Config) -> Self {
        let mut pair = Pair::established(config);
        // Its acknowledgements are the test's.
        pair.wire.lost = 1_000;
        let start = pair.connection(SERVER).snd.nxt();
        let mss = pair.connection(SERVER).snd_mss.into();
        Self { pair, start, mss }
    }

    /// Writes so many segments and returns what leaves, each as (first segment, segments).
    pub(crate) fn write(&mut self, segments: u32) -> Vec<(u32, u32)> {
        let from = self.pair.log.len();
        self.pair
            .write(SERVER, &pattern((segments * self.mss()) as usize));
        self.pair.flush();
        self.left_since(from)
    }

    pub(crate) const fn mss(&self) -> u32 {
        self.mss
    }

    pub(crate) fn connection(&mut self) -> &mut Connection {
        self.pair.connection(SERVER)
    }

    /// What left, in segments counted from the first.
    pub(crate) fn left_since(&self, from: usize) -> Vec<(u32, u32)> {
        let sent = self.pair.sent_since(from, SERVER);
        let number = |segment: &SegmentOut| {
            (
                (segment.seq - self.start) / self.mss(),
                segment.len.div_ceil(self.mss()),
            )
        };
        sent.iter()
            .filter(|segment| segment.len > 0)
            .map(number)
            .collect()
    }

    /// The acknowledgement of so many segments.
    pub(crate) fn ack(&self, segments: u32) -> Draft {
        let mut draft = self.pair.draft(SERVER);
        draft.ack = self.start + segments * self.mss();
        draft
    }

    /// Gives an acknowledgement of `acked` segments with reports of others; returns what leaves.
    pub(crate) fn acked(&mut self, acked: u32, sacked: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let mut draft = self.ack(acked);
        let mut blocks = SackBlocks::default();
        for &(first, end) in sacked {
            let mss = self.mss();
            assert!(blocks.push(self.start + first * mss, self.start + end * mss));
        }
        draft.options.sack = blocks;
        self.give(&draft)
    }

    pub(crate) fn give(&mut self, draft: &Draft) -> Vec<(u32, u32)> {
        let from = self.pair.log.len();
        self.pair.give(SERVER, draft);
        self.left_since(from)
    }

    /// Lets time go by, and returns what leaves meanwhile.
    pub(crate) fn wait_ms(&mut self, ms: u64) -> Vec<(u32, u32)> {
        let from = self.pair.log.len();
        self.pair.run_for(Duration::from_millis(ms));
        self.left_since(from)
    }

    pub(crate) fn phase(&mut self) -> Phase {
        let connection = self.connection();
        connection
            .cold
            .as_ref()
            .map_or(Phase::Open, |cold| cold.recovery.phase())
    }

    pub(crate) fn cwnd(&mut self) -> u32 {
        let mss = self.mss();
        self.connection().congestion.cwnd() / mss
    }
}
