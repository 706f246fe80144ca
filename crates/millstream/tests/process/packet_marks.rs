//! Clients without limits by netfilter's mark of their connections.

use crate::site::{Site, free_address};
use mill_sys::socket::{self, ConnectorOptions};
use mill_sys::{interface, listener::Endpoint, namespace};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Runs it in a network namespace that vanishes with its thread, where the switch has this value.
fn in_namespace(accepts_marks: &str, test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if let Err(error) = namespace::leave_network() {
                println!("not tested, since there can be no network namespace: {error}");
                return;
            }
            interface::set_up("lo").unwrap();
            let switch = "/proc/sys/net/ipv4/tcp_fwmark_accept";
            std::fs::write(switch, accepts_marks).unwrap();
            test();
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// The status that a client gets whose packets have this mark; `None` if its connection is reset.
fn status(address: SocketAddr, mark: Option<u32>) -> Option<u16> {
    let options = ConnectorOptions {
        mark,
        ..ConnectorOptions::default()
    };
    let stream = socket::connect(Endpoint::Ip(address), &options).unwrap();
    let mut stream = TcpStream::from(stream);
    stream.set_nonblocking(false).unwrap();
    let mut ask = || -> io::Result<String> {
        stream.write_all(b"GET /index.html HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    let text = ask().ok()?;
    text.split(' ').nth(1)?.parse().ok()
}

const LIMITS: &str = "frang { request_rate 2 60s; ip_block 1h; whitelist_mark 7; }";

#[test]
fn a_marked_connection_has_no_limits() {
    in_namespace("1", || {
        let (site, address) = (Site::new(), free_address());
        site.configure("", &format!("{LIMITS} server {{ listen {address}; }}"));
        site.start();
        let marked = [Some(200); 5];
        assert_eq!([7; 5].map(|mark| status(address, Some(mark))), marked);
        let others = [None, Some(8), None, None].map(|mark| status(address, mark));
        assert_eq!(others, [Some(200), Some(200), None, None]);
        // Their address is blocked now, and marked connections from it are not.
        assert_eq!([7; 5].map(|mark| status(address, Some(mark))), marked);
        let log = site.error_log();
        assert!(!log.contains("whitelist_mark"), "{log}");
    });
}

#[test]
fn marks_that_the_kernel_does_not_give_are_told_at_the_start() {
    in_namespace("0", || {
        let (site, address) = (Site::new(), free_address());
        site.configure("", &format!("{LIMITS} server {{ listen {address}; }}"));
        let output = site.nginx(&["-t"]);
        let said = String::from_utf8_lossy(&output.stderr);
        let line = "\"whitelist_mark\" finds no marks: the kernel gives them to no accepted connection in ";
        assert!(output.status.success() && said.contains(line), "{said}");
        assert!(said.contains("tcp_fwmark_accept=1"), "{said}");
        site.start();
        let statuses = [7; 4].map(|mark| status(address, Some(mark)));
        assert_eq!(statuses, [Some(200), Some(200), None, None]);
    });
}
