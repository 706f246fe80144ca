//! Tuning of namespaces: each side's own keys, the link's settings, and restoring all of it.

use crate::stage::{Folder, has_root, on, turn};
use mill_lab::recipe::{Topology, TopologyKind, Tune};
use mill_lab::record::TunedKey;
use mill_lab_host::host::Host;
use mill_lab_host::interrupt::Interrupt;
use mill_lab_host::{topology, tune};

fn read(host: &Host, key: &str) -> String {
    let path = format!("/proc/sys/{}", key.replace('.', "/"));
    let text = on(host, || std::fs::read_to_string(&path).unwrap());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn said(host: &Host, argv: &[&str]) -> String {
    let Host::Namespace(name) = host else {
        panic!("a namespace is meant");
    };
    let output = std::process::Command::new("ip")
        .args(["netns", "exec", name])
        .args(argv)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn problem<'a>(keys: &'a [TunedKey], key: &str) -> Option<&'a str> {
    let found = keys.iter().find(|tuned| tuned.key == key);
    let found = found.unwrap_or_else(|| panic!("{key} is not in {keys:#?}"));
    found.problem.as_deref()
}

fn check(kind: TopologyKind, recipe: &str, checks: impl FnOnce(&topology::Testbed, &[TunedKey])) {
    if !has_root() {
        return;
    }
    let _turn = turn();
    let folder = Folder::new("tuning");
    let mut journal = folder.journal("tuning");
    let topology = Topology {
        kind,
        clients: Some(3),
        ..Topology::default()
    };
    let testbed = topology::raise(&topology, &mut journal, &Interrupt::default()).unwrap();
    let tune: Tune = toml::from_str(recipe).unwrap();
    let keys_before: Vec<String> = tune.sysctl.keys().cloned().collect();
    let values = |host: &Host| {
        keys_before
            .iter()
            .map(|key| read(host, key))
            .collect::<Vec<_>>()
    };
    let before = values(&testbed.server);
    let mark = journal.mark();
    let keys = tune::apply(&tune, &testbed, &mut journal);
    checks(&testbed, &keys);
    assert_eq!(journal.undo_to(mark), Vec::<String>::new());
    assert_eq!(values(&testbed.server), before);
    assert_eq!(journal.restore(), Vec::<String>::new());
}

#[test]
fn each_side_has_its_own_keys_and_the_machine_is_left_alone() {
    let machine = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_fin_timeout").unwrap();
    check(
        TopologyKind::Veth,
        "[sysctl]\n'net.ipv4.tcp_fin_timeout' = 7\n'net.ipv4.tcp_rmem' = '4096 87380 4194304'\n\
         [client_sysctl]\n'net.ipv4.tcp_fin_timeout' = 9\n'net.ipv4.tcp_tw_recycle' = 1",
        |testbed, keys| {
            assert_eq!(read(&testbed.server, "net.ipv4.tcp_fin_timeout"), "7");
            assert_eq!(read(&testbed.clients[0], "net.ipv4.tcp_fin_timeout"), "9");
            assert_eq!(problem(keys, "net.ipv4.tcp_rmem (server)"), None);
            assert_eq!(
                problem(keys, "net.ipv4.tcp_tw_recycle (client)"),
                Some("absent on this kernel")
            );
        },
    );
    assert_eq!(
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_fin_timeout").unwrap(),
        machine
    );
}

#[test]
fn clients_with_the_same_result_share_a_line() {
    check(
        TopologyKind::Macvlan,
        "[sysctl]\n'net.ipv4.tcp_fin_timeout' = 7",
        |testbed, keys| {
            assert_eq!(keys.len(), 2, "{keys:?}");
            assert_eq!(problem(keys, "net.ipv4.tcp_fin_timeout (clients)"), None);
            for client in &testbed.clients {
                assert_eq!(read(client, "net.ipv4.tcp_fin_timeout"), "7");
            }
        },
    );
}

#[test]
fn a_key_that_a_namespace_lacks_is_reported_as_the_machines() {
    // The value that it already has: the machine does not change.
    let now = std::fs::read_to_string("/proc/sys/net/core/netdev_budget").unwrap();
    let recipe = format!("[client_sysctl]\n'net.core.netdev_budget' = {now}");
    check(TopologyKind::Veth, &recipe, |_, keys| {
        // A kernel that has it in each namespace calls it the client's.
        assert_eq!(keys.len(), 1);
        assert!(
            keys[0].key.ends_with(" (machine)") || keys[0].key.ends_with(" (client)"),
            "{keys:?}"
        );
        assert_eq!(keys[0].problem, None);
    });
}

#[test]
fn settings_of_the_link_are_made_on_both_ends_and_undone() {
    let offload = |host: &Host| {
        said(host, &["ethtool", "-k", "ms0"]).contains("tcp-segmentation-offload: on")
    };
    let route = |host: &Host| said(host, &["ip", "route"]).contains("initcwnd 4");
    let steering = |host: &Host| said(host, &["cat", "/sys/class/net/ms0/queues/rx-0/rps_cpus"]);
    check(
        TopologyKind::Veth,
        "[interface]\ninitcwnd = 4\nrings = { rx = 4096 }\noffloads = { tso = false, lro = true }\n\
         files = { gro_flush_timeout = 20000, nothing = 1 }\n[affinity]\nirq = '0'\nrps = { all = '0' }",
        |testbed, keys| {
            let (server, client) = (&testbed.server, &testbed.clients[0]);
            assert!(route(server) && !route(client));
            assert!(steering(server).trim().ends_with('1'));
            assert_eq!(problem(keys, "initcwnd (ms0 server)"), None);
            assert_eq!(problem(keys, "rx-0/rps_cpus (ms0 server)"), None);
            assert_eq!(problem(keys, "gro_flush_timeout (ms0 client)"), None);
            assert_eq!(
                problem(keys, "nothing (ms0 server)"),
                Some("absent on this kernel")
            );
            assert_eq!(
                problem(keys, "irq (ms0 server)"),
                Some("absent: the interface has no interrupts of its own")
            );
            let ring = problem(keys, "ring rx (ms0 server)").unwrap();
            assert!(ring.starts_with("absent: "), "{ring}");
            match problem(keys, "offload tso (ms0 client)") {
                None => {
                    assert!(!offload(server) && !offload(client));
                    assert_eq!(
                        problem(keys, "offload lro (ms0 server)"),
                        Some("refused: fixed by the driver")
                    );
                }
                Some(problem) => assert_eq!(problem, "absent: needs ethtool"),
            }
        },
    );
}

#[test]
fn settings_of_an_existing_link_are_undone() {
    if !has_root() {
        return;
    }
    let _turn = turn();
    let folder = Folder::new("back");
    let mut journal = folder.journal("back");
    let topology = Topology {
        kind: TopologyKind::Veth,
        ..Topology::default()
    };
    let testbed = topology::raise(&topology, &mut journal, &Interrupt::default()).unwrap();
    let looks = || {
        let server = &testbed.server;
        let queue = said(server, &["cat", "/sys/class/net/ms0/queues/rx-0/rps_cpus"]);
        let features = said(server, &["ethtool", "-k", "ms0"]);
        [queue, features, said(server, &["ip", "route"])]
    };
    let before = looks();
    let mark = journal.mark();
    let text =
        "[interface]\ninitcwnd = 4\noffloads = { tso = false }\n[affinity]\nrps = { 0 = '0' }";
    let tune: Tune = toml::from_str(text).unwrap();
    tune::apply(&tune, &testbed, &mut journal);
    assert_ne!(looks(), before);
    assert_eq!(journal.undo_to(mark), Vec::<String>::new());
    assert_eq!(looks(), before);
}

#[test]
fn a_tmpfs_is_mounted_and_taken_away() {
    if !has_root() {
        return;
    }
    let folder = Folder::new("tmpfs");
    let mut journal = folder.journal("tmpfs");
    let content = folder.path().join("content");
    std::fs::create_dir(&content).unwrap();
    let mounted = || {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        mounts.contains(&format!("tmpfs {} tmpfs", content.display()))
    };
    let key = tune::tmpfs("1m", &content, &mut journal);
    // Some containers' root may not mount.
    match key.problem {
        None => assert!(mounted()),
        Some(problem) => assert!(problem.starts_with("refused: "), "{problem}"),
    }
    assert_eq!(journal.restore(), Vec::<String>::new());
    assert!(!mounted());
}
