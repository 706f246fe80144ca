//! Words of the file that is locked, which all processes write.

use super::directory::{self, Directory};
use mill_stack::siphash::Key;
use mill_sys::memory::words;
use mill_sys::{clock, random};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Times are of the monotonic clock, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedWords {
    /// When the chain changed last.
    changed_at: &'static AtomicU64,
    /// The process that the last owner has given the device to, and until when no other one may lock it.
    heir: &'static AtomicU64,
    reserved_until: &'static AtomicU64,
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
        let [version] = words::map(&file, 1)? else {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        };
        version.store(VERSION, Ordering::Relaxed);
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
            [version, ..] if version.load(Ordering::Relaxed) != VERSION => {
                let why = "the process that has the device is of another version of Millstream; end it first";
                Err(io::Error::new(io::ErrorKind::InvalidData, why))
            }
            [
                _,
                changed_at,
                heir,
                reserved_until,
                drawn,
                first,
                second,
                is_incomplete,
                entries @ ..,
            ] => Ok(Self {
                changed_at,
                heir,
                reserved_until,
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

    #[cfg(test)]
    pub(super) fn note_change_before(&self, time: Duration) {
        let time_ms = u64::try_from(time.as_millis()).unwrap();
        let then = now_ms().checked_sub(time_ms).unwrap();
        self.changed_at.store(then, Ordering::Relaxed);
    }

    /// When a change was noted last; 0 if none was.
    pub(super) fn changed_at(&self) -> u64 {
        self.changed_at.load(Ordering::Relaxed)
    }

    /// Whether no change was noted for so long.
    pub(super) fn is_unchanged_for(&self, time: Duration) -> bool {
        let changed_at = self.changed_at();
        changed_at == 0 || u128::from(now_ms().wrapping_sub(changed_at)) >= time.as_millis()
    }

    /// For the process of this identity, and for so long.
    pub(super) fn reserve_for(&self, heir: u64, time: Duration) {
        let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let until = now_ms().saturating_add(time_ms);
        self.reserved_until.store(until, Ordering::Release);
        self.heir.store(heir, Ordering::Release);
    }

    pub(super) fn end_reservation(&self) {
        self.heir.store(0, Ordering::Release);
    }

    /// The process of this identity has what was reserved for it, if anything was.
    pub(super) fn end_reservation_for(&self, heir: u64) {
        let _ = self
            .heir
            .compare_exchange(heir, 0, Ordering::AcqRel, Ordering::Relaxed);
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

/// Of the words and of the bytes that are locked.
const VERSION: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_stack::flow::Flow;
    use mill_stack::flow_directory::FlowDirectory;

    #[test]
    fn what_was_given_is_the_heirs_alone_until_the_reservation_ends() {
        let file = SharedWords::create().unwrap();
        let [giver, other] = [(); 2].map(|()| SharedWords::map(file.try_clone().unwrap()).unwrap());
        giver.reserve_for(5, Duration::from_secs(9));
        assert!(!other.is_reserved_from(5));
        assert!(other.is_reserved_from(6));
        giver.end_reservation();
        assert!(!other.is_reserved_from(6));
        giver.reserve_for(5, Duration::from_secs(9));
        giver.reserved_until.store(now_ms(), Ordering::Release);
        assert!(!other.is_reserved_from(6), "its time is over");
    }

    #[test]
    fn a_change_is_over_after_some_time() {
        let file = SharedWords::create().unwrap();
        let [one, other] = [(); 2].map(|()| SharedWords::map(file.try_clone().unwrap()).unwrap());
        assert!(other.is_unchanged_for(Duration::from_secs(9)));
        one.note_change();
        assert!(!other.is_unchanged_for(Duration::from_secs(9)));
        one.note_change_before(Duration::from_secs(9));
        assert!(other.is_unchanged_for(Duration::from_secs(9)));
        assert_ne!(other.changed_at(), 0);
    }

    #[test]
    fn words_of_another_version_are_refused_with_a_sentence() {
        let file = SharedWords::create().unwrap();
        words::map(&file, 1).unwrap()[0].store(VERSION - 1, Ordering::Relaxed);
        let error = SharedWords::map(file).unwrap_err();
        assert!(error.to_string().contains("another version"), "{error}");
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
