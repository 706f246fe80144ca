//! Files that a server makes and writes, on a disk that may be full.

use super::tree::{Content, Node};
use super::{EBADF, EEXIST, EMFILE, ENOENT, ENOSPC, ENOTDIR, SimFile, SimFiles, error};
use mill_runtime::files::{FileError, FilePiece, StoredPath, Symlinks, Visibility};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The space that files which servers make may take.
#[derive(Debug)]
pub(super) struct Disk {
    bytes_max: Cell<usize>,
    bytes: Cell<usize>,
    bytes_peak: Cell<usize>,
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            bytes_max: Cell::new(usize::MAX),
            bytes: Cell::new(0),
            bytes_peak: Cell::new(0),
        }
    }
}

impl Disk {
    pub(super) fn free(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
    }

    pub(super) fn left(&self) -> u64 {
        self.bytes_max.get().saturating_sub(self.bytes.get()) as u64
    }
}

/// For the test.
impl SimFiles {
    /// Bytes that servers may write before the disk is full.
    pub fn set_disk_bytes_max(&self, bytes: usize) {
        self.state.disk.bytes_max.set(bytes);
    }

    /// The most bytes of files that servers have made and not removed, at any time.
    pub fn disk_bytes_peak(&self) -> usize {
        self.state.disk.bytes_peak.get()
    }

    /// The names in a directory.
    pub fn names(&self, path: &str) -> Vec<String> {
        let tree = self.tree.borrow();
        let Some(node) = tree.existing(path) else {
            return Vec::new();
        };
        let Content::Directory(entries) = &node.content else {
            panic!("{path} is a directory");
        };
        let entries = entries.borrow();
        let names = entries.keys();
        names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect()
    }

    /// The content of a file.
    pub fn read(&self, path: &str) -> Vec<u8> {
        self.node(path).bytes()
    }
}

/// For the server.
impl SimFiles {
    pub(super) fn create_file(
        &self,
        path: &[u8],
        levels: usize,
        visibility: Visibility,
    ) -> Result<SimFile, FileError> {
        let text = str::from_utf8(path).expect("the path of a test is text");
        self.check_directories(text, levels)?;
        if self.state.open.get() >= self.state.open_max.get() {
            return Err(error("open()", EMFILE));
        }
        let content = Content::Regular(RefCell::default());
        let now = self.now();
        let mut tree = self.tree.borrow_mut();
        if visibility == Visibility::Unnamed {
            let node = Rc::new(Node::new(0, content, now));
            return Ok(self.opened(node, Some(Rc::clone(&self.state.disk))));
        }
        if tree.existing(text).is_some() {
            return Err(error("open()", EEXIST));
        }
        let node = tree.put(text, content, now);
        Ok(self.opened(node, None))
    }

    /// Enough of the directories above a path exist, and a server may use them.
    fn check_directories(&self, path: &str, levels: usize) -> Result<(), FileError> {
        let mut above = path;
        for _ in 0..=levels {
            (above, _) = above.rsplit_once('/').expect("a path is absolute");
            let found = self
                .tree
                .borrow()
                .resolve(above.as_bytes(), Symlinks::Follow, "open()");
            match found {
                Err(missing) if missing.code == ENOENT => {}
                Err(failed) => return Err(failed),
                Ok(found) if !found.node.readable.get() => {
                    return Err(error("open()", super::EACCES));
                }
                Ok(_) => return Ok(()),
            }
        }
        Err(error("mkdir()", ENOENT))
    }

    pub(super) fn write_file(
        &self,
        file: &SimFile,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), FileError> {
        let Content::Regular(content) = &file.0.node.content else {
            return Err(error("pwrite()", EBADF));
        };
        let mut content = content.borrow_mut();
        let start = usize::try_from(offset).expect("a file of a test is small");
        let end = start + bytes.len();
        let disk = &self.state.disk;
        let used = disk.bytes.get() + end.saturating_sub(content.len());
        if used > disk.bytes_max.get() {
            return Err(error("pwrite()", ENOSPC));
        }
        let len = content.len().max(end);
        content.resize(len, 0);
        content[start..end].copy_from_slice(bytes);
        file.0.node.modified.set(self.now());
        disk.bytes.set(used);
        disk.bytes_peak.set(disk.bytes_peak.get().max(used));
        Ok(())
    }

    pub(super) fn rename_file(&self, from: &[u8], to: &[u8]) -> Result<(), FileError> {
        let text = |path| str::from_utf8(path).expect("the path of a test is text");
        let mut tree = self.tree.borrow_mut();
        let node = tree.existing(text(from));
        let node = node.ok_or_else(|| error("rename()", ENOENT))?;
        if let Some(replaced) = tree.existing(text(to)) {
            self.state.disk.free(replaced.bytes().len());
        }
        let (directory, _) = text(to).rsplit_once('/').expect("a path is absolute");
        if let Some(node) = tree.existing(directory)
            && !matches!(node.content, Content::Directory(_))
        {
            return Err(error("rename()", ENOTDIR));
        }
        let content = Content::Regular(RefCell::new(node.bytes()));
        tree.remove(text(from));
        tree.put(text(to), content, self.now());
        Ok(())
    }

    /// A file that fails, for the disk is full, is removed.
    pub(super) fn store_file(
        &self,
        stored: &StoredPath<'_>,
        pieces: &[FilePiece],
    ) -> Result<(), FileError> {
        self.check_directories(
            str::from_utf8(stored.path).expect("the path of a test is text"),
            stored.levels,
        )?;
        let file = self.create_file(stored.temporary, stored.levels, Visibility::Named)?;
        let mut at = 0;
        for (bytes, range) in pieces {
            if let Err(failed) = self.write_file(&file, at, &bytes[range.clone()]) {
                self.remove_file(stored.temporary)?;
                return Err(failed);
            }
            at += range.len() as u64;
        }
        self.rename_file(stored.temporary, stored.path)
    }

    pub(super) fn remove_file(&self, path: &[u8]) -> Result<(), FileError> {
        let text = str::from_utf8(path).expect("the path of a test is text");
        let mut tree = self.tree.borrow_mut();
        let node = tree.existing(text);
        let node = node.ok_or_else(|| error("unlink()", ENOENT))?;
        tree.remove(text);
        self.state.disk.free(node.bytes().len());
        Ok(())
    }
}
