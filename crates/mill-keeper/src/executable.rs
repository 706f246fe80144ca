//! Which program a word means, and whether a preloaded library can stand between it and the kernel.

use elf::ReadAt;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The headers of programs.
mod elf;

/// Why a program's calls cannot be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// It has no dynamic linker, which would load the library.
    Static,
    /// Go's runtime makes system calls itself.
    Go,
}

impl Unseen {
    /// The rest of a sentence that begins with the program's name.
    pub const fn why(self) -> &'static str {
        match self {
            Self::Static => "is linked statically: no library can stand between it and the kernel",
            Self::Go => "is a Go program, whose system calls pass by the C library",
        }
    }
}

/// The file of a program, as a shell finds it.
pub fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        let path = PathBuf::from(program);
        return path.is_file().then_some(path);
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    let mut candidates = std::env::split_paths(&path).map(|folder| folder.join(program));
    candidates.find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    let metadata = path.metadata();
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Why the calls of a program cannot be seen, if they cannot; of a script, those of its interpreter.
pub fn unseen(path: &Path) -> Option<Unseen> {
    let file = File::open(path).ok()?;
    if let Some(interpreter) = interpreter(&file.read_at(0, LINE_BYTES)?) {
        return unseen(&find(&interpreter)?);
    }
    elf::examine(&file)
}

impl ReadAt for File {
    fn read_at(&self, at: u64, len: u64) -> Option<Vec<u8>> {
        let mut file = self;
        file.seek(SeekFrom::Start(at)).ok()?;
        let mut bytes = Vec::new();
        file.take(len).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// The program that runs a script: the second word after `env`.
fn interpreter(head: &[u8]) -> Option<OsString> {
    let line = head
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let mut words = line
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty());
    let first = words.next()?;
    let is_env = first.ends_with(b"/env");
    let word = if is_env { words.next()? } else { first };
    Some(OsString::from_vec(word.to_vec()))
}

/// Bytes; the line of a script that names its interpreter is shorter (`BINPRM_BUF_SIZE` in Linux).
const LINE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_names_its_interpreter() {
        let named = |head: &[u8]| interpreter(head).map(OsStringExt::into_vec);
        assert_eq!(named(b"#!/bin/sh -e\n").as_deref(), Some(&b"/bin/sh"[..]));
        assert_eq!(
            named(b"#! /usr/bin/env python3\nimport").as_deref(),
            Some(&b"python3"[..])
        );
        assert_eq!(named(b"#!\n"), None);
        assert_eq!(named(b"\x7fELF"), None);
    }
}
