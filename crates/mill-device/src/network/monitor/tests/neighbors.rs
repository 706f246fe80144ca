//! Neighbours that are probed, appear, change and disappear.

use super::super::super::tests::{in_namespace, ip, wire};
use super::{Following, OTHER_MAC, of_neighbor};
use mill_sys::namespace;
use mill_wire::ethernet::MacAddress;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const PEER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

#[test]
fn neighbors_that_change_their_ethernet_address_or_go_are_reported() {
    in_namespace(|| {
        wire();
        let mut following = Following::of("mill0");
        for address in ["10.77.0.2", "fd00:7::2"] {
            let neighbor = |command: &str| ip(&[&format!("neighbor {command} dev mill0")]);
            neighbor(&format!("add {address} lladdr {PEER_MAC} nud reachable"));
            following.until(of_neighbor(address, Some(PEER_MAC)));
            neighbor(&format!("change {address} lladdr {PEER_MAC} nud stale"));
            assert_eq!(following.now(), [], "nothing has changed");
            neighbor(&format!("change {address} lladdr {OTHER_MAC}"));
            following.until(of_neighbor(address, Some(OTHER_MAC)));
            neighbor(&format!("delete {address}"));
            following.until(of_neighbor(address, None));
        }
        ip(&["neighbor add 10.77.0.3 lladdr 02:00:00:00:00:03 dev mill1"]);
        assert_eq!(following.now(), [], "another interface's");
        following.agrees_with_the_kernel();
    });
}

/// Runs `test` on a wire whose other end, in another namespace, answers.
fn with_peer(test: impl FnOnce() + Send) {
    in_namespace(|| {
        wire();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (over, is_over) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let peer = scope.spawn(move || {
                namespace::leave_network().unwrap();
                ready
                    .send(File::open("/proc/thread-self/ns/net").unwrap())
                    .unwrap();
                // Keeps the namespace alive until the test is over.
                let _closed = is_over.recv();
            });
            let theirs = is_ready.recv().unwrap();
            let in_theirs = |line: &str| {
                let mut command = Command::new("nsenter");
                command.args(["--net=/proc/self/fd/0", "ip"]);
                command.args(line.split(' '));
                command.stdin(Stdio::from(theirs.try_clone().unwrap()));
                assert!(command.status().unwrap().success(), "{line}");
            };
            let mut command = Command::new("ip");
            command.args(["link", "set", "mill1", "netns", "/proc/self/fd/0"]);
            command.stdin(Stdio::from(theirs.try_clone().unwrap()));
            assert!(command.status().unwrap().success());
            in_theirs("address add 10.77.0.2/24 dev mill1");
            in_theirs("address add fd00:7::2/64 dev mill1 nodad");
            in_theirs("link set mill1 up");
            test();
            drop(over);
            peer.join().unwrap();
        });
    });
}

#[test]
fn a_probed_neighbor_is_resolved_or_fails() {
    with_peer(|| {
        let mut following = Following::of("mill0");
        for address in ["10.77.0.2", "fd00:7::2"] {
            let neighbor = address.parse().unwrap();
            following.monitor.ask(neighbor).unwrap();
            following.until(of_neighbor(address, Some(PEER_MAC)));
            // A known neighbour is reported again.
            following.monitor.ask(neighbor).unwrap();
            let again = following.now();
            assert!(again.iter().any(of_neighbor(address, Some(PEER_MAC))));
        }
        following
            .monitor
            .ask("10.77.0.99".parse().unwrap())
            .unwrap();
        following.until(of_neighbor("10.77.0.99", None));
    });
}

/// The test below runs this one in a child process with an unprivileged user id; without its environment there is
/// nothing to follow.
#[test]
fn follows_what_the_environment_names() {
    if let Ok(name) = std::env::var(NAME_OF_INTERFACE) {
        let mut following = Following::of(&name);
        following
            .monitor
            .ask("10.77.0.99".parse().unwrap())
            .unwrap();
        following.until(of_neighbor("10.77.0.99", None));
        following.agrees_with_the_kernel();
    }
}

#[test]
fn a_process_without_privileges_follows_and_probes_as_well() {
    with_peer(|| {
        let name = format!("{}::follows_what_the_environment_names", module_path!());
        let (_, name) = name.split_once("::").unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", name])
            .env(NAME_OF_INTERFACE, "mill0");
        match command.uid(UNPRIVILEGED).gid(UNPRIVILEGED).output() {
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout);
                assert!(output.status.success(), "{text}");
                assert!(text.contains("1 passed"), "{text}");
            }
            Err(error) => println!("not tested, as user {UNPRIVILEGED} can't start this: {error}"),
        }
    });
}

const NAME_OF_INTERFACE: &str = "MILL_TEST_INTERFACE";

/// A user id without privileges.
const UNPRIVILEGED: u32 = 65534;
