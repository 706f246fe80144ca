//! Destinations of captured frames: a file, or the queue of a reader that writes them itself.

use super::filter::FrameFilter;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// A destination.
#[derive(Debug)]
pub(super) enum Sink {
    File(File),
    Queue(FrameSender),
}

/// The link's end of a queue of frames. The link never waits: what does not fit into the queue is lost, and counted.
#[derive(Clone, Debug)]
pub struct FrameSender {
    blocks: SyncSender<Vec<u8>>,
    lost_blocks: Arc<AtomicU64>,
    pub(super) filter: FrameFilter,
}

/// The reader's end: blocks of complete records, without the file header.
#[derive(Debug)]
pub struct FrameReceiver {
    pub blocks: Receiver<Vec<u8>>,
    lost_blocks: Arc<AtomicU64>,
}

/// Makes a queue for frames that match.
pub fn queue(filter: FrameFilter) -> (FrameSender, FrameReceiver) {
    let (sender, blocks) = sync_channel(BLOCKS_MAX);
    let lost_blocks = Arc::new(AtomicU64::new(0));
    let sender = FrameSender {
        blocks: sender,
        lost_blocks: Arc::clone(&lost_blocks),
        filter,
    };
    let receiver = FrameReceiver {
        blocks,
        lost_blocks,
    };
    (sender, receiver)
}

impl FrameSender {
    /// Sends complete records; false if the reader has closed its end.
    pub fn give(&self, records: Vec<u8>) -> bool {
        match self.blocks.try_send(records) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.lost_blocks.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

impl FrameReceiver {
    /// Blocks that did not fit into the queue; each may have many frames.
    pub fn lost_blocks(&self) -> u64 {
        self.lost_blocks.load(Ordering::Relaxed)
    }
}

impl Sink {
    /// Writes complete records. After an error the destination takes no more.
    pub(super) fn write(&mut self, records: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.write_all(records),
            Self::Queue(sender) if sender.give(records.to_vec()) => Ok(()),
            Self::Queue(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// The selection of frames.
    pub(super) fn filter(&self) -> FrameFilter {
        match self {
            Self::File(_) => FrameFilter::default(),
            Self::Queue(sender) => sender.filter,
        }
    }
}

/// Blocks that may wait to be written: 16 MiB at most.
const BLOCKS_MAX: usize = 64;
