//! Programs under `millstream run` that call nothing for a while: they compute, or are stopped.

use crate::namespace::{has, text_of};
use crate::run::{Accelerated, SIGSTOP, address};
use crate::run_calls::PYTHON;
use crate::server::wait_for;
use crate::topology::{between, kernel_connections};
use mill_sys::descriptor;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Echoes one connection; having read a byte it computes for five seconds.
const COMPUTING: &str = "
import socket, time
c = socket.create_server(('0.0.0.0', 7000)).accept()[0]
c.recv(1)
end = time.monotonic() + 5
while time.monotonic() < end: pass
while d := c.recv(99999): c.sendall(d)
";

/// Echoes every connection, in one thread.
const ECHOING: &str = "
import select, socket
s = socket.create_server(('0.0.0.0', 7000))
p = select.epoll()
p.register(s)
all = {}
while True:
    for fd, _ in p.poll():
        if fd == s.fileno():
            c = s.accept()[0]
            all[c.fileno()] = c
            p.register(c, select.EPOLLIN)
        elif d := all[fd].recv(99999):
            all[fd].sendall(d)
        else:
            all.pop(fd).close()
";

/// A connection to the program, once it listens.
fn connected() -> TcpStream {
    let mut found = None;
    wait_for(|| {
        found = TcpStream::connect(address(7000)).ok();
        found.is_some()
    });
    found.unwrap()
}

/// Bytes that the program's peers have sent and that are not acknowledged.
fn unacknowledged() -> u64 {
    let sockets = text_of("ss", &["-Htn", "dport = :7000"]);
    let queued = sockets
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2));
    queued.map(|bytes| bytes.parse::<u64>().unwrap()).sum()
}

#[test]
fn what_arrives_while_a_program_computes_is_acknowledged_meanwhile() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let _program = Accelerated::start(&[PYTHON, "-c", COMPUTING]);
        topology.at_client(|| {
            let mut near = connected();
            near.write_all(b"x").unwrap();
            wait_for(|| unacknowledged() == 0);
            let text = [7; 40_000];
            near.write_all(&text).unwrap();
            wait_for(|| unacknowledged() == 0);
            // It has not read them yet.
            near.set_nonblocking(true).unwrap();
            let early = near.read(&mut [0; 1]).unwrap_err();
            assert_eq!(early.kind(), ErrorKind::WouldBlock);
            near.set_nonblocking(false).unwrap();
            let mut echoed = [0; 40_000];
            near.read_exact(&mut echoed).unwrap();
            assert!(echoed == text);
        });
        assert_eq!(kernel_connections(7000), "");
    });
}

#[test]
fn a_program_that_is_stopped_goes_on_with_what_has_come_and_with_new_connections() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let program = Accelerated::start(&[PYTHON, "-c", ECHOING]);
        // Between listen(2) and the first poll connections are the kernel's.
        wait_for(|| {
            topology.at_client(|| drop(connected()));
            kernel_connections(7000).is_empty()
        });
        topology.at_client(|| {
            let mut kept: Vec<TcpStream> = (0..20).map(|_| connected()).collect();
            program.pid().kill(SIGSTOP).unwrap();
            let text = [7; 30_000];
            for near in &mut kept {
                near.write_all(&text).unwrap();
            }
            let late = std::thread::scope(|scope| {
                let late = scope.spawn(|| TcpStream::connect(address(7000)));
                descriptor::wait_readable(&[], Some(STOPPED)).unwrap();
                program.pid().kill(SIGCONT).unwrap();
                late.join().unwrap().unwrap()
            });
            kept.push(late);
            kept.last_mut().unwrap().write_all(&text).unwrap();
            for near in &mut kept {
                let mut echoed = [0; 30_000];
                near.read_exact(&mut echoed).unwrap();
                assert!(echoed == text);
            }
        });
        assert_eq!(kernel_connections(7000), "");
    });
}

/// How long the program is stopped: longer than any acknowledgement may take.
const STOPPED: Duration = Duration::from_millis(1200);

/// signal(7), on x86 and ARM.
const SIGCONT: i32 = 18;
