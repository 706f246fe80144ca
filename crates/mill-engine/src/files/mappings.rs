//! Mappings of files that were sent, kept for the next opening of the same file.
//!
//! A mapping costs its pages: each is entered, and taken out again, which together is about as much as a copy of its bytes. A server
//! without an open-file cache opens a file for each request; so the mapping outlives the opening for some seconds. It is right as long
//! as the file has the same number and time: the kernel gives the number to no other file while it is mapped, and its bytes
//! are those of the page cache.

use mill_runtime::files::Metadata;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::spawned::Purpose;
use mill_runtime::time::{Duration, Instant, UnixTime};
use mill_sys::file::FileMapping;
use std::cell::{Cell, OnceCell, RefCell};
use std::os::fd::BorrowedFd;
use std::rc::Rc;

/// The mappings that one worker keeps.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    /// Without one nothing is kept.
    scheduler: OnceCell<Rc<Scheduler>>,
    kept: RefCell<Vec<Kept>>,
    /// Whether a task removes what is not used.
    is_swept: Cell<bool>,
}

#[derive(Debug)]
struct Kept {
    key: FileKey,
    used_at: Instant,
    mapping: Rc<FileMapping>,
}

/// What tells a file, and its state, from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileKey {
    device: u64,
    inode: u64,
    len: u64,
    modified: UnixTime,
}

impl FileKey {
    pub(super) const fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.device,
            inode: metadata.inode,
            len: metadata.len,
            modified: metadata.modified,
        }
    }
}

impl Mappings {
    pub(super) fn set_scheduler(&self, scheduler: &Rc<Scheduler>) {
        // As `KernelFiles::set_scheduler`.
        let _ = self.scheduler.set(Rc::clone(scheduler));
    }

    /// The mapping of an open file: one that is kept, or a new one. `None` where the file is short, or cannot be mapped.
    pub(super) fn get(
        self: &Rc<Self>,
        key: FileKey,
        file: BorrowedFd<'_>,
    ) -> Option<Rc<FileMapping>> {
        if key.len < FILE_BYTES_MIN {
            return None;
        }
        let now = self.scheduler.get().map(|scheduler| scheduler.now());
        if let Some(found) = self.find(key, now) {
            return Some(found);
        }
        let mapping = Rc::new(FileMapping::new(file, usize::try_from(key.len).ok()?).ok()?);
        if let Some(now) = now.filter(|_| key.len <= KEPT_BYTES_MAX) {
            self.keep(Kept {
                key,
                used_at: now,
                mapping: Rc::clone(&mapping),
            });
        }
        Some(mapping)
    }

    fn find(&self, key: FileKey, now: Option<Instant>) -> Option<Rc<FileMapping>> {
        let mut kept = self.kept.borrow_mut();
        let found = kept.iter_mut().find(|one| one.key == key)?;
        found.used_at = now.unwrap_or(found.used_at);
        Some(Rc::clone(&found.mapping))
    }

    /// Keeps one in the place of the one that was used least recently.
    fn keep(self: &Rc<Self>, new: Kept) {
        if !self.is_swept.get() && !self.begin_sweeping() {
            return;
        }
        let mut kept = self.kept.borrow_mut();
        if kept.len() < KEPT_MAX {
            kept.push(new);
        } else if let Some(oldest) = kept.iter_mut().min_by_key(|one| one.used_at) {
            *oldest = new;
        }
    }

    /// Starts the task that removes what is not used, until nothing is left: a file that was deleted goes on taking its room on the
    /// disk, and a file system can't be unmounted, as long as there is a mapping. `false` if there is no room for a task.
    fn begin_sweeping(self: &Rc<Self>) -> bool {
        let Some(scheduler) = self.scheduler.get().cloned() else {
            return false;
        };
        let (mappings, sleeper) = (Rc::clone(self), Rc::clone(&scheduler));
        let task = async move {
            loop {
                sleeper.sleep(UNUSED_MAX).await;
                if !mappings.sweep(sleeper.now()) {
                    break;
                }
            }
        };
        self.is_swept
            .set(scheduler.spawn(Purpose::Background, task).is_ok());
        self.is_swept.get()
    }

    /// Removes what is not used; whether something is left.
    fn sweep(&self, now: Instant) -> bool {
        let mut kept = self.kept.borrow_mut();
        kept.retain(|one| now.since(one.used_at) < UNUSED_MAX);
        self.is_swept.set(!kept.is_empty());
        self.is_swept.get()
    }
}

/// Reading a shorter file costs less than to map it.
const FILE_BYTES_MIN: u64 = 64 * 1024;

/// Longer ones are not kept: of their time the mapping is a small part, and they would hold much room on a disk.
const KEPT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// As many are kept, 256 MiB at most.
const KEPT_MAX: usize = 64;

/// What was not used for so long is removed, after twice that at most.
const UNUSED_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use mill_runtime::files::FileKind;
    use std::fs::File;
    use std::os::fd::AsFd;

    /// A file of so many bytes, without a name.
    fn file(len: u64) -> File {
        let path = std::env::temp_dir().join(format!("mill-mappings-{}-{len}", std::process::id()));
        let file = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(len).unwrap();
        file
    }

    fn key(inode: u64, len: u64, modified: i64) -> FileKey {
        FileKey::of(&Metadata {
            kind: FileKind::Regular,
            len,
            modified: UnixTime::from_seconds(modified),
            inode,
            device: 1,
            executable: false,
        })
    }

    fn mappings() -> (Rc<Mappings>, Rc<Scheduler>) {
        let scheduler = Scheduler::new(Instant::from_nanos(0), UnixTime::from_seconds(0));
        let mappings = Rc::new(Mappings::default());
        mappings.set_scheduler(&scheduler);
        (mappings, scheduler)
    }

    #[test]
    fn the_next_opening_of_the_same_file_has_the_same_mapping() {
        let (mappings, _scheduler) = mappings();
        let file = file(100_000);
        let get = |key| mappings.get(key, file.as_fd()).unwrap();
        let first = get(key(1, 100_000, 5));
        assert!(Rc::ptr_eq(&first, &get(key(1, 100_000, 5))));
        for other in [key(2, 100_000, 5), key(1, 99_999, 5), key(1, 100_000, 6)] {
            assert!(!Rc::ptr_eq(&first, &get(other)), "{other:?}");
        }
        assert!(
            mappings.get(key(1, 60_000, 5), file.as_fd()).is_none(),
            "short"
        );
    }

    #[test]
    fn no_more_are_kept_than_may_be_and_none_that_is_not_used() {
        let (mappings, _scheduler) = mappings();
        let file = file(8 << 20);
        for inode in 0..3 * KEPT_MAX as u64 {
            mappings.get(key(inode, 100_000, 5), file.as_fd()).unwrap();
            mappings.get(key(0, 100_000, 5), file.as_fd()).unwrap();
        }
        assert_eq!(mappings.kept.borrow().len(), KEPT_MAX);
        mappings.get(key(1, 8 << 20, 5), file.as_fd()).unwrap();
        assert_eq!(mappings.kept.borrow().len(), KEPT_MAX);
        assert!(
            mappings
                .kept
                .borrow()
                .iter()
                .all(|one| one.key.len == 100_000)
        );
        assert!(mappings.sweep(Instant::from_nanos(1_999_999_999)));
        assert!(!mappings.sweep(Instant::from_nanos(2_000_000_000)));
        assert!(mappings.kept.borrow().is_empty() && !mappings.is_swept.get());
    }

    #[test]
    fn without_a_scheduler_nothing_is_kept() {
        let mappings = Rc::new(Mappings::default());
        let file = file(100_001);
        let get = || mappings.get(key(1, 100_001, 5), file.as_fd()).unwrap();
        assert!(!Rc::ptr_eq(&get(), &get()));
    }
}
