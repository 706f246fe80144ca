//! The guest's console: a file that QEMU writes, shown as it grows.

use mill_guest::initramfs::JOB_ENDED;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// The console, and what was read of its last line.
pub(super) struct Console {
    file: File,
    line: Vec<u8>,
}

impl Console {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::open(path)?,
            line: Vec::new(),
        })
    }

    /// Shows the lines that have come; returns the exit status of the job once it is there.
    pub(super) fn show(&mut self) -> io::Result<Option<i32>> {
        self.file.read_to_end(&mut self.line)?;
        let mut out = io::stdout().lock();
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let line = std::mem::replace(&mut self.line, rest);
            let text = String::from_utf8_lossy(&line);
            if let Some(status) = ended(&text) {
                return Ok(Some(status));
            }
            writeln!(out, "{}", text.trim_end())?;
        }
        out.flush()?;
        Ok(None)
    }
}

/// The exit status in a line that tells the end of the job.
fn ended(line: &str) -> Option<i32> {
    line.split_once(JOB_ENDED)?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_job_is_seen() {
        assert_eq!(ended("guest: job ended with 101\r\n"), Some(101));
        assert_eq!(ended("guest: job ended with 0\n"), Some(0));
        assert_eq!(ended("test result: ok\r\n"), None);
    }
}
