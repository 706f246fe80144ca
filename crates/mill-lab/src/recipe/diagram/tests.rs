//! Drawings as users see them.

use super::*;
use crate::recipe::Remote;

fn check(topology: &Topology, expected: &str) {
    let drawn = diagram(topology);
    assert_eq!(drawn.trim_end(), expected.trim_matches('\n'), "\n{drawn}");
    assert!(drawn.lines().all(|line| line.chars().count() <= 78));
}

#[test]
fn loopback_is_one_machine_twice() {
    check(
        &Topology::default(),
        r"
┌─ this machine ────────┐                          ┌─ this machine ──────────┐
│ clients               │      loopback (lo)       │ the server under test   │
│ CPUs: the lower half  ├──────────────────────────┤ CPUs: the upper half    │
│                       │                          │                         │
└───────────────────────┘                          └─────────────────────────┘
",
    );
}

#[test]
fn a_veth_pair_says_its_queues_rate_and_mtu() {
    check(
        &Topology {
            kind: TopologyKind::Veth,
            queues: Some(4),
            rate_gbit: Some(2.5),
            mtu: Some(1500),
            cpus: Cpus {
                server: None,
                client: Some(String::from("0-1")),
                server_count: Some(2),
            },
            ..Topology::default()
        },
        r"
┌─ namespace net0 ──────┐                          ┌─ server's namespace ────┐
│ clients               │        veth pair         │ the server under test   │
│ CPUs 0-1              ├──────────────────────────┤ 2 CPUs, from the last   │
│                       │   2.5 Gbit/s each way    │                         │
└───────────────────────┘    4 queues, MTU 1500    └─────────────────────────┘
",
    );
}

#[test]
fn many_clients_meet_on_one_link() {
    check(
        &Topology {
            kind: TopologyKind::Macvlan,
            clients: Some(32),
            rate_gbit: Some(25.0),
            cpus: Cpus {
                server_count: Some(1),
                ..Cpus::default()
            },
            ..Topology::default()
        },
        r"
┌─ namespace net0 ──────┐
│ CPUs: the others      ├──┐                       ┌─ server's namespace ────┐
└───────────────────────┘  │   macvlan over veth   │ the server under test   │
            ⋮              ├───────────────────────┤ 1 CPU, the last         │
┌─ namespace net31 ─────┐  │  25 Gbit/s each way   │                         │
│ CPUs: the others      ├──┘                       └─────────────────────────┘
└───────────────────────┘
",
    );
}

#[test]
fn far_hosts_have_their_names_however_long() {
    check(
        &Topology {
            kind: TopologyKind::Ssh,
            remote: Some(Remote {
                server: String::from("root@a-server-with-a-long-name.example"),
                client: String::from("ada@client"),
                address: String::from("192.0.2.7"),
            }),
            ..Topology::default()
        },
        r"
┌─ ada@client ──────────┐                          ┌─ root@a-server-with-a… ─┐
│ clients               │    network, 192.0.2.7    │ the server under test   │
│ CPUs: the lower half  ├──────────────────────────┤ CPUs: the upper half    │
│                       │                          │                         │
└───────────────────────┘                          └─────────────────────────┘
",
    );
}

#[test]
fn clients_of_a_virtual_machine_are_in_another_one_or_here() {
    for (guests, client) in [(None, "client VM"), (Some(1), "this machine")] {
        let drawn = diagram(&Topology {
            kind: TopologyKind::Vm,
            queues: Some(1),
            guests,
            ..Topology::default()
        });
        for words in [client, "server VM", "virtio-net, bridge", "1 queue"] {
            assert!(drawn.contains(words), "{words}: {drawn}");
        }
    }
}
