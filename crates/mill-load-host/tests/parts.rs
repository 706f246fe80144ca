//! Parts that are real processes. In a test binary of their own: a child holds the descriptors of concurrent tests
//! until it executes its program.

use mill_load::platform::{ChildProcesses, FromPart, Launcher};
use mill_load_host::{Interrupts, Processes};
use std::ffi::OsString;
use std::path::PathBuf;

/// Parts that are shell scripts.
fn shell(interrupts: &Interrupts, scripts: &[&str]) -> Box<dyn ChildProcesses> {
    let processes =
        Processes::new(interrupts.clone()).of(PathBuf::from("/bin/sh"), vec![OsString::from("-c")]);
    let arguments: Vec<Vec<Vec<u8>>> = scripts
        .iter()
        .map(|script| vec![script.as_bytes().to_vec()])
        .collect();
    processes
        .start(&arguments)
        .expect("a shell starts everywhere")
}

fn line(part: u32, text: &str) -> FromPart {
    FromPart::Line(part, String::from(text))
}

#[test]
fn all_lines_of_a_part_and_its_exit_are_received() {
    let mut children = shell(
        &Interrupts::default(),
        &["echo hello; read order; echo \"got $order\"; exit 3"],
    );
    assert_eq!(children.receive(), line(0, "hello"));
    children.send(0, "{\"start_ns\":1}");
    assert_eq!(children.receive(), line(0, "got {\"start_ns\":1}"));
    assert_eq!(
        children.receive(),
        FromPart::Ended(0, String::from("exit status: 3"))
    );
    children.send(0, "never read");
}

#[test]
fn an_interrupt_is_received_once_before_any_other_event() {
    let interrupts = Interrupts::default();
    let mut children = shell(&interrupts, &["read order; echo \"$order\""]);
    interrupts.ask();
    assert_eq!(children.receive(), FromPart::Interrupted);
    children.send(0, "stop");
    assert_eq!(children.receive(), line(0, "stop"));
}

#[test]
fn parts_end_with_their_parent() {
    let mut children = shell(
        &Interrupts::default(),
        &["echo $$; read order", "echo $$; read order"],
    );
    let processes: Vec<String> = (0..2)
        .map(|_| match children.receive() {
            FromPart::Line(_, process) => process,
            other => panic!("{other:?}"),
        })
        .collect();
    drop(children);
    for process in processes {
        assert!(!PathBuf::from(format!("/proc/{process}")).exists());
    }
}

#[test]
fn a_missing_program_is_reported() {
    let processes =
        Processes::new(Interrupts::default()).of(PathBuf::from("/nonexistent/program"), Vec::new());
    let error = processes.start(&[Vec::new()]).err().unwrap();
    assert!(
        error.starts_with("a part could not be started: "),
        "{error}"
    );
}
