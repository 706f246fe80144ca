//! Ctrl-C: once, twice, and before anything has begun.

use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A running generator, and its only connection. The first request is answered, the second has arrived.
fn under_way(arguments: &[&str]) -> (Child, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let child = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(arguments)
        .arg(url)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // wrk first tests whether the port listens, and closes that connection again.
    let mut accepted = listener.incoming().map(Result::unwrap);
    let mut stream = accepted.find_map(receive_first).unwrap();
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok")
        .unwrap();
    assert!(receive(&mut stream), "a second request comes");
    (child, stream)
}

/// The stream, if a request arrives on it.
fn receive_first(mut stream: TcpStream) -> Option<TcpStream> {
    receive(&mut stream).then_some(stream)
}

/// Whether a whole request arrives.
fn receive(stream: &mut TcpStream) -> bool {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap() == 0 {
            return false;
        }
        request.push(byte[0]);
    }
    true
}

fn send(child: &Child, signal: Signal) {
    let process = Pid::new(i32::try_from(child.id()).unwrap()).unwrap();
    process.kill(signal.number()).unwrap();
}

/// The output, and the exit status.
fn end(child: Child) -> (String, Option<i32>) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, output.status.code())
}

#[test]
fn one_interrupt_prints_the_results() {
    let check = |tool: &[&str], signal, expected: &str, status| {
        let (child, _stream) = under_way(tool);
        send(&child, signal);
        let (text, code) = end(child);
        assert!(text.contains(expected), "{tool:?}: {text}");
        assert_eq!(code, Some(status), "{tool:?}");
    };
    let wrk = ["wrk", "-t", "1", "-c", "1", "-d", "30"];
    check(&wrk, Signal::Interrupt, "  1 requests in ", 0);
    check(&wrk, Signal::Terminate, "  1 requests in ", 0);
    let wrk2 = ["wrk2", "-R", "1000", "-t", "1", "-c", "1", "-d", "30"];
    check(&wrk2, Signal::Interrupt, "  1 requests in ", 0);
    let ab = ["ab", "-k", "-n", "100"];
    check(&ab, Signal::Interrupt, "Complete requests:      1\n", 1);
}

/// As timeout(1) does: to the process, and to its group.
#[test]
fn several_at_once_are_one() {
    for _ in 0..5 {
        let (child, _stream) = under_way(&["wrk", "-t", "1", "-c", "1", "-d", "30"]);
        for _ in 0..20 {
            send(&child, Signal::Interrupt);
            std::thread::yield_now();
        }
        let (text, code) = end(child);
        assert!(text.contains("  1 requests in "), "{text}");
        assert_eq!(code, Some(0));
    }
}

#[test]
fn twice_ends_at_once() {
    let name = format!("millstream-interrupt-{}.lua", std::process::id());
    let script: PathBuf = std::env::temp_dir().join(name);
    std::fs::write(&script, "function done() while true do end end").unwrap();
    let path = script.to_str().unwrap();
    let tool = ["wrk", "-t", "1", "-c", "1", "-d", "30", "-s", path];
    let (mut child, mut stream) = under_way(&tool);
    send(&child, Signal::Interrupt);
    // Its threads have ended when the connection has; a script without end remains.
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    // Repeated until a signal counts as a second request.
    while child.try_wait().unwrap().is_none() {
        send(&child, Signal::Interrupt);
        std::thread::yield_now();
    }
    let (_, code) = end(child);
    std::fs::remove_file(&script).unwrap();
    assert_eq!(code, Some(130));
}
