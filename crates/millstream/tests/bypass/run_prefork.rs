//! Programs whose processes serve one connection at a time each, and count on an idle one to accept.

use crate::client::Client;
use crate::namespace::{alone, has};
use crate::run::{Accelerated, address};
use crate::run_calls::PYTHON;
use crate::server::wait_for;
use crate::topology::{Topology, between_queues};
use mill_sys::descriptor;
use mill_sys::signal::Signal;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

/// So many children, each of which says its number to a connection, and waits for a word before it closes.
const PREFORK: &str = "
import os, signal, socket, sys
s = socket.create_server(('0.0.0.0', 7000), backlog=99)
children = []
for _ in range(int(sys.argv[1])):
    children.append(os.fork())
    if children[-1] == 0:
        while True:
            c = s.accept()[0]
            try:
                c.sendall(b'%-8d' % os.getpid())
                c.recv(9)
            except OSError: pass
            c.close()
def end(*_):
    for child in children: os.kill(child, signal.SIGKILL)
    os._exit(0)
signal.signal(signal.SIGTERM, end)
while True: os.wait()
";

/// With more children than queues, and many more than processors. All of them wait for the kernel's connections as well, of which there
/// are some at the same time: one that is not quick enough goes on waiting for both.
#[test]
fn each_connection_goes_to_a_child_that_has_none() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    for (queues, children) in [(1, 4), (2, 2), (2, 12)] {
        alone(|| between_queues([queues, queues], |topology| check(topology, children)));
    }
}

fn check(topology: &Topology, children: usize) {
    let running = Accelerated::start(&[PYTHON, "-c", PREFORK, &children.to_string()]);
    topology.at_client(|| wait_for(|| Client::connect(address(7000)).is_ok()));
    // A child that has not accepted yet is not known to the others: what comes before that waits for one that is busy.
    topology.at_client(|| wait_for(|| all_accept(children)));
    for _ in 0..5 {
        for _ in 0..10 {
            finish(open("127.0.0.1:7000".parse().unwrap(), TIME_MAX));
        }
        topology.at_client(|| {
            let held: Vec<_> = (0..children)
                .map(|_| open(address(7000), TIME_MAX))
                .collect();
            let by = held.iter().map(|(_, child)| child.as_deref());
            let by: Option<BTreeSet<&[u8]>> = by.collect();
            assert_eq!(by.expect("one of them is idle").len(), children);
            held.into_iter().for_each(finish);
        });
    }
    running.end(Signal::Terminate);
}

/// Opens a connection; what the child says that accepts it, if that is within some time.
fn open(to: SocketAddr, time: Duration) -> (Client, Option<Vec<u8>>) {
    let mut client = Client::connect(to).unwrap();
    let has_come = descriptor::wait_readable(&[client.as_fd()], Some(time)).unwrap();
    let greeting = has_come[0].then(|| client.content(8).unwrap());
    (client, greeting)
}

/// Ends one, which its child hears and tells others of before this returns.
fn finish((mut client, _): (Client, Option<Vec<u8>>)) {
    client.send(b"done").unwrap();
    let hears = descriptor::wait_readable(&[client.as_fd()], Some(TIME_MAX)).unwrap();
    assert!(hears[0] && client.content(1).is_err(), "it closes");
}

/// Whether so many children accept a connection each while the others have one.
fn all_accept(children: usize) -> bool {
    let mut held = Vec::new();
    while held.len() < children {
        held.push(open(address(7000), Duration::from_millis(300)));
        if held.last().is_some_and(|(_, greeting)| greeting.is_none()) {
            break;
        }
    }
    let waiting = held.pop_if(|(_, greeting)| greeting.is_none());
    held.into_iter().for_each(finish);
    // One that had to wait is accepted by now, or before the next try.
    if let Some((mut client, _)) = waiting {
        let _ = client.send(b"done");
        let _ = descriptor::wait_readable(&[client.as_fd()], Some(Duration::from_secs(2)));
        return false;
    }
    true
}

const TIME_MAX: Duration = Duration::from_secs(20);
