//! Files that a worker makes.

use crate::files::{Directory, now};
use mill_conformance::Directory as _;
use mill_engine::KernelFiles;
use mill_runtime::files::{FileError, Files, Publication, Visibility};
use mill_runtime::time::UnixTime;

fn code<T>(result: Result<T, FileError>) -> Option<(&'static str, i32)> {
    result.err().map(|error| (error.call, error.code))
}

#[test]
fn a_file_without_a_name_keeps_what_is_written_and_leaves_directories_only() {
    let directory = Directory::new("unnamed");
    let files = KernelFiles::default();
    let path = directory.path("temp/1/00/0000000001");
    assert_eq!(
        code(files.create(&path, 2, Visibility::Unnamed)),
        Some(("mkdir()", 2)),
        "two of three directories may be made"
    );
    let file = files.create(&path, 3, Visibility::Unnamed).unwrap();
    files.write_at(&file, 0, b"abc").unwrap();
    files.write_at(&file, 3, b"def").unwrap();
    let mut buffer = [0; 8];
    assert_eq!(now(files.read_at(&file, 1, &mut buffer)), Ok(5));
    assert_eq!(&buffer[..5], b"bcdef");
    let listed = now(files.list(&directory.path("temp/1/00"))).unwrap();
    assert_eq!(listed, []);
    assert_eq!(code(files.remove(&path)), Some(("unlink()", 2)));
}

#[test]
fn a_file_with_a_name_is_made_once_and_stays_until_it_is_removed() {
    use std::os::unix::fs::PermissionsExt;

    let directory = Directory::new("named");
    let files = KernelFiles::default();
    let path = directory.path("0000000001");
    let file = files.create(&path, 0, Visibility::Named).unwrap();
    files.write_at(&file, 0, b"abc").unwrap();
    drop(file);
    let stored = std::str::from_utf8(&path).unwrap();
    assert_eq!(std::fs::read(stored).unwrap(), b"abc");
    let mode = std::fs::metadata(stored).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = files.create(&path, 0, Visibility::Named);
    assert_eq!(code(again), Some(("open()", 17)));
    assert_eq!(files.remove(&path), Ok(()));
    assert!(!std::fs::exists(stored).unwrap());
}

#[test]
fn a_renamed_file_takes_the_place_of_another_one() {
    let directory = Directory::new("renamed");
    let files = KernelFiles::default();
    let (from, to) = (directory.path("new"), directory.path("kept"));
    assert_eq!(code(files.rename(&from, &to)), Some(("rename()", 2)));
    for (path, text) in [(&to, "old"), (&from, "new")] {
        let file = files.create(path, 0, Visibility::Named).unwrap();
        files.write_at(&file, 0, text.as_bytes()).unwrap();
    }
    assert_eq!(files.rename(&from, &to), Ok(()));
    let text = |path: &[u8]| std::fs::read(std::str::from_utf8(path).unwrap());
    assert_eq!(text(&to).unwrap(), b"new");
    assert!(text(&from).is_err());
}

#[test]
fn a_published_file_has_its_permissions_its_date_and_its_directories() {
    use std::os::unix::fs::MetadataExt;

    let directory = Directory::new("published");
    let files = KernelFiles::default();
    let (from, to) = (directory.path("new"), directory.path("a/b/kept"));
    for (mode, modified) in [(0o644, Some(784_111_777)), (0o600, None)] {
        let file = files.create(&from, 0, Visibility::Named).unwrap();
        files.write_at(&file, 0, b"text").unwrap();
        let publication = Publication {
            mode,
            modified: modified.map(UnixTime::from_seconds),
        };
        let published = now(files.publish(&file, &from, &to, &publication));
        assert_eq!(published, Ok(()));
        let path = std::str::from_utf8(&to).unwrap();
        let found = std::fs::metadata(path).unwrap();
        assert_eq!(found.mode() & 0o777, mode);
        assert_eq!(found.mtime() == 784_111_777, modified.is_some());
        assert_eq!(std::fs::read(path).unwrap(), b"text");
        assert!(!std::fs::exists(std::str::from_utf8(&from).unwrap()).unwrap());
    }
    let above = std::fs::metadata(std::str::from_utf8(&directory.path("a")).unwrap()).unwrap();
    assert_eq!(above.mode() & 0o777, 0o755);
}

#[test]
fn a_file_that_is_published_in_another_file_system_is_copied_whole() {
    use std::os::unix::fs::MetadataExt;

    let directory = Directory::new("elsewhere");
    let files = KernelFiles::default();
    let from = directory.path("0000000007");
    // Memory, on all systems that the tests run on.
    let there = format!("/dev/shm/mill-published-{}", std::process::id());
    let to = format!("{there}/a/kept");
    let file = files.create(&from, 0, Visibility::Named).unwrap();
    let source = std::fs::metadata(std::str::from_utf8(&from).unwrap()).unwrap();
    let target = std::fs::metadata("/dev/shm").unwrap();
    assert_ne!(source.dev(), target.dev());
    let text = b"text".repeat(100_000);
    files.write_at(&file, 0, &text).unwrap();
    let publication = Publication {
        mode: 0o640,
        modified: Some(UnixTime::from_seconds(784_111_777)),
    };
    let published = now(files.publish(&file, &from, to.as_bytes(), &publication));
    let found = std::fs::metadata(&to).map(|found| (found.mode() & 0o777, found.mtime()));
    let (read, names) = (std::fs::read(&to), std::fs::read_dir(format!("{there}/a")));
    let count = names.map(Iterator::count);
    std::fs::remove_dir_all(&there).unwrap();
    assert_eq!(published, Ok(()));
    assert_eq!(found.unwrap(), (0o640, 784_111_777));
    assert_eq!(read.unwrap(), text);
    assert_eq!(count.unwrap(), 1);
    assert!(!std::fs::exists(std::str::from_utf8(&from).unwrap()).unwrap());
}
