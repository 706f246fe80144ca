//! Folders of tests.

use std::path::PathBuf;

/// A folder below the system's temporary one that is removed with the test.
#[derive(Debug)]
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    /// `name` is no other test's.
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("mill-lab-host-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
