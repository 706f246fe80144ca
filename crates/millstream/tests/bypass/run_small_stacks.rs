//! Programs whose threads have little room.

use crate::client::Client;
use crate::namespace::{has, text_of};
use crate::run::{Accelerated, address};
use crate::server::{Site, wait_for};
use crate::topology::{between, kernel_connections};
use mill_sys::signal::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;

const SOURCE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/bypass/run_small_stacks/echo.c"
);

/// What a connection says, and hears again.
const WORDS: &[u8] = &[7; 5000];

/// Varnish has threads of 80 kB. A thread that needs more than it has is ended by the kernel, with its process.
#[test]
fn threads_with_64_kb_of_machine_stack_accept_and_exchange() {
    if !has("cc") {
        println!("not tested: there is no cc");
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let program = site.path("echo").display().to_string();
        text_of("cc", &["-O1", "-pthread", "-o", &program, SOURCE]);
        let running = Accelerated::start(&[&program]);
        topology.at_client(|| {
            wait_for(|| Client::connect(address(7000)).is_ok());
            for round in 0..5 {
                let mut streams = [(); 10].map(|()| TcpStream::connect(address(7000)).unwrap());
                for stream in &mut streams {
                    stream.write_all(WORDS).unwrap();
                    // What is not read makes the client's end a reset.
                    let mut heard = vec![0; WORDS.len() - round];
                    stream.read_exact(&mut heard).unwrap();
                    assert_eq!(heard, WORDS[round..]);
                }
            }
        });
        assert_eq!(kernel_connections(7000), "");
        let ended = running.end(Signal::Terminate);
        assert_eq!(ended.signal(), Some(Signal::Terminate.number()), "{ended}");
    });
}
