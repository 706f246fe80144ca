//! Temporary files: where content goes that memory has no room for.

use crate::local::Local;
use crate::log::{Errno, Text};
use mill_config::config::TempPath;
use mill_runtime::engine::Engine;
use mill_runtime::files::{FileError, Files, Visibility};
use std::fmt;

/// A file to which content is appended.
#[derive(Debug)]
pub(crate) struct TemporaryFile<File> {
    pub(crate) file: File,
    pub(crate) path: Vec<u8>,
    /// Bytes written.
    pub(crate) len: u64,
}

/// A call that failed, as nginx logs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TemporaryFileError {
    pub(crate) path: Vec<u8>,
    pub(crate) error: FileError,
}

impl<File> TemporaryFile<File> {
    /// Makes an empty one in `directory`, named like nginx's.
    pub(crate) fn create<E: Engine<Files: Files<File = File>>>(
        directory: &TempPath,
        visibility: Visibility,
        local: &Local<E>,
    ) -> Result<Self, TemporaryFileError> {
        let levels = directory.levels.iter().filter(|digits| **digits > 0);
        // The directory itself may be missing, too.
        let levels = levels.count() + 1;
        let mut tries_left = TRIES_MAX;
        loop {
            let path = path_of(directory, local.next_temporary_number());
            match local.engine.files().create(&path, levels, visibility) {
                Ok(file) => return Ok(Self { file, path, len: 0 }),
                // A file of an earlier process: numbers begin anew with each.
                Err(error) if error.code == EEXIST && tries_left > 0 => {
                    tries_left -= 1;
                    local.skip_temporary_numbers();
                }
                Err(error) => return Err(TemporaryFileError { path, error }),
            }
        }
    }

    pub(crate) fn append<E: Engine<Files: Files<File = File>>>(
        &mut self,
        bytes: &[u8],
        local: &Local<E>,
    ) -> Result<(), TemporaryFileError> {
        let written = local.engine.files().write_at(&self.file, self.len, bytes);
        written.map_err(|error| TemporaryFileError {
            path: self.path.clone(),
            error,
        })?;
        self.len += bytes.len() as u64;
        Ok(())
    }
}

impl fmt::Display for TemporaryFileError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (call, code) = (self.error.call, Errno(self.error.code));
        write!(out, "{call} \"{}\" failed ({code})", Text(&self.path))
    }
}

/// Ten digits, below subdirectories that are named by the last ones.
fn path_of(directory: &TempPath, number: u64) -> Vec<u8> {
    let name = format!("{:010}", number % NUMBERS);
    let mut rest = name.as_str();
    let mut path = directory.path.to_vec();
    path.push(b'/');
    for digits in directory
        .levels
        .into_iter()
        .take_while(|digits| *digits > 0)
    {
        let (before, level) = rest.split_at(rest.len().saturating_sub(usize::from(digits)));
        path.extend_from_slice(level.as_bytes());
        path.push(b'/');
        rest = before;
    }
    path.extend_from_slice(name.as_bytes());
    path
}

/// How often another number is taken where a file exists already.
const TRIES_MAX: u32 = 64;

/// Numbers have ten digits.
const NUMBERS: u64 = 10_000_000_000;

/// Linux's error number (asm-generic/errno-base.h).
const EEXIST: i32 = 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_digits_name_the_subdirectories() {
        let check = |levels: [u8; 3], number: u64, expected: &str| {
            let path = b"/temp".to_vec().into();
            let path = path_of(&TempPath { path, levels }, number);
            assert_eq!(String::from_utf8_lossy(&path), expected);
        };
        check([0; 3], 12_345, "/temp/0000012345");
        check([1, 2, 0], 12_345, "/temp/5/34/0000012345");
        check([3, 3, 3], 9_876_543_210, "/temp/210/543/876/9876543210");
        check([1, 0, 0], NUMBERS + 7, "/temp/7/0000000007");
    }
}
