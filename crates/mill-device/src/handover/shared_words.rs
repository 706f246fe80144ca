//! Words of the file that is locked, which all processes write.

use super::ProcessNumber;
use mill_sys::clock;
use mill_sys::memory::words;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Times are of the monotonic clock, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedWords {
    /// When the chain changed last.
    changed_at: &'static AtomicU64,
    /// The process that the last owner has given the device to, and until when no other one may lock it.
    heir: &'static AtomicU64,
    reserved_until: &'static AtomicU64,
    /// Processes that have lost their place and not found another one yet.
    orphans: &'static AtomicU64,
}

impl SharedWords {
    /// Makes the file.
    pub(super) fn create() -> io::Result<File> {
        words::create("millstream-handover", WORDS)
    }

    /// Closes `file`, which releases a lock that the caller's descriptor table has on it (fcntl(2)).
    pub(super) fn map(file: File) -> io::Result<Self> {
        let mapped = words::map(&file, WORDS).or_else(|_| words::map(&file, FORMER_WORDS));
        match mapped? {
            [changed_at, heir, reserved_until, rest @ ..] => Ok(Self {
                changed_at,
                heir,
                reserved_until,
                orphans: rest.first().unwrap_or(&UNSHARED),
            }),
            _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
        }
    }

    pub(super) fn note_change(&self) {
        self.changed_at.store(now_ms(), Ordering::Relaxed);
    }

    /// One process more looks for a place, or one less.
    pub(super) fn note_orphan(&self, is_orphan: bool) {
        match is_orphan {
            true => self.orphans.fetch_add(1, Ordering::Relaxed),
            false => self.orphans.fetch_sub(1, Ordering::Relaxed),
        };
    }

    /// Whether no change was noted for so long that each process has its place. One that was killed while it looked for one
    /// counts for some time only.
    pub(super) fn is_settled(&self) -> bool {
        let changed_at = self.changed_at.load(Ordering::Relaxed);
        let needed_ms = match self.orphans.load(Ordering::Relaxed) {
            0 => SETTLED_MS,
            _ => ORPHANS_MS,
        };
        changed_at == 0 || now_ms().wrapping_sub(changed_at) >= needed_ms
    }

    pub(super) fn reserve_for(&self, heir: ProcessNumber) {
        let until = now_ms().saturating_add(RESERVED_MS);
        self.reserved_until.store(until, Ordering::Release);
        self.heir.store(heir, Ordering::Release);
    }

    pub(super) fn end_reservation(&self) {
        self.heir.store(0, Ordering::Release);
    }

    /// Whether the device is reserved, and not for this process.
    pub(super) fn is_reserved_from(&self, process: ProcessNumber) -> bool {
        let heir = self.heir.load(Ordering::Acquire);
        let until = self.reserved_until.load(Ordering::Acquire);
        heir != 0 && heir != process && now_ms() < until
    }
}

fn now_ms() -> u64 {
    u64::try_from(clock::monotonic().as_millis()).unwrap_or(u64::MAX)
}

const WORDS: usize = 4;

/// Words of a file that an earlier version has made, in whose place a process has its own.
const FORMER_WORDS: usize = 3;
static UNSHARED: AtomicU64 = AtomicU64::new(0);

/// How long a process that was given the device may take to lock it: it looks every few milliseconds.
const RESERVED_MS: u64 = 200;

/// A process looks for its place every few milliseconds, if it is not stopped.
const SETTLED_MS: u64 = 1000;

/// One of many processes on few processors, which each has to let pass, can need seconds.
const ORPHANS_MS: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_looks_for_its_place_is_waited_for() {
        let file = SharedWords::create().unwrap();
        let [one, other] = [(); 2].map(|()| SharedWords::map(file.try_clone().unwrap()).unwrap());
        let before = now_ms() - SETTLED_MS;
        one.changed_at.store(before, Ordering::Relaxed);
        assert!(other.is_settled());
        one.note_orphan(true);
        assert!(!other.is_settled());
        one.note_orphan(false);
        assert!(other.is_settled());
        one.note_orphan(true);
        let long_ago = now_ms().saturating_sub(ORPHANS_MS);
        one.changed_at.store(long_ago, Ordering::Relaxed);
        assert!(other.is_settled(), "it was killed meanwhile");
    }

    #[test]
    fn the_file_of_an_earlier_version_is_enough() {
        let file = words::create("millstream-handover", FORMER_WORDS).unwrap();
        let words = SharedWords::map(file).unwrap();
        assert!(words.is_settled());
        words.note_change();
        assert!(!words.is_settled());
        let small = words::create("millstream-handover", 1).unwrap();
        assert!(SharedWords::map(small).is_err());
    }
}
