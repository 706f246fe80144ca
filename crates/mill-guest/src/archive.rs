//! A cpio archive of the format "newc" (the kernel's Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! ```text
//! "070701" inode mode uid gid nlink mtime size major minor rmajor rminor namesize check   8 hexadecimal digits each
//! name \0 padding to 4   content padding to 4   …   the same for "TRAILER!!!"
//! ```

/// An archive that is being written.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    count: usize,
}

impl Archive {
    pub(crate) fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER | 0o755, &[]);
    }

    /// A file that may be executed, or only read.
    pub(crate) fn file(&mut self, name: &str, is_program: bool, content: &[u8]) {
        let rights = if is_program { 0o755 } else { 0o600 };
        self.entry(name, FILE | rights, content);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: usize, content: &[u8]) {
        self.count += 1;
        // All belong to root, and the times do not matter.
        let fields = [
            self.count,
            mode,
            0,
            0,
            1,
            0,
            content.len(),
            0,
            0,
            0,
            0,
            name.len() + 1,
            0,
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// Kinds of files (inode(7): S_IFDIR, S_IFREG).
const FOLDER: usize = 0o040_000;
const FILE: usize = 0o100_000;

/// The name of the last entry.
const TRAILER: &str = "TRAILER!!!";

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn every_part_begins_at_a_multiple_of_four() {
        let mut archive = Archive::default();
        archive.file("abc", false, b"12345");
        let bytes = archive.finish();
        assert!(bytes.starts_with(b"07070100000001000081800000000000000000"));
        let name = 6 + 13 * 8;
        assert_eq!(bytes.get(name..name + 4), Some(&b"abc\0"[..]));
        assert_eq!(bytes.get(name + 6..name + 14), Some(&b"12345\0\0\0"[..]));
        assert_eq!(bytes.len() % 4, 0);
    }

    #[test]
    fn another_program_lists_what_was_written() {
        let mut archive = Archive::default();
        archive.folder("bin");
        archive.file("bin/program", true, b"content");
        archive.file("list", false, b"");
        let listed = Command::new("cpio")
            .args(["-t", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        // Nothing else needs cpio(1).
        let Ok(mut listed) = listed else { return };
        listed
            .stdin
            .take()
            .unwrap()
            .write_all(&archive.finish())
            .unwrap();
        let output = listed.wait_with_output().unwrap();
        assert_eq!(output.stdout, b"bin\nbin/program\nlist\n");
    }
}
