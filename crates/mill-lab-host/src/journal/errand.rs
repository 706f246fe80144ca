//! A short command on a host: its output, or its error message.

use crate::host::{Host, quoted};
use crate::remote_shell;
use mill_sys::program::on_its_own;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Runs it to its end, with `input` on its standard input; returns its output. A failure is an error with the command
/// and its last line of output; `NotFound` if the program, the file or the namespace does not exist.
pub(crate) fn run(host: &Host, argv: &[&str], input: Option<&str>) -> io::Result<String> {
    run_to(host, argv, input, &[0])
}

/// The same for a program whose exit codes tell more than success or failure.
pub(crate) fn run_to(
    host: &Host,
    argv: &[&str],
    input: Option<&str>,
    good_codes: &[i32],
) -> io::Result<String> {
    let words = wrapped(host, argv);
    let Some((program, arguments)) = words.split_first() else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    // Ctrl-C must not end a command that restores the system.
    let mut child = on_its_own(&mut Command::new(program))
        .args(arguments)
        // Errors are distinguished by their text.
        .env("LC_ALL", "C")
        .stdin(if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                io::Error::new(io::ErrorKind::NotFound, format!("needs {program}"))
            }
            _ => error,
        })?;
    if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
        // A program that ended early gives the reason itself.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    if output
        .status
        .code()
        .is_some_and(|code| good_codes.contains(&code))
    {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().lines().last().unwrap_or_default();
    if is_lacking(host, said, output.status.code()) {
        let program = argv.first().copied().unwrap_or_default();
        let needs = format!("needs {program}");
        return Err(io::Error::new(io::ErrorKind::NotFound, needs));
    }
    let kind = if said.contains("No such file or directory") {
        io::ErrorKind::NotFound
    } else if said.contains("ermission denied") || said.contains("not permitted") {
        io::ErrorKind::PermissionDenied
    } else {
        io::ErrorKind::Other
    };
    let line = words.iter().map(|word| quoted(word)).collect::<Vec<_>>();
    let text = format!("{}: {said} ({})", line.join(" "), output.status);
    Err(io::Error::new(kind, text))
}

/// Whether the program was not found on the host, where ip(8) or a remote shell starts it.
fn is_lacking(host: &Host, said: &str, code: Option<i32>) -> bool {
    match host {
        Host::Local => false,
        Host::Namespace(_) => said.starts_with("exec of "),
        // POSIX sh, "Exit Status for Commands".
        Host::Remote(_) => code == Some(127),
    }
}

/// Like `Host::wrap`, but without a remote terminal, which would change the bytes read and written.
fn wrapped(host: &Host, argv: &[&str]) -> Vec<String> {
    let plain = |words: &[&str]| words.iter().map(|word| String::from(*word)).collect();
    match host {
        Host::Local => plain(argv),
        Host::Namespace(name) => plain(&[&["ip", "netns", "exec", name], argv].concat()),
        Host::Remote(target) => {
            let far = argv
                .iter()
                .map(|word| quoted(word))
                .collect::<Vec<_>>()
                .join(" ");
            let mut words = remote_shell::words(&SSH_OPTIONS, target);
            words.push(far);
            words
        }
    }
}

/// Never asks for a password, because the command is not interactive, and waits 5 s for a host that is down, ten
/// times a slow handshake over a long line.
pub(crate) const SSH_OPTIONS: [&str; 4] = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=5"];

/// What ssh(1) exits with when the failure is its own.
pub(crate) const SSH_FAILED: &str = "exit status: 255";
