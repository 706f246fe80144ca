//! A thread with a network namespace of its own.

use mill_sys::{interface, namespace};
use std::cell::Cell;
use std::process::{Command, Output, Stdio};
use std::sync::{PoisonError, RwLock};

/// Taken by all tests that run, and by one that runs alone.
static RUNNING: RwLock<()> = RwLock::new(());

thread_local! {
    /// This thread's test runs alone.
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a test while no other one has a namespace: one that measures time, or what the machine can do.
pub(crate) fn alone(test: impl FnOnce()) {
    let _turn = RUNNING.write().unwrap_or_else(PoisonError::into_inner);
    IS_ALONE.set(true);
    test();
    IS_ALONE.set(false);
}

/// Runs a test in a namespace of its own, beside others.
pub(crate) fn in_namespace(test: impl FnOnce() + Send) {
    let turn = || RUNNING.read().unwrap_or_else(PoisonError::into_inner);
    let _turn = (!IS_ALONE.get()).then(turn);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if let Err(error) = namespace::leave_network() {
                println!("not tested, since there can be no network namespace: {error}");
                return;
            }
            interface::set_up("lo").unwrap();
            test();
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Sets a value below /proc/sys/net/ipv4 of the calling thread's namespace.
pub(crate) fn set_ipv4(name: &str, value: &str) {
    std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value).unwrap();
}

/// The output of a command in the calling thread's namespace.
pub(crate) fn output_of(program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.arg(COMMAND_TIME_MAX).arg(program).args(arguments);
    command.stdin(Stdio::null()).output().unwrap()
}

/// The standard output of a command that has to succeed.
pub(crate) fn text_of(program: &str, arguments: &[&str]) -> String {
    let output = output_of(program, arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}\n{text}{errors}",
        output.status
    );
    text
}

/// The content that curl fetches, unless it fails.
pub(crate) fn get(url: &str) -> Option<String> {
    let output = output_of("curl", &["-sSf", url]);
    let is_fetched = output.status.success();
    if !is_fetched {
        println!("{url}: {}", String::from_utf8_lossy(&output.stderr));
    }
    is_fetched.then(|| String::from_utf8(output.stdout).unwrap())
}

/// Whether a program is installed.
pub(crate) fn has(program: &str) -> bool {
    let found = Command::new("which").arg(program).output();
    found.is_ok_and(|found| found.status.success())
}

/// The time limit of a command, in seconds.
pub(crate) const COMMAND_TIME_MAX: &str = "30";
