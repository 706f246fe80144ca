//! Words of the file that is locked, which all processes write.

use super::directory::{self, Directory};
use mill_stack::siphash::Key;
use mill_sys::memory::words;
use mill_sys::{clock, random};
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
    /// How many identities were drawn.
    drawn: &'static AtomicU64,
    key: [&'static AtomicU64; 2],
    is_incomplete: &'static AtomicU64,
    entries: &'static [AtomicU64],
}

impl SharedWords {
    /// Makes the file.
    pub(super) fn create() -> io::Result<File> {
        let file = words::create("millstream-handover", WORDS)?;
        for word in Self::mapped(&file)?.key {
            let mut bytes = [0; 8];
            random::fill(&mut bytes)?;
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
        Ok(file)
    }

    /// Closes `file`, which releases a lock that the caller's descriptor table has on it (fcntl(2)).
    #[expect(clippy::needless_pass_by_value, reason = "it is closed here")]
    pub(super) fn map(file: File) -> io::Result<Self> {
        Self::mapped(&file)
    }

    fn mapped(file: &File) -> io::Result<Self> {
        match words::map(file, WORDS)? {
            [
                changed_at,
                heir,
                reserved_until,
                orphans,
                drawn,
                first,
                second,
                is_incomplete,
                entries @ ..,
            ] => Ok(Self {
                changed_at,
                heir,
                reserved_until,
                orphans,
                drawn,
                key: [first, second],
                is_incomplete,
                entries,
            }),
            _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
        }
    }

    /// An identity that no process has that draws one of this device, not 0.
    pub(super) fn draw_identity(&self) -> u64 {
        self.drawn.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The directory of flows, for the process of this identity.
    pub(super) fn directory(&self, identity: u64) -> Directory {
        let mut key = [0; 16];
        for (half, word) in key.chunks_exact_mut(8).zip(self.key) {
            half.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        Directory::new(Key::new(key), identity, self.is_incomplete, self.entries)
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

    /// For the process of this identity.
    pub(super) fn reserve_for(&self, heir: u64) {
        let until = now_ms().saturating_add(RESERVED_MS);
        self.reserved_until.store(until, Ordering::Release);
        self.heir.store(heir, Ordering::Release);
    }

    pub(super) fn end_reservation(&self) {
        self.heir.store(0, Ordering::Release);
    }

    /// Whether the device is reserved, and not for this process.
    pub(super) fn is_reserved_from(&self, process: u64) -> bool {
        let heir = self.heir.load(Ordering::Acquire);
        let until = self.reserved_until.load(Ordering::Acquire);
        heir != 0 && heir != process && now_ms() < until
    }
}

fn now_ms() -> u64 {
    u64::try_from(clock::monotonic().as_millis()).unwrap_or(u64::MAX)
}

const WORDS: usize = 8 + directory::ENTRIES;

/// How long a process that was given the device may take to lock it: it looks every few milliseconds, if it runs. Where it has ended,
/// the one that gave the device hears of that at once.
const RESERVED_MS: u64 = 1000;

/// A process looks for its place every few milliseconds, if it is not stopped.
const SETTLED_MS: u64 = 1000;

/// One of many processes on few processors, which each has to let pass, can need seconds.
const ORPHANS_MS: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_stack::flow::Flow;
    use mill_stack::flow_directory::FlowDirectory;

    #[test]
    fn what_was_given_is_the_heirs_alone_until_the_reservation_ends() {
        let file = SharedWords::create().unwrap();
        let [giver, other] = [(); 2].map(|()| SharedWords::map(file.try_clone().unwrap()).unwrap());
        giver.reserve_for(5);
        assert!(!other.is_reserved_from(5));
        assert!(other.is_reserved_from(6));
        giver.end_reservation();
        assert!(!other.is_reserved_from(6));
        giver.reserve_for(5);
        giver.reserved_until.store(now_ms(), Ordering::Release);
        assert!(!other.is_reserved_from(6), "its time is over");
    }

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
    fn identities_differ_and_the_directory_is_one() {
        let file = SharedWords::create().unwrap();
        let [one, other] = [(); 2].map(|()| SharedWords::map(file.try_clone().unwrap()).unwrap());
        let [first, second] = [one.draw_identity(), other.draw_identity()];
        assert_ne!(first, second);
        let flow = Flow::new(
            "10.0.0.1:80".parse().unwrap(),
            "10.0.0.2:99".parse().unwrap(),
        );
        one.directory(first).insert(&flow);
        assert!(other.directory(second).is_elsewhere(&flow));
        let small = words::create("millstream-handover", 4).unwrap();
        assert!(SharedWords::map(small).is_err());
    }
}
