//! Where workers send their lines: the writer thread, or memory in tests.

use super::queue::{Queue, Shared};
use super::writer::Command;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Given to each worker thread, which makes its [`super::WorkerLog`] of it.
#[derive(Clone, Debug)]
pub struct LogSender(pub(super) Sink);

/// The destination of lines.
#[derive(Clone, Debug)]
pub(super) enum Sink {
    Writer(Arc<Shared<Command>>),
    Memory(Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>),
}

/// A worker's end of it.
#[derive(Debug)]
pub(super) enum Outlet {
    Writer(Arc<Shared<Command>>, Arc<Queue>),
    Memory(Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>),
}

impl LogSender {
    /// Keeps all lines in memory: for simulations, which have no threads and no disk.
    pub fn memory() -> Self {
        Self(Sink::Memory(Arc::default()))
    }

    /// The lines that went to `path` (`stderr` for the error log of that name), if this is a memory sender.
    pub fn lines(&self, path: impl AsRef<[u8]>) -> Vec<String> {
        let Sink::Memory(files) = &self.0 else {
            return Vec::new();
        };
        let files = files.lock().unwrap_or_else(PoisonError::into_inner);
        let content = files.get(path.as_ref()).map(Vec::as_slice);
        let content = String::from_utf8_lossy(content.unwrap_or_default());
        content.lines().map(String::from).collect()
    }

    pub(super) fn outlet(&self) -> Outlet {
        match &self.0 {
            Sink::Writer(shared) => Outlet::Writer(Arc::clone(shared), shared.add_queue()),
            Sink::Memory(files) => Outlet::Memory(Arc::clone(files)),
        }
    }
}
