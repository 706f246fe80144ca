//! Reloads, upgrades, processes that are killed or stopped.

use crate::fates::{CONNECTIONS, Fates};
use crate::namespace::output_of;
use crate::stage::{HTTP, MAIN, Stage, on_each, pause};
use crate::transport::Transport;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;

/// Every request that was started was answered.
pub(crate) fn all_are_answered(fates: &Fates) {
    assert_eq!(fates.lost(), 0, "{fates:?}");
    assert!(fates.answered > 100, "{fates:?}");
}

#[test]
fn without_a_fault_every_request_is_answered() {
    on_each(
        &Transport::ALL,
        "nothing",
        |_| String::from("–"),
        all_are_answered,
    );
}

#[test]
fn a_hundred_reloads_lose_no_request() {
    let reload = |stage: &mut Stage<'_>| {
        for number in 2..=101 {
            // Another configuration each time.
            let http = format!("{HTTP} map_hash_max_size {};", 2048 + number);
            stage.site.configure(MAIN, &http);
            stage.server().signal(Signal::Hangup);
            stage.wait_until("a reload", |stage| stage.in_force(number) == 1);
        }
        String::from("100 reloads")
    };
    on_each(&Transport::ALL, "reloads", reload, all_are_answered);
}

/// Each of the client's connections loses a request in progress at most so many times, and those that it began while no
/// socket listened.
fn few_are_lost(times: u64) -> impl Fn(&Fates) {
    move |fates| {
        assert!(fates.reset + fates.cut <= times * CONNECTIONS, "{fates:?}");
        assert_eq!(fates.timed_out, 0, "a client comes to know: {fates:?}");
        assert!(fates.answered > 100, "{fates:?}");
    }
}

#[test]
fn a_killed_worker_loses_only_requests_in_progress() {
    let kill = |stage: &mut Stage<'_>| {
        for killed in 1..=3 {
            let worker = stage.server().worker();
            worker.kill(Signal::Kill.number()).unwrap();
            stage.wait_until("the next worker", |stage| stage.in_force(1) > killed);
            pause(HEARING_MS);
        }
        String::from("3 workers killed")
    };
    on_each(&Transport::ALL, "worker killed", kill, few_are_lost(3));
}

#[test]
fn a_killed_master_loses_only_requests_until_the_next_one_serves() {
    let kill = |stage: &mut Stage<'_>| {
        for _ in 0..2 {
            let mut server = stage.server.take().unwrap();
            let worker = server.worker();
            server.kill_all();
            // The kernel may take a moment longer to end its threads, which hold its descriptors.
            stage.wait_until("the end of the worker", |_| has_ended(worker));
            stage.start();
            pause(HEARING_MS);
        }
        String::from("2 times master and worker killed, started again")
    };
    // Twice a kill: the kernel lets a client that reconnects at once in to a listener whose process is ending.
    on_each(&Transport::ALL, "master killed", kill, few_are_lost(2 * 2));
}

#[test]
fn a_worker_stopped_for_a_second_loses_no_request() {
    let stop = |stage: &mut Stage<'_>| {
        let worker = stage.server().worker();
        worker.kill(SIGSTOP).unwrap();
        pause(1000);
        worker.kill(SIGCONT).unwrap();
        String::from("worker stopped for 1 s")
    };
    on_each(&Transport::ALL, "worker stopped", stop, all_are_answered);
}

/// The transports over which a binary may be replaced; over memif the server refuses it, and goes on.
const UPGRADABLE: [Transport; 2] = [Transport::Kernel, Transport::AfXdp];

#[test]
fn an_upgrade_that_is_taken_back_loses_no_request() {
    let take_back = |stage: &mut Stage<'_>| {
        for _ in 0..3 {
            let old = stage.server().pid();
            let new = begin_upgrade(stage, old);
            new.kill(Signal::Quit.number()).unwrap();
            stage.wait_until("the old master's pid file", |stage| {
                stage.master() == Some(old)
            });
            pause(200);
        }
        String::from("3 new binaries that quit")
    };
    on_each(&UPGRADABLE, "USR2 taken back", take_back, all_are_answered);
}

#[test]
fn an_upgrade_that_is_carried_out_loses_no_request() {
    let upgrade = |stage: &mut Stage<'_>| {
        let mut master = stage.server().pid();
        for _ in 0..3 {
            let new = begin_upgrade(stage, master);
            master.kill(Signal::Quit.number()).unwrap();
            stage.wait_until("the end of the old master", |_| !is_running(master));
            master = new;
        }
        String::from("3 upgrades")
    };
    on_each(&UPGRADABLE, "USR2", upgrade, all_are_answered);
}

#[test]
fn an_upgrade_that_is_refused_loses_no_request() {
    let refuse = |stage: &mut Stage<'_>| {
        stage.server().signal(Signal::User2);
        stage.wait_until("a refusal", |stage| stage.site.error_log().contains("USR2"));
        String::from("refused, as it is over memif")
    };
    on_each(&[Transport::Memif], "USR2", refuse, all_are_answered);
}

/// Starts a new binary beside the old one; returns its master once it has a worker that serves.
fn begin_upgrade(stage: &Stage<'_>, old: Pid) -> Pid {
    let before = stage.in_force(1);
    old.kill(Signal::User2.number()).unwrap();
    stage.wait_until("the new master", |stage| {
        stage.master().is_some_and(|master| master != old)
    });
    stage.wait_until("the new worker", |stage| stage.in_force(1) > before);
    stage.master().unwrap()
}

fn is_running(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.number()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Whether the last thread of a process has ended: the first one may be a zombie before the others.
fn has_ended(process: Pid) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{}/task", process.number()));
    !is_running(process) && threads.map_or(true, |threads| threads.count() <= 1)
}

/// Processes of an upgrade are no children of the test.
impl Drop for Stage<'_> {
    fn drop(&mut self) {
        let directory = self.site.path("nginx.conf");
        let pattern = directory.to_str().unwrap();
        let _ = output_of("pkill", &["-KILL", "-f", pattern]);
    }
}

/// How long clients of a killed process may take to notice.
const HEARING_MS: u64 = 1500;

/// signal(7), on x86-64 and Arm.
const SIGSTOP: i32 = 19;
const SIGCONT: i32 = 18;
