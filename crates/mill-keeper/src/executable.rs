//! Which program a word means, and whether a preloaded library can stand between it and the kernel.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

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
    let head = read_head(path)?;
    if let Some(interpreter) = interpreter(&head) {
        return unseen(&find(&interpreter)?);
    }
    examine(&head)
}

/// The beginning of a file: headers lie there, and Go's note.
fn read_head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let file = File::open(path).ok()?;
    file.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    Some(head)
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

/// Reads the headers of an ELF file of 64 bits (elf(5)).
fn examine(head: &[u8]) -> Option<Unseen> {
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let headers_at = usize::try_from(number::<8>(head, 0x20)?).ok()?;
    let size = usize::try_from(number::<2>(head, 0x36)?).ok()?;
    let count = usize::try_from(number::<2>(head, 0x38)?).ok()?;
    let headers = (0..count).filter_map(|index| {
        let at = headers_at.checked_add(index.checked_mul(size)?)?;
        Some((at, number::<4>(head, at)?))
    });
    let mut is_dynamic = false;
    for (at, kind) in headers {
        match kind {
            PT_INTERP => is_dynamic = true,
            PT_NOTE if is_go_note(head, at) => return Some(Unseen::Go),
            _ => {}
        }
    }
    (!is_dynamic).then_some(Unseen::Static)
}

/// Whether a segment of notes begins with one of Go's linker.
fn is_go_note(head: &[u8], header_at: usize) -> bool {
    let note = || {
        let at = usize::try_from(number::<8>(head, header_at + 8)?).ok()?;
        head.get(at.checked_add(12)?..)
    };
    note().is_some_and(|name| name.starts_with(b"Go\0\0"))
}

/// A little-endian number of `N` bytes.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let part = bytes.get(at..)?.first_chunk::<N>()?;
    Some(
        part.iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    )
}

const PT_INTERP: u64 = 3;
const PT_NOTE: u64 = 4;

/// Bytes; Go's note is within the first page.
const HEAD_BYTES: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with these program headers: kind, and where it lies.
    fn elf(headers: &[(u32, u64)], note: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 0x40];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[0x20] = 0x40;
        bytes[0x36] = 56;
        bytes[0x38] = u8::try_from(headers.len()).unwrap();
        for (kind, at) in headers {
            let mut header = [0; 56];
            header[..4].copy_from_slice(&kind.to_le_bytes());
            header[8..16].copy_from_slice(&at.to_le_bytes());
            bytes.extend(header);
        }
        bytes.extend(note);
        bytes
    }

    #[test]
    fn static_and_go_programs_are_told_from_dynamic_ones() {
        assert_eq!(examine(&elf(&[(1, 0), (3, 0)], b"")), None);
        assert_eq!(examine(&elf(&[(1, 0)], b"")), Some(Unseen::Static));
        let note = b"\x04\0\0\0\x53\0\0\0\x04\0\0\0Go\0\0";
        let at = 0x40 + 2 * 56;
        assert_eq!(examine(&elf(&[(3, 0), (4, at)], note)), Some(Unseen::Go));
        assert_eq!(examine(b"\x7fELF\x02\x01 cut off"), None);
        assert_eq!(examine(b"text"), None);
    }

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
