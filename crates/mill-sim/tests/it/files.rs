//! What a server sees of files that the test changes.

use mill_runtime::engine::Engine;
use mill_runtime::files::{FileError, FileErrorKind, FileKind, Files, Symlinks, Visibility};
use mill_runtime::time::UnixTime;
use mill_sim::engine::SimEngine;
use mill_sim::files::{FileCalls, SimFiles};
use mill_sim::world::{Until, World};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The output of a future that has nothing to wait for.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("files without latency answer at once"),
    }
}

fn files(world: &World) -> (SimFiles, SimEngine) {
    (world.files().clone(), world.engine())
}

fn read(files: &SimFiles, path: &str) -> Vec<u8> {
    let (file, metadata) = now(files.open(path.as_bytes(), Symlinks::Follow)).expect("it opens");
    let mut bytes = vec![0; usize::try_from(metadata.len).expect("it is small") + 1];
    let len = now(files.read_at(&file, 0, &mut bytes)).expect("it can be read");
    bytes.truncate(len);
    bytes
}

fn open_error(files: &SimFiles, path: &str, symlinks: Symlinks) -> Option<FileError> {
    now(files.open(path.as_bytes(), symlinks)).err()
}

#[test]
fn a_path_that_leads_nowhere_says_why() {
    let world = World::new(1);
    let (files, _engine) = files(&world);
    files.write("/www/index.html", "hello");
    files.write("/www/secret", "");
    files.write("/www/closed/file", "");
    files.set_readable("/www/secret", false);
    files.set_readable("/www/closed", false);
    files.link("/www/loop", "loop");
    let long = format!("/www/{}", "n".repeat(256));
    let deep = "/d".repeat(2048);
    let check = |path: &str, kind, code| {
        let expected = Some(FileError {
            kind,
            call: "open()",
            code,
        });
        assert_eq!(
            open_error(&files, path, Symlinks::Follow),
            expected,
            "{path}"
        );
    };
    check("/www/none", FileErrorKind::NotFound, 2);
    check("/none/none", FileErrorKind::NotFound, 2);
    check("/www/secret", FileErrorKind::PermissionDenied, 13);
    check("/www/closed/file", FileErrorKind::PermissionDenied, 13);
    check("/www/index.html/", FileErrorKind::NotDirectory, 20);
    check("/www/index.html/more", FileErrorKind::NotDirectory, 20);
    check("/www/loop", FileErrorKind::Symlink, 40);
    check(&long, FileErrorKind::NameTooLong, 36);
    check(&deep, FileErrorKind::NameTooLong, 36);
    files.set_open_max(0);
    check("/www/index.html", FileErrorKind::Exhausted, 24);
}

#[test]
fn kinds_are_told_apart() {
    let world = World::new(1);
    let (files, _engine) = files(&world);
    files.write("/www/file", "12345");
    files.create_other("/www/fifo");
    files.set_executable("/www/file", true);
    let stat = |path: &str| now(files.metadata(path.as_bytes(), Symlinks::Follow)).unwrap();
    let file = stat("/www/file");
    assert_eq!(
        (file.kind, file.len, file.executable),
        (FileKind::Regular, 5, true)
    );
    assert_eq!(file.modified, UnixTime::from_seconds(1_767_225_600));
    assert_eq!(stat("/www").kind, FileKind::Directory);
    assert_eq!(stat("/").kind, FileKind::Directory);
    assert_eq!(stat("/www/fifo").kind, FileKind::Other);
    let (directory, _) = now(files.open(b"/www", Symlinks::Follow)).unwrap();
    let reading = now(files.read_at(&directory, 0, &mut [0; 4]));
    assert_eq!(
        reading.err().map(|error| (error.call, error.code)),
        Some(("pread()", 21))
    );
}

#[test]
fn links_lead_on_unless_they_are_refused() {
    let world = World::new(1);
    let (files, _engine) = files(&world);
    files.write("/data/page", "page");
    files.link("/www/link", "../data/page");
    files.link("/www/directory", "/data");
    assert_eq!(read(&files, "/www/link"), b"page");
    assert_eq!(read(&files, "/www/directory/./../data/page"), b"page");
    let real = |path: &str| files.real_path(path.as_bytes()).unwrap();
    assert_eq!(real("/www/directory/page"), b"/data/page");
    assert_eq!(real("/www/.."), b"/");

    let refused = Some(FileError {
        kind: FileErrorKind::Symlink,
        call: "openat()",
        code: 40,
    });
    let refuse = |from| Symlinks::Refuse { from };
    let same_owner = Symlinks::RefuseUnlessSameOwner { from: 0 };
    assert_eq!(open_error(&files, "/www/link", refuse(0)), refused);
    assert_eq!(
        open_error(&files, "/www/directory/page", refuse("/www".len())),
        refused
    );
    assert_eq!(
        open_error(
            &files,
            "/www/directory/page",
            refuse("/www/directory".len())
        ),
        None
    );
    assert_eq!(open_error(&files, "/www/link", same_owner), None);
    files.set_owner("/www/link", 33);
    assert_eq!(open_error(&files, "/www/link", same_owner), refused);
}

#[test]
fn an_open_file_outlives_its_path_and_sees_changes_in_place() {
    let world = World::new(1);
    let (files, _engine) = files(&world);
    files.write("/f", "old");
    let (file, before) = now(files.open(b"/f", Symlinks::Follow)).unwrap();
    let content = |offset| {
        let mut bytes = [0; 16];
        let len = now(files.read_at(&file, offset, &mut bytes)).unwrap();
        bytes[..len].to_vec()
    };
    files.append("/f", "er");
    assert_eq!(content(0), b"older");
    files.set_len("/f", 2);
    assert_eq!((content(1), content(9)), (b"l".to_vec(), Vec::new()));
    files.replace("/f", "new");
    assert_eq!(
        (content(0), read(&files, "/f")),
        (b"ol".to_vec(), b"new".to_vec())
    );
    let after = now(files.metadata(b"/f", Symlinks::Follow)).unwrap();
    assert_ne!(before.inode, after.inode);
    files.remove("/f");
    assert_eq!(content(0), b"ol");
    assert_eq!(files.open_files(), 1);
    drop(file);
    assert_eq!(files.open_files(), 0);
}

#[test]
fn a_directory_lists_its_entries_and_the_broken_ones_without_metadata() {
    let world = World::new(1);
    let (files, _engine) = files(&world);
    files.write("/www/a", "1");
    files.link("/www/broken", "nowhere");
    files.create_directory("/www/c");
    let listed = now(files.list(b"/www")).unwrap();
    let kinds: Vec<_> = listed
        .iter()
        .map(|entry| {
            (
                entry.name.as_slice(),
                entry.metadata.map(|metadata| metadata.kind),
            )
        })
        .collect();
    let expected: [(&[u8], _); 3] = [
        (b"a", Some(FileKind::Regular)),
        (b"broken", None),
        (b"c", Some(FileKind::Directory)),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(
        now(files.list(b"/www/a")).err().map(|error| error.code),
        Some(20)
    );
}

#[test]
fn a_disk_is_full_until_a_file_without_a_name_is_closed_or_another_one_removed() {
    let world = World::new(1);
    let (files, _engine) = files(&world);
    files.create_directory("/temp");
    files.set_disk_bytes_max(10);
    let unnamed = files.create(b"/temp/1", 0, Visibility::Unnamed).unwrap();
    let named = files.create(b"/temp/2/2", 1, Visibility::Named).unwrap();
    let full = |written: Result<(), FileError>| written.err().map(|error| error.code);
    assert_eq!(files.write_at(&unnamed, 0, b"123456"), Ok(()));
    assert_eq!(files.write_at(&unnamed, 2, b"xy"), Ok(()));
    assert_eq!(full(files.write_at(&named, 0, b"12345")), Some(28));
    drop(unnamed);
    assert_eq!(files.write_at(&named, 0, b"1234567"), Ok(()));
    assert_eq!(full(files.write_at(&named, 7, b"1234")), Some(28));
    assert_eq!(Files::remove(&files, b"/temp/2/2"), Ok(()));
    assert_eq!(files.names("/temp"), ["2"]);
    assert_eq!(files.disk_bytes_peak(), 7);
    let again = files.create(b"/none/3", 0, Visibility::Named);
    assert_eq!(full(again.map(drop)), Some(2));
}

#[test]
fn calls_are_counted() {
    let world = World::new(1);
    let (files, _engine) = files(&world);
    files.write("/f", "");
    read(&files, "/f");
    let _ = now(files.metadata(b"/none", Symlinks::Follow));
    let _ = now(files.list(b"/"));
    let _ = files.real_path(b"/f");
    let made = files
        .create(b"/g", 0, Visibility::Named)
        .expect("a new name");
    files.write_at(&made, 0, b"g").expect("there is room");
    Files::remove(&files, b"/g").expect("it exists");
    let once = FileCalls {
        open: 1,
        metadata: 1,
        read_at: 1,
        load: 0,
        list: 1,
        real_path: 1,
        create: 1,
        write_at: 1,
        remove: 1,
        store: 0,
    };
    assert_eq!(files.calls(), once);
}

#[test]
fn a_slow_disk_takes_virtual_time_from_every_call() {
    use crate::server::{ADDRESS, start};
    use mill_runtime::payload::Payload;
    use mill_runtime::stream::Stream;
    use std::time::Duration;

    let world = World::new(1);
    let files = world.files().clone();
    files.write("/f", "slow");
    files.set_latency(Duration::from_millis(30));
    let mut server = start(&world, |stream, _| {
        let files = files.clone();
        async move {
            let (file, metadata) = files.open(b"/f", Symlinks::Follow).await.unwrap();
            let mut bytes = [0; 4];
            files.read_at(&file, 0, &mut bytes).await.unwrap();
            assert_eq!(metadata.len, 4);
            stream.write(Payload::Copy(&bytes));
        }
    });
    let client = world.connect(ADDRESS);
    world.run(|| server.worker.turn(), Until::Quiet);
    assert_eq!(client.received(), b"slow");
    assert_eq!(client.ended_at(), Some(Duration::from_millis(60)));
    let _ = server.worker.engine().files();
}
