//! Local ports of connections that several processes open over one interface: a block of ports belongs to one process at a time,
//! so that no two connections have the same addresses and ports.
//!
//! The blocks are words of shared memory, each with the number of the process that has it, or 0. A process takes blocks as it
//! needs ports, and keeps them to its end; it leaves the others as many as it has itself, so the first can have half of all, and
//! the next one half of the rest.

use mill_sys::memory::words;
use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

/// The blocks, as one process sees them.
#[derive(Clone, Debug)]
pub struct PortBlocks {
    blocks: &'static [AtomicU64],
    own: u64,
    /// Indices of the blocks that lie in the range of local ports.
    first: usize,
    last: usize,
}

impl PortBlocks {
    /// Makes the memory: no process has a block.
    pub fn create() -> io::Result<File> {
        words::create("millstream-ports", BLOCKS)
    }

    /// The blocks of `memory` for process `own`, not 0, whose local ports are of this range.
    pub fn open(memory: &File, own: u64, ports: &RangeInclusive<u16>) -> io::Result<Self> {
        let block = |port: u16| usize::from(port / BLOCK_PORTS);
        Ok(Self {
            blocks: words::map(memory, BLOCKS)?,
            own,
            first: block(*ports.start()),
            last: block(*ports.end()),
        })
    }

    /// Whether connections may be opened from this port; takes its block if no process has it and enough are left. A load, as
    /// long as the block has an owner.
    pub fn may_use(&self, port: u16) -> bool {
        let Some(block) = self.blocks.get(usize::from(port / BLOCK_PORTS)) else {
            return false;
        };
        match block.load(Ordering::Relaxed) {
            0 => self.leaves_enough() && self.take(block),
            owner => owner == self.own,
        }
    }

    fn take(&self, block: &AtomicU64) -> bool {
        let taken = block.compare_exchange(0, self.own, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok()
    }

    fn leaves_enough(&self) -> bool {
        let blocks = self.blocks.get(self.first..=self.last).unwrap_or_default();
        let (mut own, mut free) = (0_usize, 0_usize);
        for block in blocks {
            match block.load(Ordering::Relaxed) {
                0 => free += 1,
                owner if owner == self.own => own += 1,
                _ => {}
            }
        }
        free > own
    }

    /// Gives up all blocks of a process that has ended.
    pub fn release(&self, process: u64) {
        for block in self.blocks {
            let _ = block.compare_exchange(process, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

/// Few enough that a process has ports to choose from, many enough that several processes get some.
const BLOCK_PORTS: u16 = 64;
const BLOCKS: usize = 65536 / BLOCK_PORTS as usize;

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: RangeInclusive<u16> = 10240..=32767;

    fn used(blocks: &PortBlocks) -> Vec<u16> {
        RANGE.filter(|port| blocks.may_use(*port)).collect()
    }

    #[test]
    fn no_two_processes_have_the_same_port_and_each_has_some() {
        let memory = PortBlocks::create().unwrap();
        let open = |own| PortBlocks::open(&memory, own, &RANGE).unwrap();
        let processes: Vec<PortBlocks> = (1..=6).map(open).collect();
        let ports: Vec<Vec<u16>> = processes.iter().map(used).collect();
        let counts: Vec<usize> = ports.iter().map(Vec::len).collect();
        // 352 blocks.
        assert_eq!(counts, [176, 88, 44, 22, 11, 6].map(|blocks| blocks * 64));
        let mut all = ports.concat();
        all.sort_unstable();
        let len = all.len();
        all.dedup();
        assert_eq!(all.len(), len);
        // Each keeps its ports, and gets no others.
        assert_eq!(used(&processes[1]), ports[1]);
    }

    #[test]
    fn blocks_of_a_process_that_has_ended_are_free_again() {
        let memory = PortBlocks::create().unwrap();
        let open = |own| PortBlocks::open(&memory, own, &RANGE).unwrap();
        let (ended, other) = (open(1), open(2));
        assert_eq!(used(&ended).len(), 176 * 64);
        assert!(!other.may_use(10240));
        other.release(1);
        assert!(other.may_use(10240) && !ended.may_use(10240));
    }

    #[test]
    fn a_range_of_one_block_is_the_first_ones() {
        let memory = PortBlocks::create().unwrap();
        let open = |own| PortBlocks::open(&memory, own, &(64..=127)).unwrap();
        let (first, second) = (open(1), open(2));
        assert!(first.may_use(64) && first.may_use(127));
        assert!(!second.may_use(64) && !second.may_use(100));
    }
}
