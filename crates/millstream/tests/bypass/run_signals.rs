//! Handlers of signals that come in the midst of the library's work, and fork there or do not come back.

use crate::namespace::{COMMAND_TIME_MAX, has, text_of};
use crate::run::{BINARY, address};
use crate::server::{Site, wait_for};
use crate::topology::{STACK, between};
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
