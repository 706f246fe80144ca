//! Directories of the simulated file system, for the testbeds of this crate and of mill-bypass.

use crate::sim_files;
use mill_conformance::Directory;
use mill_sim::files::SimFiles;

/// A directory of one test's own.
pub(crate) struct SimDirectory {
    files: SimFiles,
    path: String,
}

impl Directory for SimDirectory {
    fn new(name: &str) -> Self {
        let files = sim_files();
        let path = format!("/{name}");
        files.create_directory(&path);
        Self { files, path }
    }

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

    fn rename(&self, from: &str, to: &str) {
        self.files.replace(&self.at(to), b"renamed");
        self.files.remove(&self.at(from));
    }

    fn remove(&self, name: &str) {
        self.files.remove(&self.at(name));
    }
}

impl SimDirectory {
    fn at(&self, name: &str) -> String {
        if name.is_empty() {
            self.path.clone()
        } else {
            format!("{}/{name}", self.path)
        }
    }
}
