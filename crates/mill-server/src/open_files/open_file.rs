//! One file as it was found, and how long that is valid.

use crate::cache::{Kept, StoredAnswer};
use crate::log::{Errno, Text};
use mill_cache::Zone;
use mill_runtime::files::{FileError, FileKind, Metadata};
use mill_runtime::time::{Duration, Instant, UnixTime};
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// The result of a look-up.
#[derive(Debug)]
pub struct OpenFile<F> {
    /// `None` for a directory, and when it was only tested or is not used often enough to stay open.
    pub file: Option<F>,
    pub metadata: Metadata,
    failure: Option<FileError>,
    /// How long the result is valid; `None` if no cache has it.
    pub freshness: Option<Freshness>,
}

/// How long a value made from a file (the head of an answer, for example) may be used. A cache entry and all values
/// made from it share one of these, so that a check costs two loads and three comparisons.
#[derive(Clone, Debug)]
pub struct Freshness {
    of: Of,
    /// A value made from the file is true until then (`Expires`).
    until: Instant,
}

/// What a value is made from.
#[derive(Clone, Debug)]
enum Of {
    File(Rc<State>),
    /// An answer that a cache keeps.
    Kept(Rc<KeptState>),
}

#[derive(Debug)]
struct State {
    /// Until then the path is not examined again.
    valid_until: Cell<Instant>,
    /// Another file was found at the path, or the cache has removed the entry.
    replaced: Cell<bool>,
    uses: Cell<u64>,
    accessed: Cell<Instant>,
}

/// An answer in its zone.
#[derive(Debug)]
struct KeptState {
    kept: Arc<Kept>,
    zone: Arc<Zone<StoredAnswer>>,
    /// Of the zone's purges, the last one that it has outlived.
    generation: u64,
    /// Requests with `Cache-Control` or `Pragma` are to be looked at.
    heeds_requests: bool,
    /// The time of the last use that the zone knows of.
    told: Cell<Instant>,
}

impl<F> OpenFile<F> {
    pub(crate) const fn found(
        file: Option<F>,
        metadata: Metadata,
        freshness: Option<Freshness>,
    ) -> Self {
        Self {
            file,
            metadata,
            failure: None,
            freshness,
        }
    }

    pub(crate) const fn failed(error: FileError, freshness: Option<Freshness>) -> Self {
        Self {
            file: None,
            metadata: NOTHING,
            failure: Some(error),
            freshness,
        }
    }

    pub(crate) const fn failure(&self) -> Option<FileError> {
        self.failure
    }

    /// Whether it has the open file, if its kind has one.
    pub(crate) fn is_complete(&self) -> bool {
        self.file.is_some() || self.metadata.kind == FileKind::Directory
    }
}

impl Freshness {
    pub(crate) fn new(now: Instant, valid_until: Instant, uses: u64) -> Self {
        let state = Rc::new(State {
            valid_until: Cell::new(valid_until),
            replaced: Cell::new(false),
            uses: Cell::new(uses),
            accessed: Cell::new(now),
        });
        Self {
            of: Of::File(state),
            until: Instant::FAR,
        }
    }

    /// Of a value made from an answer that is kept: true until then, as long as its zone has it. The number is that of the
    /// zone's purges before the answer was looked for.
    pub(crate) fn kept(
        kept: Arc<Kept>,
        (zone, generation): (Arc<Zone<StoredAnswer>>, u64),
        until: Instant,
        heeds_requests: bool,
    ) -> Self {
        let state = KeptState {
            kept,
            zone,
            generation,
            heeds_requests,
            told: Cell::new(Instant::from_nanos(0)),
        };
        Self {
            of: Of::Kept(Rc::new(state)),
            until,
        }
    }

    /// Whether a request that says something to caches may want another answer.
    pub(crate) fn heeds_requests(&self) -> bool {
        matches!(&self.of, Of::Kept(state) if state.heeds_requests)
    }

    /// Limits the validity to `instant`.
    pub fn limit(&mut self, instant: Instant) {
        self.until = self.until.min(instant);
    }

    /// What it says will never be true again: a cache keeps the answer no longer. Of a file that is not known.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        matches!(self.of, Of::Kept(_)) && !self.is_fresh(now)
    }

    /// The file counts as unchanged, according to `open_file_cache_valid`.
    pub fn is_fresh(&self, now: Instant) -> bool {
        now < self.until
            && match &self.of {
                Of::File(state) => now < state.valid_until.get() && !state.replaced.get(),
                Of::Kept(state) => {
                    state.kept.is_current() && state.zone.generation() == state.generation
                }
            }
    }

    /// Counts a use, also one without a look-up, so that the entry is not removed as inactive.
    pub fn count_use(&self, now: Instant) {
        match &self.of {
            Of::File(state) => {
                state.uses.set(state.uses.get() + 1);
                state.accessed.set(now);
            }
            // The zone is told once a second: its counter is all workers'.
            Of::Kept(state) => {
                if now >= state.told.get() + KEPT_USE_INTERVAL {
                    state.told.set(now);
                    state.kept.used(Duration::from_nanos(now.as_nanos()));
                }
            }
        }
    }

    /// Whether both belong to the same entry.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.of, &other.of) {
            (Of::File(one), Of::File(another)) => Rc::ptr_eq(one, another),
            (Of::Kept(one), Of::Kept(another)) => Rc::ptr_eq(one, another),
            _ => false,
        }
    }

    pub(crate) fn uses(&self) -> u64 {
        self.of_file().map_or(0, |state| state.uses.get())
    }

    pub(crate) fn accessed(&self) -> Instant {
        self.of_file()
            .map_or(Instant::FAR, |state| state.accessed.get())
    }

    pub(crate) fn set_valid_until(&self, instant: Instant) {
        if let Some(state) = self.of_file() {
            state.valid_until.set(instant);
        }
    }

    /// Invalidates all values made from the file.
    pub(crate) fn replace(&self) {
        if let Some(state) = self.of_file() {
            state.replaced.set(true);
        }
    }

    fn of_file(&self) -> Option<&State> {
        match &self.of {
            Of::File(state) => Some(state),
            Of::Kept(_) => None,
        }
    }
}

/// How often a zone is told that a kept answer is used.
const KEPT_USE_INTERVAL: Duration = Duration::from_secs(1);

/// The metadata of a failure.
const NOTHING: Metadata = Metadata {
    kind: FileKind::Other,
    len: 0,
    modified: UnixTime::from_seconds(0),
    inode: 0,
    device: 0,
    executable: false,
};

/// A failure as nginx logs it: `open() "/a/b" failed (2: No such file or directory)`.
pub fn failure<'a>(error: &'a FileError, path: &'a [u8]) -> impl fmt::Display + 'a {
    Failure { error, path }
}

struct Failure<'a> {
    error: &'a FileError,
    path: &'a [u8],
}

impl fmt::Display for Failure<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (call, path, errno) = (self.error.call, Text(self.path), Errno(self.error.code));
        write!(formatter, "{call} \"{path}\" failed ({errno})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_runtime::files::FileErrorKind;

    #[test]
    fn a_failure_reads_as_in_nginxs_log() {
        let error = FileError {
            kind: FileErrorKind::NotFound,
            call: "open()",
            code: 2,
        };
        assert_eq!(
            failure(&error, b"/srv/a b").to_string(),
            "open() \"/srv/a b\" failed (2: No such file or directory)"
        );
    }

    #[test]
    fn freshness_ends_with_time_and_with_replacement() {
        let freshness = Freshness::new(Instant::from_nanos(1), Instant::from_nanos(10), 1);
        assert!(freshness.is_fresh(Instant::from_nanos(9)));
        assert!(!freshness.is_fresh(Instant::from_nanos(10)));
        freshness.set_valid_until(Instant::from_nanos(20));
        assert!(freshness.is_fresh(Instant::from_nanos(10)));
        let mut limited = freshness.clone();
        limited.limit(Instant::from_nanos(10));
        assert!(limited.is_fresh(Instant::from_nanos(9)));
        assert!(!limited.is_fresh(Instant::from_nanos(10)));
        freshness.clone().replace();
        assert!(!freshness.is_fresh(Instant::from_nanos(10)));
    }

    #[test]
    fn a_use_counts_and_says_when() {
        let freshness = Freshness::new(Instant::from_nanos(1), Instant::from_nanos(10), 1);
        freshness.count_use(Instant::from_nanos(5));
        assert_eq!(freshness.uses(), 2);
        assert_eq!(freshness.accessed(), Instant::from_nanos(5));
    }
}
