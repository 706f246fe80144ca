//! Other machines over ssh. The ssh(1) of these tests is a script that enters a namespace instead: all else is as
//! with real machines.

use crate::stage::{Folder, has_root, on, turn};
use mill_lab::recipe::{Remote, Topology, TopologyKind, Tune};
use mill_lab_host::host::Host;
use mill_lab_host::interrupt::Interrupt;
use mill_lab_host::{topology, tune};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const PART: &str = "MILL_RIG_TEST_FAR";

/// The peer of the session, as sshd reports it: the server's side is the first address of the lab's network.
const SSH: &str = "#!/bin/sh\n\
    while [ \"$1\" = -o ]; do shift 2; done\n\
    target=$1; shift\n\
    SSH_CONNECTION='192.0.2.9 50122 10.213.0.1 22' exec ip netns exec \"$target\" sh -c \"$*\"\n";

/// No test of its own: the child process of the other test, with the script in place of ssh.
#[test]
fn the_part_that_a_child_plays() {
    let Some(names) = std::env::var_os(PART) else {
        return;
    };
    let names = names.into_string().unwrap();
    let (server, client) = names.split_once(' ').unwrap();
    let folder = Folder::new("far-child");
    let mut journal = folder.journal("far");
    let topology = Topology {
        kind: TopologyKind::Ssh,
        remote: Some(Remote {
            server: String::from(server),
            client: String::from(client),
            address: String::from("10.213.0.1"),
        }),
        ..Topology::default()
    };
    let testbed = topology::raise(&topology, &mut journal, &Interrupt::default()).unwrap();
    assert_eq!(
        (
            testbed.server_interface.as_str(),
            testbed.client_interface.as_str()
        ),
        ("ms0", "ms0")
    );
    let text = "[sysctl]\n'net.ipv4.tcp_fin_timeout' = 7\n'net.ipv4.tcp_tw_recycle' = 1\n[interface]\ninitcwnd = 4";
    let tune: Tune = toml::from_str(text).unwrap();
    let tuned = |journal: &mut _| {
        let keys = tune::apply(&tune, &testbed, journal);
        keys.into_iter()
            .map(|key| (key.key, key.problem.unwrap_or_default()))
            .collect::<Vec<_>>()
    };
    let expected = |window: &str| {
        [
            ("net.ipv4.tcp_fin_timeout (server)", ""),
            ("net.ipv4.tcp_tw_recycle (server)", "absent on this kernel"),
            ("net.ipv4.tcp_fin_timeout (client)", ""),
            ("net.ipv4.tcp_tw_recycle (client)", "absent on this kernel"),
            ("initcwnd (ms0 server)", window),
        ]
        .map(|(key, problem)| (String::from(key), String::from(problem)))
    };
    let guarded =
        "refused: ms0 carries the ssh session; allow it if the machine has another way in";
    assert_eq!(tuned(&mut journal), expected(guarded));
    journal.allow_ssh_interface(true);
    assert_eq!(tuned(&mut journal), expected(""));
    for name in [server, client] {
        assert_eq!(timeout_of(name), "7");
    }
    assert_eq!(journal.restore(), Vec::<String>::new());
}

fn timeout_of(name: &str) -> String {
    let text = on(&Host::Namespace(String::from(name)), || {
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_fin_timeout").unwrap()
    });
    String::from(text.trim())
}

#[test]
fn remote_machines_are_tuned_and_restored_through_ssh() {
    if !has_root() {
        return;
    }
    let _turn = turn();
    let folder = Folder::new("far");
    let mut journal = folder.journal("far");
    let topology = Topology {
        kind: TopologyKind::Veth,
        ..Topology::default()
    };
    let testbed = topology::raise(&topology, &mut journal, &Interrupt::default()).unwrap();
    let names: Vec<String> = [&testbed.server, &testbed.clients[0]]
        .into_iter()
        .filter_map(|host| match host {
            Host::Namespace(name) => Some(name.clone()),
            _ => None,
        })
        .collect();
    let script = folder.path().join("ssh");
    std::fs::write(&script, SSH).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let before = timeout_of(&names[0]);
    let path = std::env::var("PATH").unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "far::the_part_that_a_child_plays", "--nocapture"])
        .env("PATH", format!("{}:{path}", folder.path().display()))
        .env(PART, names.join(" "))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(timeout_of(&names[0]), before);
    assert_eq!(timeout_of(&names[1]), before);
    let routes = Command::new("ip")
        .args(["-n", &names[0], "route"])
        .output()
        .unwrap();
    assert!(!String::from_utf8_lossy(&routes.stdout).contains("initcwnd"));
}
