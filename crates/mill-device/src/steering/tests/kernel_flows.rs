//! Connections that the kernel had before their port was served.

use super::bench::{Bench, Fate};
use super::frames::{ACK, Frame, SYN, tcp};
use crate::steering::table::Table;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

/// A connection over the loopback, on which the test runs take place; the listener's end comes second.
fn connection(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

fn segment(source: SocketAddr, target: SocketAddr, flags: u8) -> Frame {
    Frame {
        flags,
        ..tcp(&source.to_string(), &target.to_string())
    }
}

/// Whatever has asked for it.
pub(super) fn end_kernel_flows(table: &Table) {
    if let Some(request) = table.kernel_flows() {
        table.end_kernel_flows(request);
    }
    assert_eq!(table.kernel_flows(), None);
}

fn check_family(host: &str) {
    let Some(bench) = Bench::new() else {
        return;
    };
    let listener = TcpListener::bind((host, 0)).unwrap();
    let target = listener.local_addr().unwrap();
    let (mut near, mut far) = connection(&listener);
    let known = near.local_addr().unwrap();
    let unknown = SocketAddr::new(known.ip(), known.port() ^ 1);
    let text = target.to_string();
    bench.table.serve(super::of_tcp(&text), true);
    bench.table.set_addresses(&[target.ip()]);
    // FIN, RST, PSH with ACK; SYN, with and without; nothing at all.
    let of_a_connection = [ACK, ACK | 1, ACK | 4, ACK | 8, SYN | ACK, SYN, 0];
    for is_on in [false, true, false] {
        match is_on {
            true => bench.table.look_up_kernel_flows(),
            false => end_kernel_flows(&bench.table),
        }
        let kept = if is_on { Fate::Kept } else { Fate::Ours };
        for flags in of_a_connection {
            bench.check(segment(known, target, flags), kept);
            bench.check(segment(unknown, target, flags), Fate::Ours);
        }
    }
    // A segment that is truncated before the flags is malformed.
    bench.table.look_up_kernel_flows();
    let whole = segment(known, target, ACK).bytes();
    let flags = whole.len() - 20 + 13;
    assert_eq!(bench.fate(&whole[..=flags]), Fate::Kept);
    assert_eq!(bench.fate(&whole[..flags]), Fate::Malformed);
    // The kernel's connection still works.
    far.write_all(b"x").unwrap();
    near.read_exact(&mut [0]).unwrap();
    far.shutdown(Shutdown::Write).unwrap();
    assert_eq!(near.read(&mut [0]).unwrap(), 0);
    bench.check(segment(known, target, ACK), Fate::Kept);
    // Once both ends have closed it, the peer's port may be used for another connection.
    drop(near);
    assert_eq!(far.read(&mut [0]).unwrap(), 0);
    for flags in of_a_connection {
        bench.check(segment(known, target, flags), Fate::Ours);
    }
}

#[test]
fn connections_of_the_kernel_stay_with_it_over_ipv4() {
    check_family("127.0.0.1");
}

#[test]
fn connections_of_the_kernel_stay_with_it_over_ipv6() {
    check_family("::1");
}

#[test]
fn datagrams_are_not_looked_up() {
    let Some(bench) = Bench::new() else {
        return;
    };
    bench.table.serve(super::of_udp("127.0.0.1:9"), true);
    bench.table.set_addresses(&["127.0.0.1".parse().unwrap()]);
    bench.table.look_up_kernel_flows();
    bench.check(super::udp("127.0.0.1:9", "127.0.0.1:9"), Fate::Ours);
}

#[test]
fn connections_go_on_after_the_listener_is_closed() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    let (near, _far) = connection(&listener);
    let (known, unknown) = (near.local_addr().unwrap(), "127.0.0.9:9".parse().unwrap());
    let service = super::of_tcp(&target.to_string());
    bench.table.set_addresses(&[target.ip()]);
    bench.table.serve(service, true);
    bench.check(segment(unknown, target, SYN), Fate::Ours);
    for _ in 0..2 {
        bench.table.serve(service, false);
        bench.check(segment(unknown, target, ACK), Fate::Ours);
        bench.check(segment(unknown, target, SYN | ACK), Fate::Ours);
        bench.check(segment(unknown, target, SYN), Fate::Passed);
        // The kernel may have accepted connections since.
        bench.check(segment(known, target, ACK), Fate::Kept);
        let other = SocketAddr::new(target.ip(), target.port() ^ 1);
        bench.check(segment(unknown, other, ACK), Fate::Passed);
        // A new listener gets SYNs again.
        bench.table.serve(service, true);
        bench.check(segment(unknown, target, SYN), Fate::Ours);
        bench.check(segment(known, target, ACK), Fate::Ours);
    }
    bench.table.serve(service, false);
    bench.table.forget(service);
    bench.check(segment(unknown, target, ACK), Fate::Passed);
    let udp = super::of_udp(&target.to_string());
    bench.table.serve(udp, true);
    bench.table.serve(udp, false);
    bench.check(segment(unknown, target, ACK), Fate::Passed);
}
