//! Files whose paths have variables (`open_log_file_cache`).

use super::store::{Fault, LogFile};
use mill_config::config::settings::OpenLogFileCache;
use mill_runtime::time::Instant;
use std::io::{self, Write};

/// The open files, least recently used first. Their number is bounded by `max=`; without `open_log_file_cache` a file
/// is closed after each batch of lines.
#[derive(Debug)]
pub(super) struct EvaluatedFiles<W> {
    entries: Vec<Entry<W>>,
}

#[derive(Debug)]
struct Entry<W> {
    path: Vec<u8>,
    /// `None` once closed for too few uses; the entry goes on counting.
    file: Option<LogFile<W>>,
    cache: Option<OpenLogFileCache>,
    /// When it was opened, or examined again.
    valid_from: Instant,
    used_at: Instant,
    /// Within `inactive`.
    uses: u64,
}

impl<W> Default for EvaluatedFiles<W> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
        }
    }
}

impl<W: Write> EvaluatedFiles<W> {
    /// The file at `path`, opened if it is not open or was opened longer than `valid=` ago. The directory `root` must
    /// exist.
    pub(super) fn file(
        &mut self,
        path: &[u8],
        root: &[u8],
        cache: Option<OpenLogFileCache>,
        now: Instant,
        open: fn(&[u8]) -> io::Result<W>,
    ) -> Result<&mut LogFile<W>, Fault> {
        let mut entry = match self.entries.iter().position(|entry| entry.path == path) {
            Some(index) => self.entries.remove(index),
            None => Entry::new(path, now),
        };
        entry.cache = cache;
        let is_stale = cache.is_some_and(|cache| now.since(entry.valid_from) >= cache.valid);
        if entry.file.is_none() || is_stale {
            check_root(root)?;
            let output = open(path).map_err(|error| Fault::Open(code(&error)))?;
            entry.file = Some(LogFile::new(output));
            entry.valid_from = now;
        }
        entry.used_at = now;
        entry.uses += 1;
        let max = cache.map_or(1, |cache| usize::try_from(cache.max).unwrap_or(usize::MAX));
        let excess = (self.entries.len() + 1).saturating_sub(max.max(1));
        self.entries.drain(..excess.min(self.entries.len()));
        self.entries.push(entry);
        let file = self
            .entries
            .last_mut()
            .and_then(|entry| entry.file.as_mut());
        file.ok_or(Fault::Open(0))
    }

    /// Closes the file that was just written if it was used fewer than `min_uses=` times.
    pub(super) fn after_write(&mut self, path: &[u8], now: Instant) {
        if let Some(entry) = self.entries.last_mut().filter(|entry| entry.path == path) {
            match entry.cache {
                None => {
                    self.entries.pop();
                }
                Some(cache) if entry.uses < cache.min_uses => entry.file = None,
                Some(_) => {}
            }
        }
        self.expire(now);
    }

    /// Closes files that were not used for `inactive=`.
    pub(super) fn expire(&mut self, now: Instant) {
        self.entries.retain(|entry| now < entry.inactive_at());
    }

    pub(super) fn deadline(&self) -> Instant {
        let ends = self.entries.iter().map(Entry::inactive_at);
        ends.min().unwrap_or(Instant::FAR)
    }
}

impl<W> Entry<W> {
    fn new(path: &[u8], now: Instant) -> Self {
        Self {
            path: path.to_vec(),
            file: None,
            cache: None,
            valid_from: now,
            used_at: now,
            uses: 0,
        }
    }

    fn inactive_at(&self) -> Instant {
        self.cache
            .map_or(Instant::FAR, |cache| self.used_at + cache.inactive)
    }
}

fn check_root(root: &[u8]) -> Result<(), Fault> {
    use std::os::unix::ffi::OsStrExt;
    if root.is_empty() {
        return Ok(());
    }
    let metadata = std::fs::metadata(std::ffi::OsStr::from_bytes(root));
    match metadata {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(Fault::NoRoot(NOT_A_DIRECTORY)),
        Err(error) => Err(Fault::NoRoot(code(&error))),
    }
}

/// ENOTDIR.
const NOT_A_DIRECTORY: i32 = 20;

fn code(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}
