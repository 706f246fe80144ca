//! Links: clients reach the server, at the configured rate, and nothing is left.

use crate::stage::{Folder, has_root, namespaces, on, turn};
use mill_lab::recipe::{Topology, TopologyKind};
use mill_lab_host::host::Host;
use mill_lab_host::interrupt::Interrupt;
use mill_lab_host::journal::Journal;
use mill_lab_host::topology::{self, Testbed};
use mill_sys::clock;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A connection from each client that the server answers with the client's number; how many got theirs.
fn reached(testbed: &Testbed) -> usize {
    let listener = on(&testbed.server, || {
        TcpListener::bind((testbed.address.as_str(), 0)).unwrap()
    });
    let port = listener.local_addr().unwrap().port();
    let count = testbed.clients.len();
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            for _ in 0..count {
                let (mut stream, _) = listener.accept().unwrap();
                let mut byte = [0_u8; 1];
                stream.read_exact(&mut byte).unwrap();
                stream.write_all(&byte).unwrap();
            }
        });
        let answered = testbed
            .clients
            .iter()
            .enumerate()
            .filter(|(index, client)| {
                on(client, || {
                    let mut stream = TcpStream::connect((testbed.address.as_str(), port)).unwrap();
                    let byte = [u8::try_from(*index).unwrap()];
                    stream.write_all(&byte).unwrap();
                    let mut answer = [0_u8; 1];
                    stream.read_exact(&mut answer).unwrap();
                    answer == byte
                })
            });
        let answered = answered.count();
        server.join().unwrap();
        answered
    })
}

/// Throughput from the server to the first client, in 10⁶ bits/s, after a first part that uses up the bucket's burst.
fn bulk_mbit(testbed: &Testbed) -> f64 {
    const PART: usize = 64 * 1024;
    const WARM_UP_PARTS: usize = 160;
    const PARTS: usize = 640;
    let listener = on(&testbed.server, || {
        TcpListener::bind((testbed.address.as_str(), 0)).unwrap()
    });
    let port = listener.local_addr().unwrap().port();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let part = vec![0_u8; PART];
            for _ in 0..WARM_UP_PARTS + PARTS {
                stream.write_all(&part).unwrap();
            }
        });
        on(&testbed.clients[0], || {
            let mut stream = TcpStream::connect((testbed.address.as_str(), port)).unwrap();
            let mut part = vec![0_u8; PART];
            for _ in 0..WARM_UP_PARTS {
                stream.read_exact(&mut part).unwrap();
            }
            let began = clock::monotonic();
            for _ in 0..PARTS {
                stream.read_exact(&mut part).unwrap();
            }
            let took = clock::monotonic()
                .saturating_sub(began)
                .max(Duration::from_nanos(1));
            let bits = f64::from(u32::try_from(PARTS * PART).unwrap()) * 8.0;
            bits / took.as_secs_f64() / 1e6
        })
    })
}

fn raise(topology: &Topology, journal: &mut Journal) -> Testbed {
    topology::raise(topology, journal, &Interrupt::default()).unwrap()
}

#[test]
fn a_veth_pair_carries_tcp_and_vanishes() {
    if !has_root() {
        return;
    }
    let _turn = turn();
    let folder = Folder::new("veth");
    let mut journal = folder.journal("veth");
    let topology = Topology {
        kind: TopologyKind::Veth,
        queues: Some(2),
        mtu: Some(9000),
        ..Topology::default()
    };
    let testbed = raise(&topology, &mut journal);
    assert_eq!(reached(&testbed), 1);
    let said = std::process::Command::new("ip")
        .args(["-n", namespaces()[0].as_str(), "-d", "link", "show", "ms0"])
        .output()
        .unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(
        said.contains("mtu 9000") && said.contains("numrxqueues 2"),
        "{said}"
    );
    assert_eq!(journal.restore(), Vec::<String>::new());
    assert_eq!(namespaces(), Vec::<String>::new());
}

#[test]
fn a_link_of_one_gigabit_lets_one_gigabit_through() {
    if !has_root() {
        return;
    }
    let _turn = turn();
    let folder = Folder::new("rate");
    let mut journal = folder.journal("rate");
    let topology = Topology {
        kind: TopologyKind::Veth,
        rate_gbit: Some(1.0),
        ..Topology::default()
    };
    let testbed = raise(&topology, &mut journal);
    // 1448 of 1514 bytes are content: 956. The floor is low, because other tests may want the CPUs meanwhile.
    let mbit = bulk_mbit(&testbed);
    assert!((300.0..970.0).contains(&mbit), "{mbit} Mbit/s");
    assert_eq!(testbed.link_mbit, Some(1000.0));
}

#[test]
fn thirty_two_clients_on_one_link_reach_the_server() {
    if !has_root() {
        return;
    }
    let _turn = turn();
    let folder = Folder::new("macvlan");
    let mut journal = folder.journal("macvlan");
    let topology = Topology {
        kind: TopologyKind::Macvlan,
        clients: Some(32),
        rate_gbit: Some(10.0),
        ..Topology::default()
    };
    let testbed = raise(&topology, &mut journal);
    assert_eq!(reached(&testbed), 32);
    assert_eq!(journal.restore(), Vec::<String>::new());
    assert_eq!(namespaces(), Vec::<String>::new());
}

#[test]
fn clients_on_a_given_interface_reach_a_server_beside_them() {
    if !has_root() {
        return;
    }
    let _turn = turn();
    let folder = Folder::new("given");
    let mut journal = folder.journal("given");
    // In place of a card of the machine: one end of a pair, without an address.
    let card = format!("ms{}d", std::process::id());
    let peer = format!("ms{}e", std::process::id());
    let add = [
        "ip", "link", "add", &card, "type", "veth", "peer", "name", &peer,
    ];
    let del = ["ip", "link", "del", &card];
    journal.run(&Host::Local, &add, &del).unwrap();
    for end in [&card, &peer] {
        let up = ["ip", "link", "set", end, "up"];
        journal.run(&Host::Local, &up, &[]).unwrap();
    }
    let topology = Topology {
        kind: TopologyKind::Macvlan,
        clients: Some(2),
        interface: Some(card.clone()),
        ..Topology::default()
    };
    assert_eq!(reached(&raise(&topology, &mut journal)), 2);
    let limited = Topology {
        rate_gbit: Some(1.0),
        ..topology
    };
    let refused = topology::raise(&limited, &mut journal, &Interrupt::default()).unwrap_err();
    assert!(
        refused.to_string().contains("leave out rate_gbit"),
        "{refused}"
    );
    assert_eq!(journal.restore(), Vec::<String>::new());
    assert_eq!(namespaces(), Vec::<String>::new());
    assert!(!std::path::Path::new("/sys/class/net").join(card).exists());
}

#[test]
fn two_topologies_of_one_lab_exist_side_by_side() {
    if !has_root() {
        return;
    }
    let _turn = turn();
    let folder = Folder::new("two");
    let mut journal = folder.journal("two");
    let topology = Topology {
        kind: TopologyKind::Veth,
        ..Topology::default()
    };
    let first = raise(&topology, &mut journal);
    let mark = journal.mark();
    let second = raise(&topology, &mut journal);
    assert_eq!((reached(&first), reached(&second)), (1, 1));
    assert_eq!(journal.undo_to(mark), Vec::<String>::new());
    assert_eq!(reached(&first), 1);
    assert_eq!(namespaces().len(), 2);
}
