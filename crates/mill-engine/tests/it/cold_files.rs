//! Files that are not in the page cache: a helper thread reads them, and the engine reports the task that waits.
#![expect(clippy::print_stdout, reason = "a test that can't run says so")]

use crate::files::Directory;
use mill_conformance::Directory as _;
use mill_engine::{KernelEngine, KernelFiles, KernelOptions};
use mill_runtime::engine::{Engine, Events, Park};
use mill_runtime::files::{Files, Symlinks};
use mill_runtime::scheduler::Scheduler;
use std::ffi::OsStr;
use std::future::Future;
use std::os::unix::ffi::OsStrExt;
use std::pin::pin;
use std::process::Command;
use std::task::{Context, Poll, Waker};

#[test]
fn a_cold_file_is_read_while_its_task_waits() {
    let directory = Directory::new("read");
    let file = cold_file(&directory);
    let (engine, opened) = opened(&file);
    let mut buffer = vec![0; 100_000];
    let (read, waited) = run(&engine, engine.files().read_at(&opened, 5, &mut buffer));
    let read = read.unwrap();
    assert!(read > 0);
    assert_eq!(buffer[..read], content()[5..5 + read]);
    tell(waited);
    // Now it is in memory.
    let (again, waited) = run(&engine, engine.files().read_at(&opened, 5, &mut buffer));
    assert!(again.unwrap() >= read && !waited);
}

#[test]
fn a_cold_file_is_loaded_while_its_task_waits() {
    let directory = Directory::new("load");
    let file = cold_file(&directory);
    let (engine, opened) = opened(&file);
    let len = content().len() as u64;
    let (loaded, waited) = run(&engine, engine.files().load(&opened, 0, len));
    let loaded = loaded.unwrap();
    if loaded == 0 {
        println!("not tested: the file system does not say what is in memory");
        return;
    }
    tell(waited);
    let (again, waited) = run(&engine, engine.files().load(&opened, 0, loaded));
    assert_eq!((again, waited), (Ok(loaded), false));
}

#[test]
fn a_directory_is_listed_by_a_helper_thread() {
    let directory = Directory::new("list");
    directory.write("a", b"");
    let (engine, _) = opened(&directory.path("a"));
    let path = directory.path("");
    let (listed, _) = run(&engine, engine.files().list(&path));
    let names: Vec<_> = listed
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, [b"a"]);
}

/// A file whose bytes have left the page cache, if its file system lets them.
fn cold_file(directory: &Directory) -> Vec<u8> {
    let path = directory.write("f", &content());
    let name = OsStr::from_bytes(&path);
    std::fs::File::open(name).unwrap().sync_all().unwrap();
    let mut input = OsStr::new("if=").to_owned();
    input.push(name);
    let mut drop_cached = Command::new("dd");
    drop_cached
        .arg(&input)
        .args(["iflag=nocache", "of=/dev/null", "count=0"]);
    assert!(drop_cached.output().unwrap().status.success());
    path
}

fn content() -> Vec<u8> {
    (0..300_000_u32)
        .map(|number| (number % 251) as u8)
        .collect()
}

/// An engine whose files have a scheduler, and a file of it.
fn opened(path: &[u8]) -> (KernelEngine, <KernelFiles as Files>::File) {
    let engine = KernelEngine::new(KernelOptions::default()).unwrap();
    let (now, wall_clock) = engine.clock();
    engine
        .files()
        .set_scheduler(&Scheduler::new(now, wall_clock));
    let (opened, _) = run(&engine, engine.files().open(path, Symlinks::Follow))
        .0
        .unwrap();
    (engine, opened)
}

/// Polls a call until it is done, whenever the engine reports its task; says whether it had to wait.
fn run<T>(engine: &KernelEngine, call: impl Future<Output = T>) -> (T, bool) {
    let mut call = pin!(call);
    let mut context = Context::from_waker(Waker::noop());
    let mut waited = false;
    loop {
        if let Poll::Ready(result) = call.as_mut().poll(&mut context) {
            return (result, waited);
        }
        waited = true;
        let mut events = Events::default();
        while events.ready.is_empty() {
            engine.poll(Park::Forever, &mut events);
        }
    }
}

fn tell(waited: bool) {
    if !waited {
        println!("not tested: this file system's files do not leave the page cache");
    }
}
