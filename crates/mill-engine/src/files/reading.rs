//! How the files of each file system are read, as far as that has been learnt.

use mill_sys::file::{self, FileSystem};
use std::cell::RefCell;
use std::os::fd::BorrowedFd;

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Its file system is asked whether the bytes are in memory.
    Asked,
    /// By a helper thread, which finds out on the way which kind of file system it is: it cannot tell what is in memory.
    Unknown,
    /// At once: they are in memory, or nothing can tell.
    InWorker,
    /// Always by a helper thread.
    ByHelper,
}

/// What is known of file systems, by their devices' numbers; all others are asked.
#[derive(Debug, Default)]
pub(super) struct FileSystems(RefCell<Vec<(u64, Reading)>>);

impl FileSystems {
    pub(super) fn reading(&self, device: u64) -> Reading {
        let known = self.0.borrow();
        let known = known.iter().find(|(number, _)| *number == device);
        known.map_or(Reading::Asked, |(_, reading)| *reading)
    }

    /// The file system with this number, of this kind, cannot say what is in memory.
    pub(super) fn learn(&self, device: u64, kind: FileSystem) -> Reading {
        let reading = match kind {
            FileSystem::Other => Reading::ByHelper,
            // Files in containers are mostly on overlayfs, over file systems that could tell if they were asked.
            FileSystem::Memory | FileSystem::Overlay => Reading::InWorker,
        };
        let mut known = self.0.borrow_mut();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.push((device, reading));
        reading
    }
}

/// The kind of the file system that `file` is on. It may have to be asked over a network; one that does not say is slow.
pub(super) fn kind_of(file: BorrowedFd<'_>) -> FileSystem {
    file::file_system(file).unwrap_or(FileSystem::Other)
}

/// File systems that are remembered; a server has its files on a few.
const KNOWN_MAX: usize = 64;
