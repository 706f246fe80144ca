//! Replaces sets of sockets by others, on ports that the kernel chose.

use super::*;
use std::net::{SocketAddr, TcpStream};

fn log() -> ProcessLog {
    let mut log = ProcessLog::to_terminal("test");
    log.leave_terminal();
    log
}

fn wanted(address: SocketAddr, reuseport: bool) -> Wanted {
    Wanted {
        address: ListenAddress::Inet(address),
        options: ListenOptions {
            reuseport,
            ..ListenOptions::default()
        },
        origin: Origin::Options,
    }
}

/// A port that was free a moment ago; the returned listener keeps it until it is dropped.
fn free_port() -> (TcpListener, SocketAddr) {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    (holder, address)
}

fn shares(listening: &Listening) -> Vec<Option<u32>> {
    listening
        .entries
        .iter()
        .map(|entry| entry.socket.share)
        .collect()
}

fn reopen(before: &Listening, wanted: &[Wanted], threads: u32) -> Listening {
    let opening = Opening {
        threads,
        test: false,
        attempts: 1,
    };
    before.reopen(wanted, opening, &log()).unwrap()
}

#[test]
fn without_reuseport_there_is_one_socket_and_with_it_one_a_thread() {
    let address = free_port().1;
    let one = reopen(&Listening::default(), &[wanted(address, false)], 3);
    assert_eq!(shares(&one), [None]);
    let shared = reopen(&one, &[wanted(address, true)], 3);
    assert_eq!(shares(&shared), [Some(0), Some(1), Some(2)]);
}

#[test]
fn fewer_threads_keep_all_sockets_and_more_add_some() {
    let address = free_port().1;
    let two = reopen(&Listening::default(), &[wanted(address, true)], 2);
    let one = reopen(&two, &[wanted(address, true)], 1);
    assert_eq!(shares(&one), [Some(0), Some(1)]);
    let three = reopen(&one, &[wanted(address, true)], 3);
    assert_eq!(shares(&three), [Some(0), Some(1), Some(2)]);
    let kept = reopen(&three, &[wanted(address, false)], 3);
    assert_eq!(shares(&kept), [Some(0), Some(1), Some(2)]);
}

#[test]
fn a_connection_in_the_queue_survives_a_change_of_tables() {
    let address = free_port().1;
    let before = reopen(&Listening::default(), &[wanted(address, false)], 1);
    let client = TcpStream::connect(address).unwrap();
    let after = reopen(&before, &[wanted(address, false)], 1);
    drop(before);
    let sockets = after.duplicate().unwrap();
    let descriptor = sockets.into_iter().next().unwrap().descriptor;
    let (accepted, _) = TcpListener::from(descriptor).accept().unwrap();
    assert_eq!(accepted.peer_addr().unwrap(), client.local_addr().unwrap());
}

#[test]
fn an_address_in_use_is_an_error_but_not_in_a_test() {
    let (_holder, address) = free_port();
    let opening = |test| Opening {
        threads: 1,
        test,
        attempts: 1,
    };
    let none = Listening::default();
    assert!(
        none.reopen(&[wanted(address, false)], opening(false), &log())
            .is_err()
    );
    assert!(
        none.reopen(&[wanted(address, false)], opening(true), &log())
            .is_ok()
    );
}

#[test]
fn a_second_server_on_a_reuseport_port_is_an_error() {
    let address = free_port().1;
    let wanted = [wanted(address, true)];
    let _first = reopen(&Listening::default(), &wanted, 2);
    let opening = Opening {
        threads: 2,
        test: false,
        attempts: 1,
    };
    assert!(
        Listening::default()
            .reopen(&wanted, opening, &log())
            .is_err()
    );
}

#[test]
fn sockets_that_share_a_port_all_get_connections() {
    let address = free_port().1;
    let listening = reopen(&Listening::default(), &[wanted(address, true)], 2);
    let clients: Vec<_> = (0..64)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let mut accepted = Vec::new();
    for socket in listening.duplicate().unwrap() {
        let listener = TcpListener::from(socket.descriptor);
        accepted.push(std::iter::from_fn(|| listener.accept().ok()).count());
    }
    assert_eq!(accepted.iter().sum::<usize>(), clients.len());
    // The kernel chooses by hash of the addresses: all 64 go to one of two sockets once in 2^63 runs.
    assert!(accepted.iter().all(|count| *count > 0), "{accepted:?}");
}

#[test]
fn an_address_of_another_machine_is_an_error_at_once() {
    // 192.0.2.0/24 is for documentation (RFC 5737).
    let elsewhere = wanted("192.0.2.1:80".parse().unwrap(), false);
    for test in [false, true] {
        let opening = Opening {
            threads: 1,
            test,
            attempts: 1,
        };
        let result = Listening::default().reopen(std::slice::from_ref(&elsewhere), opening, &log());
        assert!(result.is_err());
    }
}

#[test]
fn inherited_sockets_are_known_by_their_addresses() {
    let directory = crate::scratch::Directory::new();
    let path = directory.path("socket");
    let unix = Wanted {
        address: ListenAddress::Unix(path.as_os_str().as_bytes().into()),
        options: ListenOptions::default(),
        origin: Origin::Options,
    };
    let (alone, shared) = (free_port().1, free_port().1);
    let all = [unix, wanted(alone, false), wanted(shared, true)];
    let before = reopen(&Listening::default(), &all, 2);
    let descriptors = before
        .duplicate()
        .unwrap()
        .into_iter()
        .map(|socket| socket.descriptor);
    let inherited = Listening::inherit(descriptors.collect()).unwrap();
    assert_eq!(shares(&inherited), [None, None, Some(0), Some(1)]);
    let after = reopen(&inherited, &all, 2);
    let addresses = |listening: &Listening| -> Vec<_> {
        let entries = listening.entries.iter();
        entries
            .map(|entry| (entry.socket.address.clone(), entry.socket.share))
            .collect()
    };
    assert_eq!(addresses(&after), addresses(&before));
}

#[test]
fn the_file_of_a_unix_socket_is_open_to_all_and_removed_with_it() {
    let directory = crate::scratch::Directory::new();
    let path = directory.path("socket");
    let unix = Wanted {
        address: ListenAddress::Unix(path.as_os_str().as_bytes().into()),
        options: ListenOptions::default(),
        origin: Origin::Options,
    };
    let listening = reopen(&Listening::default(), std::slice::from_ref(&unix), 1);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666);
    let same = reopen(&listening, &[unix], 1);
    listening.remove_files(Some(&same), &log());
    assert!(path.exists());
    same.remove_files(Some(&Listening::default()), &log());
    assert!(!path.exists());
}

#[test]
fn options_that_an_open_socket_cannot_change_are_named() {
    let before = ListenOptions {
        deferred: true,
        receive_buffer_bytes: Some(1),
        ..ListenOptions::default()
    };
    let after = ListenOptions {
        backlog: 5,
        ..ListenOptions::default()
    };
    assert_eq!(fixed_options(&before, &after), ["deferred", "rcvbuf"]);
    assert!(fixed_options(&before, &before).is_empty());
}
