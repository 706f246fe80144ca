//! Directories of the simulated file system.

use crate::server::network;
use mill_sim::files::SimFiles;

/// A directory of one test's own.
pub(crate) struct Directory {
    files: SimFiles,
    path: String,
}

impl mill_conformance::Directory for Directory {
    fn new(name: &str) -> Self {
        let files = network().world.files().clone();
        let path = format!("/{name}");
        files.create_directory(&path);
        Self { files, path }
    }

    /// A path in it; of itself if `name` is empty.
    fn path(&self, name: &str) -> Vec<u8> {
        self.at(name).into_bytes()
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Vec<u8> {
        self.files.write(&self.at(name), bytes);
        self.path(name)
    }

    fn truncate(&self, name: &str, len: usize) {
        self.files.set_len(&self.at(name), len);
    }

    /// Renames `from` to `to`; the old file stays open where it was.
    fn rename(&self, from: &str, to: &str) {
        self.files.replace(&self.at(to), b"renamed");
        self.files.remove(&self.at(from));
    }

    fn remove(&self, name: &str) {
        self.files.remove(&self.at(name));
    }
}

impl Directory {
    fn at(&self, name: &str) -> String {
        if name.is_empty() {
            self.path.clone()
        } else {
            format!("{}/{name}", self.path)
        }
    }
}
