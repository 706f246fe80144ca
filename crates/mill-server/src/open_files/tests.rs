//! The cache over files in memory that count how often they are opened and examined.

use super::*;
use mill_runtime::files::{
    DirectoryEntry, FilePiece, PoolLimits, Publication, StoredPath, Visibility,
};
use mill_runtime::time::{Duration, Instant, UnixTime};
use std::collections::BTreeMap;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The files by path. An open file is identified by the number of its opening.
#[derive(Default)]
struct Disk {
    found: RefCell<BTreeMap<Vec<u8>, Metadata>>,
    opened: Cell<u32>,
    examined: Cell<u32>,
    /// No call is done while this is set.
    is_held: Cell<bool>,
    /// All calls are refused: too many wait already.
    is_overloaded: Cell<bool>,
}

impl Files for Disk {
    type File = u32;

    fn set_scheduler(&self, _: &Rc<Scheduler>) {}

    fn set_pool_limits(&self, _: PoolLimits) {}

    async fn open(&self, path: &[u8], _: Symlinks) -> Result<(u32, Metadata), FileError> {
        self.opened.set(self.opened.get() + 1);
        self.wait().await;
        let found = self.at(path, "open()")?;
        Ok((self.opened.get(), found))
    }

    async fn metadata(&self, path: &[u8], _: Symlinks) -> Result<Metadata, FileError> {
        self.examined.set(self.examined.get() + 1);
        self.wait().await;
        self.at(path, "stat()")
    }

    async fn read_at(&self, _: &u32, _: u64, _: &mut [u8]) -> Result<usize, FileError> {
        Ok(0)
    }

    async fn load(&self, _: &u32, _: u64, len: u64) -> Result<u64, FileError> {
        Ok(len)
    }

    async fn list(&self, _: &[u8]) -> Result<Vec<DirectoryEntry>, FileError> {
        Ok(Vec::new())
    }

    fn real_path(&self, path: &[u8]) -> Result<Vec<u8>, FileError> {
        Ok(path.to_vec())
    }

    fn create(&self, path: &[u8], _: usize, _: Visibility) -> Result<u32, FileError> {
        Err(self.at(path, "open()").expect_err("nothing is made here"))
    }

    fn write_at(&self, _: &u32, _: u64, _: &[u8]) -> Result<(), FileError> {
        Ok(())
    }

    fn rename(&self, _: &[u8], _: &[u8]) -> Result<(), FileError> {
        Ok(())
    }

    async fn publish(&self, _: &u32, _: &[u8], _: &[u8], _: &Publication) -> Result<(), FileError> {
        Ok(())
    }

    fn remove(&self, _: &[u8]) -> Result<(), FileError> {
        Ok(())
    }

    async fn store(&self, _: &StoredPath<'_>, _: Vec<FilePiece>) -> Result<(), FileError> {
        Ok(())
    }

    async fn discard(&self, _: &[u8]) -> Result<(), FileError> {
        Ok(())
    }

    async fn free_bytes(&self, _: &[u8]) -> Result<u64, FileError> {
        Ok(u64::MAX)
    }
}

impl Disk {
    async fn wait(&self) {
        poll_fn(|_| match self.is_held.get() {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
        .await;
    }

    fn at(&self, path: &[u8], call: &'static str) -> Result<Metadata, FileError> {
        if self.is_overloaded.get() {
            return Err(FileError {
                kind: FileErrorKind::Overloaded,
                call,
                code: 11,
            });
        }
        self.found.borrow().get(path).copied().ok_or(FileError {
            kind: FileErrorKind::NotFound,
            call,
            code: 2,
        })
    }

    fn put(&self, path: &str, kind: FileKind, inode: u64, len: u64) {
        let metadata = Metadata {
            kind,
            len,
            modified: UnixTime::from_seconds(1),
            inode,
            device: 1,
            executable: false,
        };
        self.found
            .borrow_mut()
            .insert(path.as_bytes().to_vec(), metadata);
    }

    fn remove(&self, path: &str) {
        self.found.borrow_mut().remove(path.as_bytes());
    }
}

/// A cache, a disk and a clock.
struct World {
    disk: Disk,
    cache: OpenFiles<u32>,
    lookup: Lookup,
}

impl World {
    /// `open_file_cache max=2 inactive=20s; open_file_cache_valid 10s;`
    fn new() -> Self {
        Self {
            disk: Disk::default(),
            cache: OpenFiles::new(
                &Scheduler::new(Instant::from_nanos(0), UnixTime::default()),
                7,
            ),
            lookup: Lookup {
                generation: 1,
                now: Instant::from_nanos(0),
                symlinks: Symlinks::Follow,
                cache: Some(OpenFileCache {
                    max: 2,
                    inactive: Duration::from_secs(20),
                }),
                valid: Duration::from_secs(10),
                min_uses: 1,
                errors: false,
            },
        }
    }

    fn with_file(path: &str) -> Self {
        let world = Self::new();
        world.disk.put(path, FileKind::Regular, 1, 100);
        world
    }

    fn wait(&mut self, seconds: u64) {
        self.lookup.now = self.lookup.now + Duration::from_secs(seconds);
    }

    fn open(&self, path: &str) -> Result<Rc<OpenFile<u32>>, FileError> {
        ready(self.cache.open(&self.disk, path.as_bytes(), &self.lookup))
    }

    /// Opens an existing path; returns how often files were opened and examined until now.
    fn counts_after(&self, path: &str) -> (u32, u32) {
        let found = self.open(path).unwrap();
        assert!(found.file.is_some() || found.metadata.kind == FileKind::Directory);
        (self.disk.opened.get(), self.disk.examined.get())
    }

    /// Paths from the most to the least recently used.
    fn paths(&self) -> Vec<String> {
        let text = |path: &&[u8]| String::from_utf8_lossy(path).into_owned();
        let paths = |entries: &mut Entries<u32>| entries.paths().iter().map(text).collect();
        self.cache.with_entries(&self.lookup, paths).unwrap()
    }
}

/// The value of a future that never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("nothing here waits"),
    }
}

#[test]
fn without_a_cache_every_use_opens_and_nothing_is_fresh() {
    let mut world = World::with_file("/a");
    world.lookup.cache = None;
    assert_eq!(world.counts_after("/a"), (1, 0));
    assert_eq!(world.counts_after("/a"), (2, 0));
    assert!(world.open("/a").unwrap().freshness.is_none());
    assert!(world.cache.fresh(b"/a", &world.lookup).is_none());
    let found = ready(world.cache.test(&world.disk, b"/a", &world.lookup)).unwrap();
    assert_eq!((found.file, world.disk.examined.get()), (None, 1));
}

#[test]
fn a_file_stays_open_until_it_is_invalid_and_is_then_examined() {
    let mut world = World::with_file("/a");
    assert_eq!(world.counts_after("/a"), (1, 0));
    world.wait(9);
    assert_eq!(world.counts_after("/a"), (1, 0));
    world.wait(1);
    assert_eq!(world.counts_after("/a"), (1, 1));
    world.wait(9);
    assert_eq!(world.counts_after("/a"), (1, 1));
}

#[test]
fn the_same_file_keeps_its_freshness_and_a_changed_one_ends_it() {
    let mut world = World::with_file("/a");
    let first = world.open("/a").unwrap();
    let freshness = first.freshness.clone().unwrap();
    world.wait(10);
    assert!(!freshness.is_fresh(world.lookup.now));
    let again = world.open("/a").unwrap();
    assert!(Rc::ptr_eq(&first, &again) && freshness.is_fresh(world.lookup.now));
    world.disk.put("/a", FileKind::Regular, 1, 200);
    world.wait(10);
    let grown = world.open("/a").unwrap();
    assert_eq!((grown.file, grown.metadata.len), (Some(1), 200));
    assert!(!freshness.is_fresh(world.lookup.now));
    assert!(grown.freshness.as_ref().unwrap().is_fresh(world.lookup.now));
}

#[test]
fn another_file_at_the_path_is_opened() {
    let mut world = World::with_file("/a");
    assert_eq!(world.counts_after("/a"), (1, 0));
    world.disk.put("/a", FileKind::Regular, 2, 100);
    assert_eq!(world.counts_after("/a"), (1, 0));
    world.wait(10);
    assert_eq!(world.counts_after("/a"), (2, 1));
    assert_eq!(world.open("/a").unwrap().file, Some(2));
}

#[test]
fn a_file_that_is_gone_is_forgotten_when_it_is_examined() {
    let mut world = World::with_file("/a");
    let freshness = world.open("/a").unwrap().freshness.clone().unwrap();
    world.disk.remove("/a");
    assert!(world.open("/a").is_ok());
    world.wait(10);
    assert_eq!(world.open("/a").unwrap_err().kind, FileErrorKind::NotFound);
    assert!(!freshness.is_fresh(Instant::from_nanos(0)));
    assert!(world.paths().is_empty());
}

#[test]
fn failures_are_remembered_only_if_asked_for() {
    let mut world = World::new();
    assert!(world.open("/a").is_err());
    assert!(world.open("/a").is_err());
    assert_eq!(world.disk.opened.get(), 2);
    world.lookup.errors = true;
    assert!(world.open("/a").is_err());
    world.disk.put("/a", FileKind::Regular, 1, 1);
    assert_eq!(world.open("/a").unwrap_err().call, "open()");
    assert_eq!(world.disk.opened.get(), 3);
    world.wait(10);
    assert!(world.open("/a").is_ok());
}

#[test]
fn a_file_is_kept_open_from_its_least_number_of_uses_on() {
    let mut world = World::with_file("/a");
    world.lookup.min_uses = 3;
    assert_eq!(world.counts_after("/a"), (1, 0));
    assert!(world.open("/a").unwrap().freshness.is_none());
    assert_eq!(world.counts_after("/a"), (3, 0));
    assert_eq!(world.counts_after("/a"), (3, 0));
    assert!(world.open("/a").unwrap().freshness.is_some());
}

#[test]
fn the_least_recently_used_entry_makes_room() {
    let world = World::new();
    for (inode, path) in (1..).zip(["/a", "/b", "/c"]) {
        world.disk.put(path, FileKind::Regular, inode, 1);
    }
    let first = world.open("/a").unwrap();
    world.counts_after("/b");
    world.counts_after("/a");
    assert_eq!(world.counts_after("/c"), (3, 0));
    assert_eq!(world.paths(), ["/c", "/a"]);
    assert!(first.freshness.as_ref().unwrap().is_fresh(world.lookup.now));
    assert_eq!(world.counts_after("/b"), (4, 0));
    assert_eq!(world.paths(), ["/b", "/c"]);
    assert!(!first.freshness.as_ref().unwrap().is_fresh(world.lookup.now));
}

#[test]
fn uses_past_the_cache_keep_an_entry_too() {
    let mut world = World::new();
    for (inode, path) in (1..).zip(["/a", "/b", "/c"]) {
        world.disk.put(path, FileKind::Regular, inode, 1);
    }
    let used = world.open("/a").unwrap();
    world.counts_after("/b");
    world.wait(1);
    used.freshness.as_ref().unwrap().count_use(world.lookup.now);
    world.counts_after("/c");
    assert_eq!(world.paths(), ["/c", "/a"]);
}

#[test]
fn inactive_entries_go_two_at_a_time() {
    let mut world = World::new();
    world.lookup.cache = Some(OpenFileCache {
        max: 10,
        inactive: Duration::from_secs(20),
    });
    let paths = ["/a", "/b", "/c", "/d"];
    for (inode, path) in (1..).zip(paths) {
        world.disk.put(path, FileKind::Regular, inode, 1);
        world.counts_after(path);
    }
    world.wait(20);
    world.counts_after("/d");
    assert_eq!(world.paths(), ["/d", "/c", "/b", "/a"]);
    world.wait(1);
    world.wait(10);
    world.counts_after("/d");
    assert_eq!(world.paths(), ["/d", "/c"]);
    world.wait(10);
    world.counts_after("/d");
    assert_eq!(world.paths(), ["/d"]);
}

#[test]
fn a_directory_is_examined_and_not_kept_open() {
    let mut world = World::new();
    world.disk.put("/d", FileKind::Directory, 1, 1);
    assert_eq!(world.counts_after("/d"), (1, 0));
    assert_eq!(world.open("/d").unwrap().file, None);
    world.wait(10);
    assert_eq!(world.counts_after("/d"), (1, 1));
    world.disk.put("/e", FileKind::Directory, 2, 1);
    let tested = ready(
        world
            .cache
            .test_directory(&world.disk, b"/e", &world.lookup),
    );
    assert_eq!(tested.unwrap().metadata.kind, FileKind::Directory);
    assert_eq!(world.disk.opened.get(), 1);
}

#[test]
fn another_rule_for_links_asks_again() {
    let mut world = World::with_file("/a");
    world.counts_after("/a");
    world.lookup.symlinks = Symlinks::Refuse { from: 0 };
    assert_eq!(world.counts_after("/a"), (1, 1));
    world.disk.remove("/a");
    world.wait(10);
    assert_eq!(world.open("/a").unwrap_err().call, "openat()");
}

#[test]
fn a_new_configuration_begins_with_an_empty_cache() {
    let mut world = World::with_file("/a");
    let freshness = world.open("/a").unwrap().freshness.clone().unwrap();
    world.lookup.generation = 2;
    assert_eq!(world.counts_after("/a"), (2, 0));
    assert!(!freshness.is_fresh(world.lookup.now));
}

#[test]
fn a_refusal_is_not_remembered_and_removes_nothing() {
    let mut world = World::with_file("/a");
    world.lookup.errors = true;
    let freshness = world.open("/a").unwrap().freshness.clone().unwrap();
    world.wait(10);
    world.disk.is_overloaded.set(true);
    for path in ["/a", "/b"] {
        let refused = world.open(path).unwrap_err();
        assert_eq!(refused.kind, FileErrorKind::Overloaded);
    }
    assert_eq!(world.paths(), ["/a"]);
    world.disk.is_overloaded.set(false);
    assert_eq!(world.counts_after("/a"), (2, 2));
    assert!(freshness.is_fresh(world.lookup.now));
}

#[test]
fn a_refusal_is_not_told_to_those_that_wait() {
    let world = World::with_file("/a");
    let mut context = Context::from_waker(Waker::noop());
    world.disk.is_held.set(true);
    let mut first = pin!(world.cache.open(&world.disk, b"/a", &world.lookup));
    assert!(first.as_mut().poll(&mut context).is_pending());
    let mut second = pin!(world.cache.open(&world.disk, b"/a", &world.lookup));
    assert!(second.as_mut().poll(&mut context).is_pending());
    world.disk.is_held.set(false);
    world.disk.is_overloaded.set(true);
    assert!(ready(first).is_err());
    world.disk.is_overloaded.set(false);
    assert!(ready(second).is_ok());
    assert_eq!(world.disk.opened.get(), 2);
}

#[test]
fn a_failure_is_told_to_those_that_wait_and_to_none_that_comes_later() {
    let world = World::new();
    let mut context = Context::from_waker(Waker::noop());
    world.disk.is_held.set(true);
    let mut first = pin!(world.cache.open(&world.disk, b"/a", &world.lookup));
    assert!(first.as_mut().poll(&mut context).is_pending());
    let mut second = pin!(world.cache.open(&world.disk, b"/a", &world.lookup));
    assert!(second.as_mut().poll(&mut context).is_pending());
    world.disk.is_held.set(false);
    assert!(ready(first).is_err());
    world.disk.put("/a", FileKind::Regular, 1, 1);
    assert!(world.open("/a").is_ok());
    assert!(ready(second).is_err());
}

#[test]
fn requests_with_different_rules_for_links_do_not_share_a_result() {
    let mut world = World::with_file("/a");
    let mut context = Context::from_waker(Waker::noop());
    world.disk.is_held.set(true);
    let follows = world.lookup;
    let mut first = pin!(world.cache.open(&world.disk, b"/a", &follows));
    assert!(first.as_mut().poll(&mut context).is_pending());
    world.lookup.symlinks = Symlinks::Refuse { from: 0 };
    world.disk.is_held.set(false);
    assert!(world.open("/a").is_ok());
    assert_eq!(world.disk.opened.get(), 2);
}
