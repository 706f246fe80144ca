//! Which of several processes has the interface, in cases where that is difficult: exactly one, in all circumstances.

use crate::ask;
use crate::namespace::has;
use crate::server::wait_for;
use crate::upgrade::{
    Download, LISTEN, Load, MAIN, World, children, is_running, pid_line, send, upgrading_with,
};
use mill_sys::descriptor;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::time::Duration;

/// Makes `unshare(CLONE_FILES)` fail for the calling thread and its children from now on, as in Docker.
fn refuse_tables_of_descriptors() {
    const CLONE_FILES: u64 = 0x400;
    let unshare = match std::env::consts::ARCH {
        "x86_64" => 272,
        "aarch64" => 97,
        other => panic!("the number of unshare(2) is not known for {other}"),
    };
    let has_flag = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(CLONE_FILES),
        CLONE_FILES,
    );
    let rule = SeccompRule::new(vec![has_flag.unwrap()]).unwrap();
    let filter = SeccompFilter::new(
        BTreeMap::from([(unshare, vec![rule])]),
        SeccompAction::Allow,
        // EPERM, as Docker answers.
        SeccompAction::Errno(1),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

/// The file that is locked, as this master has it.
fn lock_file(master: Pid) -> PathBuf {
    let folder = format!("/proc/{}/fd", master.number());
    let found = fs::read_dir(folder).unwrap().flatten().find(|entry| {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        let target = target.to_string_lossy().into_owned();
        target.contains("millstream-handover")
    });
    found.unwrap().path()
}

/// The processes that hold the lock of the interface, among all that know it by this master.
pub(crate) fn owners(master: Pid) -> Vec<Pid> {
    let inode = fs::metadata(lock_file(master)).unwrap().ino();
    let locks = fs::read_to_string("/proc/locks").unwrap();
    // proc(5): number, kind, advisory, write, process, "device:device:inode", first and last byte.
    let of_file = locks.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = words[5].rsplit(':').next().unwrap();
        // The other bytes say which processes live.
        let is_of_device = words[6..] == ["0", "0"];
        (words[1] == "POSIX" && number == inode.to_string() && is_of_device)
            .then(|| words[4].to_owned())
    });
    of_file
        .map(|pid| Pid::new(pid.parse().unwrap()).unwrap())
        .collect()
}

#[test]
fn one_process_has_the_interface_though_its_threads_have_one_table_of_descriptors() {
    if !has("python3") {
        println!("not tested: there is no python3");
        return;
    }
    upgrading_with(LISTEN, refuse_tables_of_descriptors, |world| {
        let said = world.site.error_log();
        assert!(said.contains("one descriptor table for all"), "{said}");
        let load = Load::begin(&world);
        let (mut master, mut worker) = (world.old.pid(), world.old.worker());
        for _ in 0..3 {
            assert_eq!(owners(master), [worker]);
            let mut kept = world.connect();
            assert_eq!(kept.get("/pid").unwrap().content, pid_line(worker));
            let download = Download::begin(&world);
            let (next, next_worker) = upgraded(&world, master);
            assert_eq!(owners(master), [next_worker]);
            assert_eq!(kept.get("/pid").unwrap().content, pid_line(worker));
            send(master, Signal::Quit);
            download.finish_alone();
            drop(kept);
            wait_for(|| !is_running(master));
            (master, worker) = (next, next_worker);
            assert_eq!(owners(master), [worker]);
        }
        let count = load.end();
        assert!(count > 3, "{count}");
        send(master, Signal::Terminate);
        wait_for(|| !is_running(master));
    });
}

/// Starts a new binary beside the one of this master, whose worker process takes over.
pub(crate) fn upgraded(world: &World<'_>, master: Pid) -> (Pid, Pid) {
    send(master, Signal::User2);
    wait_for(|| world.master().is_some_and(|pid| pid != master));
    let next = world.master().unwrap();
    wait_for(|| {
        let by = world.served_by();
        by.is_some_and(|by| children(next).contains(&by))
    });
    (next, children(next)[0])
}

/// The old worker process serves a port that the new one does not, and does not get the interface in time when the new
/// one is killed: its replacement is first.
#[test]
fn a_worker_that_comes_back_before_the_old_one_has_noticed_keeps_its_ports_served() {
    for stopped_for in [Duration::ZERO, SETTLED] {
        check_stopped(stopped_for);
    }
}

fn check_stopped(stopped_for: Duration) {
    let two_ports = format!("{LISTEN} server {{ listen 81; }}");
    upgrading_with(
        &two_ports,
        || {},
        |world| {
            let old_worker = world.old.worker();
            let mut kept = world.connect_to(81);
            assert_eq!(kept.get("/").unwrap().status, 200);
            world.site.configure(MAIN, LISTEN);
            let (master, worker) = world.upgrade();
            assert_eq!(kept.get("/").unwrap().status, 200);
            old_worker.kill(SIGSTOP).unwrap();
            wait_for(|| is_stopped(old_worker));
            send(worker, Signal::Kill);
            // The old one can't answer yet: its frames pass through the new one, which has no such connection.
            wait_for(|| {
                let owners = owners(master);
                owners.len() == 1 && owners != [worker] && owners != [old_worker]
            });
            descriptor::wait_readable(&[], Some(stopped_for)).unwrap();
            kept.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
            let hears = descriptor::wait_readable(&[kept.as_fd()], Some(UNANSWERED)).unwrap();
            assert!(!hears[0], "the peer hears nothing as long as it is stopped");
            old_worker.kill(SIGCONT).unwrap();
            assert_eq!(kept.answer().unwrap().status, 200);
            assert_eq!(owners(master), children(master));
            assert_eq!(world.served_by(), Some(children(master)[0]));
            assert_eq!(kept.get("/").unwrap().status, 200);
            send(master, Signal::Terminate);
            wait_for(|| !is_running(master));
        },
    );
}

/// The memory that processes share begins with its version.
#[test]
fn a_binary_of_another_version_says_why_it_does_not_begin_and_the_old_one_goes_on() {
    upgrading_with(
        LISTEN,
        || {},
        |world| {
            let old_worker = world.old.worker();
            let file = fs::File::options()
                .write(true)
                .open(lock_file(world.old.pid()));
            file.unwrap().write_all_at(&[99], 0).unwrap();
            world.old.signal(Signal::User2);
            wait_for(|| world.site.error_log().contains("of another version"));
            assert_eq!(world.served_by(), Some(old_worker));
            // A master stays whose workers can't begin, as in nginx.
            send(world.master().unwrap(), Signal::Quit);
            wait_for(|| world.master() == Some(world.old.pid()));
            assert_eq!(world.served_by(), Some(old_worker));
        },
    );
}

/// Longer than processes need that look for their place, if they are not stopped.
pub(crate) const SETTLED: Duration = Duration::from_millis(1500);

/// A reset would come at once.
pub(crate) const UNANSWERED: Duration = Duration::from_millis(200);

/// Whether all of its threads are stopped, which takes a moment after the signal (proc(5), stat: the state).
pub(crate) fn is_stopped(process: Pid) -> bool {
    let folder = format!("/proc/{}/task", process.number());
    let mut threads = fs::read_dir(folder).unwrap().flatten();
    threads.all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat"));
        stat.is_ok_and(|stat| stat.contains(") T "))
    })
}

/// A capture of the old process runs for longer than an upgrade may wait.
#[test]
fn frames_that_are_being_written_down_delay_no_upgrade() {
    upgrading_with(
        LISTEN,
        || {},
        |world| {
            let file = world.site.path("some.pcap");
            let asked = std::thread::spawn({
                let (process, file) = (world.old.pid().number().to_string(), file.clone());
                move || {
                    let file = file.to_str().unwrap();
                    ask::text(&[&process, "--pcap", file, "--for", "60"])
                }
            });
            wait_for(|| file.metadata().is_ok_and(|file| file.len() == 24));
            let mut kept = world.connect();
            assert_eq!(kept.get("/").unwrap().status, 200);
            let (master, _) = world.upgrade();
            assert_eq!(kept.get("/").unwrap().status, 200);
            let (output, code) = asked.join().unwrap();
            assert!(output.contains(" frames, ") && code == Some(0), "{output}");
            assert!(file.metadata().unwrap().len() > 24);
            send(master, Signal::Terminate);
            wait_for(|| !is_running(master));
        },
    );
}

#[test]
fn both_processes_report_the_frames_between_them() {
    upgrading_with(
        LISTEN,
        || {},
        |world| {
            let mut kept = world.connect();
            let (master, _) = world.upgrade();
            assert_eq!(kept.get("/").unwrap().status, 200);
            let rings = |process: Pid| {
                let status = ask::json(&[&process.number().to_string(), "--rings"]);
                let rows = ask::rows(&status, "rings").into_iter();
                let facts = rows.map(|row| {
                    let word = |name: &str| row[name].as_str().unwrap().to_owned();
                    (word("name"), word("value"))
                });
                facts.collect::<BTreeMap<_, _>>()
            };
            let old = rings(world.old.pid());
            let has = &old["interface"];
            assert!(
                has.contains("another process has it: frames pass"),
                "{old:?}"
            );
            let new = rings(master);
            assert!(new["behind"].contains("another process"), "{new:?}");
            for (name, of_other) in [
                ("received", "behind_received"),
                ("transmitted", "behind_transmitted"),
                ("transmit_no_room", "behind_no_room"),
            ] {
                let is_none = name == "transmit_no_room";
                assert_eq!(old[name] == "0", is_none, "{name} {old:?}");
                assert_eq!(old[name], new[of_other], "{name} {old:?} {new:?}");
            }
            send(master, Signal::Terminate);
            wait_for(|| !is_running(master));
        },
    );
}

/// signal(7), on all machines that this runs on.
pub(crate) const SIGCONT: i32 = 18;
pub(crate) const SIGSTOP: i32 = 19;
