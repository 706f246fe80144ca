//! The master's decisions as scripts: events, and the actions that follow.

use super::*;

const NOW: Duration = Duration::from_secs(100);

fn pid(number: i32) -> Pid {
    Pid::new(number).unwrap()
}

/// An event of a master.
enum Event {
    Signal(Signal),
    /// While the old binary, which started this one, still runs.
    SignalBesideOld(Signal),
    Exit(i32, Ending),
    Ready(i32),
    /// The new binary tells that it serves.
    Serves,
    Time(Duration),
}
use Event::{Exit, Ready, Serves, SignalBesideOld, Time};

const KILLED: Ending = Ending::Signal {
    number: 9,
    core_dumped: false,
};

/// A master with its simulated environment: processes get numbers from 10 on, the new binary is 99.
struct World {
    master: Master,
    next_pid: i32,
    now: Duration,
    /// The new binary tells when it serves.
    is_to_tell: bool,
}

impl World {
    fn new(daemonized: bool) -> Self {
        let mut world = Self {
            master: Master::new(daemonized),
            next_pid: 10,
            now: NOW,
            is_to_tell: false,
        };
        world.master.on_start();
        assert_eq!(world.settle(), "StartWorker");
        world
    }

    /// Carries out all actions and lists them, except log lines.
    fn settle(&mut self) -> String {
        let mut done = Vec::new();
        while let Some(action) = self.master.next_action() {
            match action {
                Action::Log(..) => continue,
                Action::StartWorker => {
                    self.master.on_worker_started(pid(self.next_pid));
                    self.next_pid += 1;
                }
                Action::StartBinary => {
                    let is_to_tell = self.is_to_tell;
                    self.master.on_binary_started(pid(99), is_to_tell, self.now);
                }
                _ => {}
            }
            done.push(match action {
                Action::Quit(pid) => format!("Quit({pid})"),
                Action::Signal(pid, signal) => format!("Signal({pid}, {signal:?})"),
                other => format!("{other:?}"),
            });
        }
        done.join(" ")
    }

    fn on(&mut self, event: Event) -> String {
        let received = |signal| Received {
            signal,
            sender: Some(pid(7)),
        };
        match event {
            Event::Signal(signal) => self.master.on_signal(received(signal), false, self.now),
            SignalBesideOld(signal) => self.master.on_signal(received(signal), true, self.now),
            Exit(number, ending) => self.master.on_child_exit(pid(number), ending, self.now),
            Ready(number) => self.master.on_worker_ready(pid(number)),
            Serves => self.master.on_binary_serves(),
            Time(passed) => {
                self.now += passed;
                self.master.on_time(self.now);
            }
        }
        self.settle()
    }
}

/// Feeds the events to a daemon with worker process 10, and compares the actions with those beside each event.
fn check(script: impl IntoIterator<Item = (Event, &'static str)>) {
    check_in(World::new(true), script);
}

/// The same with a new binary that tells when it serves, as one on the network stack does.
fn check_on_stack(script: impl IntoIterator<Item = (Event, &'static str)>) {
    let world = World {
        is_to_tell: true,
        ..World::new(true)
    };
    check_in(world, script);
}

fn check_in(mut world: World, script: impl IntoIterator<Item = (Event, &'static str)>) {
    for (index, (event, expected)) in script.into_iter().enumerate() {
        assert_eq!(world.on(event), expected, "step {index}");
    }
}

fn signal(signal: Signal) -> Event {
    Event::Signal(signal)
}

#[test]
fn quit_waits_for_the_worker_process_however_long_it_takes() {
    check([
        (signal(Signal::Quit), "Quit(10) CloseListeners"),
        (Time(Duration::from_secs(3600)), ""),
        (signal(Signal::Quit), ""),
        (signal(Signal::Hangup), ""),
        (Exit(10, Ending::Code(0)), "Exit"),
    ]);
}

#[test]
fn terminate_kills_a_worker_process_that_does_not_obey() {
    for order in [Signal::Terminate, Signal::Interrupt] {
        check([
            (signal(order), "Signal(10, Terminate)"),
            (Time(TERMINATION_TIMEOUT - Duration::from_millis(1)), ""),
            (Time(Duration::from_millis(1)), "Signal(10, Kill)"),
            (Time(Duration::from_secs(10)), ""),
            (Exit(10, KILLED), "Exit"),
        ]);
    }
}

#[test]
fn terminate_overrules_a_graceful_end() {
    check([
        (signal(Signal::Quit), "Quit(10) CloseListeners"),
        (signal(Signal::Terminate), "Signal(10, Terminate)"),
        (signal(Signal::Quit), ""),
        (Exit(10, Ending::Code(0)), "Exit"),
    ]);
}

#[test]
fn without_a_worker_process_the_end_is_immediate() {
    for order in [Signal::Quit, Signal::Terminate] {
        let mut world = World::new(true);
        world.on(signal(Signal::WindowChange));
        world.on(Exit(10, Ending::Code(0)));
        assert!(world.on(signal(order)).ends_with("Exit"));
    }
}

#[test]
fn a_killed_worker_process_is_replaced_at_once() {
    check([
        (Ready(10), ""),
        (Exit(10, KILLED), "StartWorker"),
        (Ready(11), ""),
        (Exit(11, Ending::Code(1)), "StartWorker"),
    ]);
}

#[test]
fn worker_processes_that_never_get_ready_are_started_once_a_second() {
    check([
        (Exit(10, KILLED), "StartWorker"),
        (Exit(11, KILLED), "StartWorker"),
        (Exit(12, KILLED), "StartWorker"),
        (Exit(13, KILLED), ""),
        (Time(RESTART_DELAY - Duration::from_millis(1)), ""),
        (Time(Duration::from_millis(1)), "StartWorker"),
        (Ready(14), ""),
        (Exit(14, KILLED), "StartWorker"),
    ]);
}

#[test]
fn a_worker_process_that_failed_for_good_is_not_replaced_until_the_next_reload() {
    check([
        (Exit(10, Ending::Code(FATAL_CODE)), ""),
        (Time(Duration::from_secs(10)), ""),
        (signal(Signal::Hangup), "Reconfigure StartWorker"),
    ]);
}

#[test]
fn a_reload_keeps_the_worker_process() {
    check([
        (signal(Signal::Hangup), "Reconfigure"),
        (signal(Signal::User1), "ReopenLogs"),
        (signal(Signal::Child), ""),
    ]);
}

#[test]
fn winch_drains_a_daemon_and_hangup_brings_the_worker_process_back() {
    check([
        (signal(Signal::WindowChange), "Quit(10)"),
        (signal(Signal::WindowChange), ""),
        (signal(Signal::Hangup), "Reconfigure StartWorker"),
        (Exit(10, Ending::Code(0)), ""),
        (Exit(11, KILLED), "StartWorker"),
    ]);
}

#[test]
fn winch_means_nothing_in_the_foreground() {
    let mut world = World::new(false);
    assert_eq!(world.on(signal(Signal::WindowChange)), "");
    assert_eq!(world.master.serving(), Some(pid(10)));
}

#[test]
fn an_upgrade_that_is_taken_leaves_the_old_binary_to_quit() {
    check([
        (signal(Signal::User2), "StartBinary"),
        (signal(Signal::User2), ""),
        (signal(Signal::WindowChange), "Quit(10)"),
        (Exit(10, Ending::Code(0)), ""),
        (signal(Signal::Quit), "CloseListeners Exit"),
    ]);
}

#[test]
fn an_upgrade_can_be_taken_back_by_hangup_to_the_old_binary() {
    check([
        (signal(Signal::User2), "StartBinary"),
        (signal(Signal::WindowChange), "Quit(10)"),
        (Exit(10, Ending::Code(0)), ""),
        (signal(Signal::Hangup), "StartWorker"),
        (Exit(99, Ending::Code(0)), "RestorePidFile"),
        (signal(Signal::Hangup), "Reconfigure"),
    ]);
}

#[test]
fn the_end_of_the_new_binary_brings_the_drained_worker_process_back() {
    check([
        (signal(Signal::User2), "StartBinary"),
        (signal(Signal::WindowChange), "Quit(10)"),
        (Exit(10, Ending::Code(0)), ""),
        (Exit(99, Ending::Code(1)), "RestorePidFile StartWorker"),
        (signal(Signal::User2), "StartBinary"),
    ]);
}

#[test]
fn the_old_binary_on_the_stack_goes_on_until_the_new_one_serves() {
    check_on_stack([
        (signal(Signal::User2), "StartBinary"),
        (signal(Signal::WindowChange), ""),
        (signal(Signal::Quit), ""),
        (signal(Signal::Quit), ""),
        (Serves, "Quit(10) CloseListeners"),
        (Exit(10, Ending::Code(0)), "Exit"),
    ]);
    check_on_stack([
        (signal(Signal::User2), "StartBinary"),
        (signal(Signal::WindowChange), ""),
        (Serves, "Quit(10)"),
        (Serves, ""),
    ]);
    check_on_stack([
        (signal(Signal::User2), "StartBinary"),
        (Serves, ""),
        (signal(Signal::Quit), "Quit(10) CloseListeners"),
    ]);
}

#[test]
fn the_old_binary_waits_for_one_that_never_serves_only_so_long() {
    check_on_stack([
        (signal(Signal::User2), "StartBinary"),
        (signal(Signal::Quit), ""),
        (Time(BINARY_TIMEOUT - Duration::from_millis(1)), ""),
        (Time(Duration::from_millis(1)), "Quit(10) CloseListeners"),
    ]);
    check_on_stack([
        (signal(Signal::User2), "StartBinary"),
        (signal(Signal::Quit), ""),
        (
            Exit(99, Ending::Code(1)),
            "RestorePidFile Quit(10) CloseListeners",
        ),
    ]);
    check_on_stack([
        (signal(Signal::User2), "StartBinary"),
        (signal(Signal::WindowChange), ""),
        (Exit(99, Ending::Code(1)), "RestorePidFile"),
        (signal(Signal::Hangup), "Reconfigure"),
    ]);
    check_on_stack([
        (signal(Signal::User2), "StartBinary"),
        (signal(Signal::Quit), ""),
        (signal(Signal::Terminate), "Signal(10, Terminate)"),
        (Serves, ""),
    ]);
    check_on_stack([
        (signal(Signal::User2), "StartBinary"),
        (signal(Signal::WindowChange), ""),
        (signal(Signal::Hangup), ""),
        (Serves, ""),
    ]);
}

#[test]
fn a_new_binary_starts_no_third_one_while_the_old_one_runs() {
    check([
        (SignalBesideOld(Signal::User2), ""),
        (signal(Signal::User2), "StartBinary"),
    ]);
}

#[test]
fn it_sleeps_until_it_has_to_act_itself() {
    let mut world = World::new(true);
    assert_eq!(world.master.wake_at(), None);
    world.on(signal(Signal::Terminate));
    assert_eq!(world.master.wake_at(), Some(NOW + TERMINATION_TIMEOUT));
}

#[test]
fn log_lines_are_worded_as_nginx_s() {
    let mut master = Master::new(true);
    let received = |signal, sender| Received { signal, sender };
    master.on_worker_started(pid(10));
    master.on_signal(received(Signal::Hangup, Some(pid(7))), false, NOW);
    master.on_signal(received(Signal::Interrupt, None), false, NOW);
    master.on_child_exit(pid(10), KILLED, NOW);
    master.on_child_exit(pid(11), Ending::Code(3), NOW);
    let mut lines = Vec::new();
    while let Some(action) = master.next_action() {
        if let Action::Log(level, line) = action {
            lines.push(format!("[{}] {line}", level.name()));
        }
    }
    assert_eq!(
        lines,
        [
            "[notice] start worker process 10",
            "[notice] signal 1 (SIGHUP) received from 7, reconfiguring",
            "[notice] reconfiguring",
            "[notice] signal 2 (SIGINT) received, exiting",
            "[alert] worker process 10 exited on signal 9",
            "[notice] unknown process 11 exited with code 3",
        ]
    );
}
