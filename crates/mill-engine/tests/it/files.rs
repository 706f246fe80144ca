//! The file system.

use mill_conformance::Directory as _;
use mill_engine::{KernelFile, KernelFiles};
use mill_runtime::files::{FileError, FileErrorKind, FileKind, Files, Metadata, Symlinks};
use std::future::Future;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

/// A directory of one test, removed with it.
pub(crate) struct Directory(PathBuf);

impl mill_conformance::Directory for Directory {
    fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mill-engine-{}-{number}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    /// A path in it; the directory itself if `name` is empty.
    fn path(&self, name: &str) -> Vec<u8> {
        let path = if name.is_empty() {
            self.0.clone()
        } else {
            self.0.join(name)
        };
        path.as_os_str().as_bytes().to_vec()
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Vec<u8> {
        std::fs::write(self.0.join(name), bytes).unwrap();
        self.path(name)
    }

    fn truncate(&self, name: &str, len: usize) {
        let file = std::fs::File::options()
            .write(true)
            .open(self.0.join(name))
            .unwrap();
        file.set_len(len as u64).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        std::fs::rename(self.0.join(from), self.0.join(to)).unwrap();
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.0.join(name)).unwrap();
    }
}

impl Directory {
    fn make_directory(&self, name: &str) {
        std::fs::create_dir(self.0.join(name)).unwrap();
    }

    fn link(&self, name: &str, target: &str) {
        symlink(target, self.0.join(name)).unwrap();
    }

    fn give_away(&self, name: &str) {
        lchown(self.0.join(name), Some(STRANGER), None).unwrap();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A directory that remains fails no test.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A user id other than the test's own.
const STRANGER: u32 = 54_321;

/// Without a scheduler all calls complete at the first poll.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a call of the kernel's files returns at once"),
    }
}

fn open(path: &[u8], symlinks: Symlinks) -> Result<(KernelFile, Metadata), FileError> {
    now(KernelFiles::default().open(path, symlinks))
}

fn read(path: &[u8], symlinks: Symlinks) -> Result<Vec<u8>, FileErrorKind> {
    let (file, _) = open(path, symlinks).map_err(|error| error.kind)?;
    let mut buffer = [0; 64];
    let count =
        now(KernelFiles::default().read_at(&file, 0, &mut buffer)).map_err(|error| error.kind)?;
    Ok(buffer[..count].to_vec())
}

#[test]
fn what_is_opened_says_what_it_is() {
    let directory = Directory::new("open");
    let path = directory.write("f", b"content");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.0.join("f"), mode).unwrap();
    let (file, opened) = open(&path, Symlinks::Follow).unwrap();
    assert_eq!(
        (opened.kind, opened.len, opened.executable),
        (FileKind::Regular, 7, true)
    );
    assert_eq!(
        now(KernelFiles::default().metadata(&path, Symlinks::Follow)),
        Ok(opened)
    );
    let mut buffer = [0; 4];
    assert_eq!(
        now(KernelFiles::default().read_at(&file, 5, &mut buffer)),
        Ok(2)
    );
    assert_eq!(&buffer[..2], b"nt");
    assert_eq!(
        now(KernelFiles::default().read_at(&file, 7, &mut buffer)),
        Ok(0)
    );
    let beyond = now(KernelFiles::default().read_at(&file, u64::MAX, &mut buffer));
    assert_eq!(beyond.unwrap_err().call, "pread()");
    let (_, opened) = open(&directory.path(""), Symlinks::Follow).unwrap();
    assert_eq!(opened.kind, FileKind::Directory);
}

#[test]
fn a_fifo_is_opened_without_its_other_end() {
    let directory = Directory::new("fifo");
    let path = directory.path("fifo");
    let status = std::process::Command::new("mkfifo")
        .arg(directory.0.join("fifo"))
        .status();
    assert!(status.unwrap().success());
    for symlinks in [
        Symlinks::Follow,
        Symlinks::Refuse { from: 0 },
        Symlinks::RefuseUnlessSameOwner { from: 0 },
    ] {
        assert_eq!(open(&path, symlinks).unwrap().1.kind, FileKind::Other);
    }
}

#[test]
fn errors_have_kinds() {
    let directory = Directory::new("errors");
    directory.write("f", b"");
    directory.link("loop", "loop");
    let long = "n".repeat(256);
    for (name, kind) in [
        ("absent", FileErrorKind::NotFound),
        ("absent/below", FileErrorKind::NotFound),
        ("f/below", FileErrorKind::NotDirectory),
        ("f/", FileErrorKind::NotDirectory),
        ("loop", FileErrorKind::Symlink),
        (long.as_str(), FileErrorKind::NameTooLong),
        ("nul\0", FileErrorKind::NotFound),
    ] {
        let path = directory.path(name);
        assert_eq!(
            open(&path, Symlinks::Follow).unwrap_err().kind,
            kind,
            "{name:?}"
        );
        let examined = now(KernelFiles::default().metadata(&path, Symlinks::Follow));
        assert_eq!(examined.unwrap_err().kind, kind, "{name:?}");
        let checked = open(&path, Symlinks::RefuseUnlessSameOwner { from: 0 });
        assert_eq!(checked.unwrap_err().kind, kind, "{name:?}");
    }
    assert!(now(KernelFiles::default().list(&directory.path("absent"))).is_err());
}

/// `d/f`, and links to both that belong to the test's user and to another user.
fn linked() -> Directory {
    let directory = Directory::new("links");
    directory.make_directory("d");
    directory.write("d/f", b"content");
    let to_directory = String::from_utf8(directory.path("d")).unwrap();
    for (name, target) in [
        ("own", "d/f"),
        ("foreign", "d/f"),
        ("own-dir", "d"),
        ("foreign-dir", to_directory.as_str()),
        ("dangling", "nowhere"),
        ("chain", "own"),
    ] {
        directory.link(name, target);
    }
    directory.give_away("foreign");
    directory.give_away("foreign-dir");
    directory
}

#[test]
fn links_are_followed_refused_or_followed_to_what_their_owner_owns() {
    use FileErrorKind::{NotDirectory, NotFound, Symlink};
    let directory = linked();
    let content = || Ok(b"content".to_vec());
    // Each name with the result of each policy. ENOTDIR is the kernel's error for a link where a directory was
    // required.
    for (name, refuse, same_owner) in [
        ("d/f", content(), content()),
        ("d//./f", content(), content()),
        ("d/../d/f", content(), content()),
        ("own", Err(Symlink), content()),
        ("foreign", Err(Symlink), Err(Symlink)),
        ("own-dir/f", Err(NotDirectory), content()),
        ("foreign-dir/f", Err(NotDirectory), Err(Symlink)),
        ("dangling", Err(Symlink), Err(NotFound)),
        ("chain", Err(Symlink), content()),
        ("d/f/", Err(NotDirectory), Err(NotDirectory)),
        ("own/", Err(NotDirectory), Err(NotDirectory)),
        ("d/absent", Err(NotFound), Err(NotFound)),
    ] {
        let path = directory.path(name);
        let from = directory.path("").len();
        for from in [0, from] {
            let refused = read(&path, Symlinks::Refuse { from });
            assert_eq!(refused, refuse, "{name} from {from}");
            let checked = read(&path, Symlinks::RefuseUnlessSameOwner { from });
            assert_eq!(checked, same_owner, "{name} from {from}");
        }
        let kind = |kind: Result<Metadata, FileError>| kind.map(|_| ()).map_err(|error| error.kind);
        let examined = now(KernelFiles::default().metadata(&path, Symlinks::Refuse { from }));
        assert_eq!(kind(examined), refuse.map(|_| ()), "{name}");
    }
}

#[test]
fn a_directory_may_be_named_with_a_slash_at_its_end() {
    use FileErrorKind::{NotDirectory, Symlink};
    let directory = linked();
    for (name, refuse, same_owner) in [
        ("d/", Ok(FileKind::Directory), Ok(FileKind::Directory)),
        ("d", Ok(FileKind::Directory), Ok(FileKind::Directory)),
        ("own-dir/", Err(NotDirectory), Ok(FileKind::Directory)),
        ("foreign-dir/", Err(NotDirectory), Err(Symlink)),
    ] {
        let path = directory.path(name);
        let kind = |symlinks| {
            let opened = open(&path, symlinks);
            opened
                .map(|(_, metadata)| metadata.kind)
                .map_err(|error| error.kind)
        };
        assert_eq!(kind(Symlinks::Refuse { from: 0 }), refuse, "{name}");
        assert_eq!(
            kind(Symlinks::RefuseUnlessSameOwner { from: 0 }),
            same_owner,
            "{name}"
        );
    }
    for root in ["/", "//"] {
        let opened = open(root.as_bytes(), Symlinks::Refuse { from: 0 }).unwrap();
        assert_eq!(opened.1.kind, FileKind::Directory);
    }
}

#[test]
fn links_in_the_trusted_part_are_followed() {
    let directory = linked();
    let from = directory.path("foreign-dir").len();
    let path = directory.path("foreign-dir/f");
    for symlinks in [
        Symlinks::Refuse { from },
        Symlinks::RefuseUnlessSameOwner { from },
    ] {
        assert_eq!(read(&path, symlinks), Ok(b"content".to_vec()));
    }
    // A trusted part longer than the path trusts nothing.
    let checked = read(&path, Symlinks::Refuse { from: 10_000 });
    assert_eq!(checked, Err(FileErrorKind::NotDirectory));
}

#[test]
fn a_refused_link_is_said_to_be_refused_by_openat() {
    let directory = linked();
    let path = directory.path("own");
    let error = open(&path, Symlinks::Refuse { from: 0 }).unwrap_err();
    assert_eq!((error.call, error.code), ("openat()", ELOOP));
    let error = open(&directory.path("absent"), Symlinks::Follow).unwrap_err();
    assert_eq!((error.call, error.code), ("open()", ENOENT));
}

#[test]
fn listing_a_directory_follows_its_links() {
    let directory = linked();
    let mut listed = now(KernelFiles::default().list(&directory.path(""))).unwrap();
    listed.sort_by(|one, other| one.name.cmp(&other.name));
    let kinds: Vec<_> = listed
        .iter()
        .map(|entry| {
            let name = String::from_utf8(entry.name.clone()).unwrap();
            (name, entry.metadata.map(|metadata| metadata.kind))
        })
        .collect();
    let expected = [
        ("chain", FileKind::Regular),
        ("d", FileKind::Directory),
        ("dangling", FileKind::Other),
        ("foreign", FileKind::Regular),
        ("foreign-dir", FileKind::Directory),
        ("own", FileKind::Regular),
        ("own-dir", FileKind::Directory),
    ];
    assert_eq!(
        kinds,
        expected.map(|(name, kind)| (name.to_owned(), Some(kind)))
    );
}

#[test]
fn the_real_path_has_no_links() {
    let directory = linked();
    for name in ["own", "chain", "foreign-dir/f", "d/../d/./f"] {
        let real = KernelFiles::default().real_path(&directory.path(name));
        assert_eq!(real, Ok(directory.path("d/f")), "{name}");
    }
    let error = KernelFiles::default()
        .real_path(&directory.path("dangling"))
        .unwrap_err();
    assert_eq!(
        (error.kind, error.call),
        (FileErrorKind::NotFound, "realpath()")
    );
}

/// asm-generic/errno-base.h and errno.h.
const ENOENT: i32 = 2;
const ELOOP: i32 = 40;
