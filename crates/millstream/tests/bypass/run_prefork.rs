//! Programs whose processes serve one connection at a time each, and count on an idle one to accept.

use crate::client::Client;
use crate::namespace::has;
use crate::run::{Accelerated, address};
use crate::run_calls::PYTHON;
use crate::server::wait_for;
use crate::topology::{between_queues, kernel_connections};
use mill_sys::signal::Signal;
use std::collections::BTreeSet;
use std::io;

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

/// With more children than queues, and many more than processors.
#[test]
fn each_connection_goes_to_a_child_that_has_none() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    for (queues, children) in [(1, 4), (2, 2), (2, 12)] {
        between_queues([queues, queues], |topology| {
            let running = Accelerated::start(&[PYTHON, "-c", PREFORK, &children.to_string()]);
            topology.at_client(|| {
                let greeted = || -> io::Result<(Client, Vec<u8>)> {
                    let mut client = Client::connect(address(7000))?;
                    let greeting = client.content(8)?;
                    Ok((client, greeting))
                };
                wait_for(|| greeted().is_ok());
                wait_for(|| running.children().len() == children);
                for _ in 0..3 {
                    let held = (0..children).map(|_| greeted().unwrap());
                    let held: Vec<(Client, Vec<u8>)> = held.collect();
                    let by: BTreeSet<&Vec<u8>> = held.iter().map(|(_, child)| child).collect();
                    assert_eq!(by.len(), children);
                    for (mut client, _) in held {
                        client.send(b"done").unwrap();
                        assert!(client.content(1).is_err(), "it closes");
                    }
                }
            });
            assert_eq!(kernel_connections(7000), "");
            running.end(Signal::Terminate);
        });
    }
}
