//! What the workers of one process share: the table of what is served, and the rings of queues with several sockets.
//!
//! It is opened once, before the first worker starts: a worker that opened it later would find descriptors that another
//! one has consumed already. A process that is forked later opens its own.

use super::AfXdp;
use crate::network::ENODEV;
use crate::steering::Table;
use mill_sys::memory::SharedMemory;
use mill_sys::xsk::XskPool;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shared by the attachments of a device.
#[derive(Debug)]
pub(super) struct SharedResources {
    workers: u32,
    /// How many workers the program distinguishes at each queue.
    workers_a_queue: u32,
    opened: Mutex<Option<Opened>>,
}

#[derive(Debug)]
struct Opened {
    table: Table,
    pools: BTreeMap<u32, XskPool>,
}

impl SharedResources {
    pub(super) fn new(workers: u32, workers_a_queue: u32) -> Self {
        Self {
            workers,
            workers_a_queue,
            opened: Mutex::new(None),
        }
    }

    pub(super) fn is_for_one(&self) -> bool {
        self.workers <= 1
    }

    /// Whether the program gives all frames of a queue to one worker.
    pub(super) fn are_queues_one_workers(&self) -> bool {
        self.workers_a_queue == 1
    }

    /// Opens all of it; nothing is served yet.
    pub(super) fn open(&self, attachments: &[&AfXdp<OwnedFd>]) -> io::Result<()> {
        let first = attachments.first().ok_or_else(not_opened)?;
        let [served, counters] = &first.table;
        let table = Table::open([served.try_clone()?, counters.try_clone()?])?;
        table.set_sharers(self.workers);
        table.set_workers(self.workers_a_queue);
        let mut of_queues: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        for socket in attachments
            .iter()
            .flat_map(|attachment| &attachment.sockets)
        {
            if socket.options.sharers > 1 {
                of_queues.entry(socket.queue).or_default().push(socket);
            }
        }
        let mut pools = BTreeMap::new();
        for (queue, mut sockets) in of_queues {
            sockets.sort_by_key(|socket| socket.place);
            let Some(first) = sockets.first() else {
                continue;
            };
            let memory = SharedMemory::open(first.memory.try_clone()?)?;
            let descriptors: Vec<_> = sockets
                .iter()
                .map(|socket| socket.descriptor.as_fd())
                .collect();
            pools.insert(queue, XskPool::open(&descriptors, memory, &first.options)?);
        }
        *self.lock() = Some(Opened { table, pools });
        Ok(())
    }

    pub(super) fn table(&self) -> io::Result<Table> {
        let opened = self.lock();
        let table = opened.as_ref().map(|opened| opened.table.clone());
        table.ok_or_else(not_opened)
    }

    pub(super) fn pool(&self, queue: u32) -> io::Result<XskPool> {
        let opened = self.lock();
        let pool = opened.as_ref().and_then(|opened| opened.pools.get(&queue));
        pool.cloned().ok_or_else(not_opened)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The attachments were prepared, unless the interface is gone.
fn not_opened() -> io::Error {
    io::Error::from_raw_os_error(ENODEV)
}
