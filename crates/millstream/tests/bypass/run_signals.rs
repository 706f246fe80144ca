//! Handlers of signals that come in the midst of the library's work, and fork there or do not come back.

use crate::namespace::{COMMAND_TIME_MAX, has, text_of};
use crate::run::{BINARY, address};
use crate::run_calls::PYTHON;
use crate::server::{Site, wait_for};
use crate::topology::{STACK, between, kernel_connections};
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// A program that echoes a connection while a timer's signals interrupt it.
const SOURCE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/bypass/run_signals/handlers.c"
);

/// A piece that is echoed before the next one is sent.
const BYTES: usize = 500;

/// Exchanges pieces until the program has handled signals enough. Returns how many bytes there were.
fn exchange(near: &mut TcpStream, is_enough: &AtomicBool) -> usize {
    near.set_nodelay(true).unwrap();
    let mut exchanged = 0;
    while !is_enough.load(Ordering::Relaxed) {
        let text = (0..=250).cycle().skip(exchanged % 251).take(BYTES);
        let text: Vec<u8> = text.collect();
        near.write_all(&text).unwrap();
        let mut echoed = [0; BYTES];
        near.read_exact(&mut echoed).unwrap();
        assert!(echoed[..] == text, "after {exchanged} bytes");
        exchanged += BYTES;
    }
    near.shutdown(Shutdown::Write).unwrap();
    assert_eq!(near.read(&mut [0]).unwrap(), 0);
    exchanged
}

/// The program under `millstream run`, which ends also if it hangs.
fn start(program: &str, handler: &str) -> Child {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", COMMAND_TIME_MAX, BINARY, "run"]);
    command.args(["--stack", STACK, "--", program, handler]);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

fn handlers_of(handler: &str) {
    if !has("cc") {
        println!("not tested: there is no cc");
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let program = site.path("handlers").display().to_string();
        text_of("cc", &["-O1", "-o", &program, SOURCE]);
        let mut running = start(&program, handler);
        let mut said = BufReader::new(running.stdout.take().unwrap()).lines();
        let mut next = || said.next().unwrap().unwrap();
        let is_enough = AtomicBool::new(false);
        let exchanged = std::thread::scope(|scope| {
            let exchanged = scope.spawn(|| {
                topology.at_client(|| {
                    let mut found = None;
                    wait_for(|| {
                        found = TcpStream::connect(address(7000)).ok();
                        found.is_some()
                    });
                    exchange(&mut found.unwrap(), &is_enough)
                })
            });
            assert_eq!(next(), "enough");
            is_enough.store(true, Ordering::Relaxed);
            exchanged.join().unwrap()
        });
        assert_eq!(next(), exchanged.to_string());
        assert!(running.wait().unwrap().success());
    });
}

#[test]
fn handlers_that_fork_in_the_midst_of_calls_find_no_lock_taken() {
    handlers_of("fork");
}

#[test]
fn handlers_that_leave_calls_by_a_jump_leave_nothing_locked() {
    handlers_of("jump");
}

#[test]
fn handlers_that_use_sockets_may_interrupt_the_allocator_of_the_program() {
    handlers_of("echo");
}

/// Its handler of the library may interrupt a thread that has a lock of the C library's allocator, while another thread forks.
#[test]
fn a_signal_without_a_handler_ends_a_process_that_allocates_and_forks() {
    if !has("cc") {
        println!("not tested: there is no cc");
        return;
    }
    between(1500, |_| {
        let site = Site::new();
        let program = site.path("handlers").display().to_string();
        text_of("cc", &["-O1", "-o", &program, SOURCE]);
        let running = start(&program, "end");
        let said = running.wait_with_output().unwrap().stdout;
        assert_eq!(String::from_utf8(said).unwrap(), "30\n");
    });
}

/// Echoes on a thread for each connection. Its first thread waits for the next one, and says a letter for each signal: Python runs handlers there.
const FIRST_THREAD: &str = "
import os, signal, socket, threading
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'h'))
s = socket.create_server(('0.0.0.0', 80), backlog=50)
def talk(c):
    while d := c.recv(9999): c.sendall(d)
while True: threading.Thread(target=talk, args=(s.accept()[0],), daemon=True).start()
";

/// The kernel gives a process's signal to its first thread, unless that blocks it: then another one has it, and the first one waits on.
#[test]
fn a_signal_interrupts_the_first_thread_whenever_it_comes() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let mut command = Command::new("timeout");
        command.args([
            "--foreground",
            "-s",
            "KILL",
            COMMAND_TIME_MAX,
            BINARY,
            "run",
        ]);
        command.args(["--stack", STACK, "--", PYTHON, "-c", FIRST_THREAD]);
        let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = running.stdout.take().unwrap();
        let far = || topology.at_client(|| TcpStream::connect(address(80)));
        wait_for(|| far().is_ok() && kernel_connections(80).is_empty());
        let mut clients: Vec<TcpStream> = (0..3).map(|_| far().unwrap()).collect();
        let process = program_of(&running);
        for signals in 0..200 {
            // Each at another moment of what the threads do.
            for client in clients.iter_mut().take(signals % 4) {
                client.write_all(b"word").unwrap();
                client.read_exact(&mut [0; 4]).unwrap();
            }
            process.kill(Signal::User1.number()).unwrap();
            said.read_exact(&mut [0]).unwrap();
        }
        process.kill(Signal::Kill.number()).unwrap();
        running.wait().unwrap();
    });
}

/// The program that `timeout` has started.
fn program_of(timeout: &Child) -> Pid {
    let children = format!("/proc/{0}/task/{0}/children", timeout.id());
    let children = std::fs::read_to_string(children).unwrap();
    Pid::new(children.trim().parse().unwrap()).unwrap()
}
