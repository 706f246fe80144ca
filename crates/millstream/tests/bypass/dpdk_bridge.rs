//! Ports of DPDK behind a bridge, on virtual devices that need no card.

use crate::namespace::{get, has, in_namespace, output_of, text_of};
use crate::nginx::Nginx;
use crate::run::Accelerated;
use crate::server::{Server, Site, wait_for};
use crate::topology::{HOSTS, Topology, between, configure, ip, serve_on};
use crate::upgrade::is_running;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::fs;

const BINARY: &str = env!("CARGO_BIN_EXE_millstream");

/// The stack on the server's interface, by packet sockets and by AF_XDP, and on a TAP device that DPDK makes.
const PACKET: &str =
    "dpdk:vdev=net_af_packet0,iface=mill0,bridge=on,address=10.50.0.1/24,address=fd50::1/64";
const XDP: &str =
    "dpdk:vdev=net_af_xdp0,iface=mill0,bridge=on,address=10.50.0.1/24,address=fd50::1/64";
const TAP: &str =
    "dpdk:vdev=net_tap0,iface=mill2,bridge=on,address=10.50.0.1/24,address=fd50::1/64";

/// Runs a test in the server's namespace, whose interface has no addresses of the kernel's. What the client's kernel sends
/// is complete, as on a wire: these devices do not say what is missing in a frame.
pub(crate) fn with_port(test: impl FnOnce(&Topology) + Send) {
    with_port_of(1500, test);
}

/// The same with this MTU.
pub(crate) fn with_port_of(mtu: u16, test: impl FnOnce(&Topology) + Send) {
    if !has("dpdk-testpmd") || !has("ethtool") {
        println!("not tested: there is no dpdk-testpmd (Debian: dpdk-dev) or no ethtool");
        return;
    }
    between(mtu, |topology| {
        ip("address flush dev mill0");
        topology.at_client(|| {
            text_of(
                "ethtool",
                &["-K", "mill1", "tx", "off", "tso", "off", "gso", "off"],
            )
        });
        test(topology);
    });
}

/// Fetches a small and a large file by both families.
pub(crate) fn fetch_all(site: &Site) {
    let large = fs::read(site.path("large.bin")).unwrap();
    let fetched = site.path("fetched");
    for host in HOSTS {
        wait_for(|| get(&format!("http://{host}/")).is_some());
        let url = format!("http://{host}/large.bin");
        text_of("curl", &["-sSfo", fetched.to_str().unwrap(), &url]);
        assert!(fs::read(&fetched).unwrap() == large, "{url}");
    }
}

/// The children of a process that have this name.
pub(crate) fn children(parent: Pid, name: &str) -> Vec<Pid> {
    let parent = parent.number().to_string();
    let found = output_of("pgrep", &["-P", &parent, "-x", name]);
    let text = String::from_utf8(found.stdout).unwrap();
    let numbers = text.lines().filter_map(|line| line.parse().ok());
    numbers.filter_map(Pid::new).collect()
}

fn bridge_of(server: &Server) -> Pid {
    let found = children(server.pid(), "dpdk-testpmd");
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

#[test]
fn files_are_served_behind_a_bridge_over_packet_sockets() {
    with_port(|topology| {
        let site = Site::new();
        let server = serve_on(&site, PACKET);
        topology.at_client(|| fetch_all(&site));
        let bridge = bridge_of(&server);
        assert!(server.end(Signal::Quit).success());
        assert!(!is_running(bridge), "it ends with its server");
    });
}

#[test]
fn files_are_served_behind_a_bridge_over_af_xdp_sockets() {
    with_port(|topology| {
        let site = Site::new();
        let server = serve_on(&site, XDP);
        topology.at_client(|| fetch_all(&site));
        assert!(server.end(Signal::Quit).success());
        let link = text_of("ip", &["link", "show", "mill0"]);
        assert!(!link.contains("xdp"), "the interface is as before: {link}");
    });
}

#[test]
fn files_are_served_behind_a_bridge_over_a_tap_device_that_dpdk_makes() {
    if !has("dpdk-testpmd") {
        println!("not tested: there is no dpdk-testpmd (Debian: dpdk-dev)");
        return;
    }
    in_namespace(|| {
        let site = Site::new();
        let server = serve_on(&site, TAP);
        ip("address add 10.50.0.2/24 dev mill2");
        ip("address add fd50::2/64 dev mill2 nodad");
        ip("link set mill2 up");
        fetch_all(&site);
        assert!(server.end(Signal::Quit).success());
        let left = output_of("ip", &["link", "show", "mill2"]);
        assert!(!left.status.success(), "it ends with its server");
    });
}

#[test]
fn load_is_made_over_a_port_behind_a_bridge() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    with_port(|topology| {
        let site = Site::new();
        let servers = "server { listen 80; listen [::]:80; keepalive_requests 100000; }";
        let _nginx = topology.at_client(|| Nginx::start(&site, servers));
        for target in ["http://10.50.0.2/", "http://[fd50::2]/large.bin"] {
            let ab = ["ab", "--stack", PACKET, "-k", "-n", "20", "-c", "3", target];
            let text = text_of(BINARY, &ab);
            assert!(text.contains("Complete requests:      20"), "{text}");
            assert!(text.contains("Failed requests:        0"), "{text}");
        }
    });
}

#[test]
fn nginx_is_run_on_a_port() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    with_port(|topology| {
        let site = Site::new();
        let servers = "server { listen 10.50.0.1:80; listen [fd50::1]:80; }";
        let conf = site.configure("worker_processes 1;", servers);
        let nginx = Accelerated::on(PACKET, &["nginx", "-c", &conf, "-e", "stderr"]);
        topology.at_client(|| fetch_all(&site));
        let bridges = children(nginx.pid(), "dpdk-testpmd");
        nginx.end_alone(Signal::Quit);
        wait_for(|| !bridges.iter().any(|bridge| is_running(*bridge)));
    });
}

#[test]
fn a_worker_process_that_is_killed_is_replaced_behind_the_same_bridge() {
    with_port(|topology| {
        let site = Site::new();
        let server = serve_on(&site, PACKET);
        topology.at_client(|| fetch_all(&site));
        let bridge = bridge_of(&server);
        let workers = children(server.pid(), "millstream");
        assert_eq!(workers.len(), 1, "{workers:?}");
        workers[0].kill(Signal::Kill.number()).unwrap();
        let in_force = "configuration 1 is in force";
        wait_for(|| site.error_log().matches(in_force).count() == 2);
        topology.at_client(|| fetch_all(&site));
        assert_eq!(bridge_of(&server), bridge);
    });
}

#[test]
fn the_binary_is_changed_and_the_bridge_goes_to_the_new_one() {
    with_port(|topology| {
        let site = Site::new();
        let server = serve_on(&site, PACKET);
        let bridge = bridge_of(&server);
        topology.at_client(|| fetch_all(&site));
        let master = || fs::read_to_string(site.path("pid")).unwrap_or_default();
        let old = master();
        server.signal(Signal::User2);
        wait_for(|| !master().is_empty() && master() != old);
        wait_for(|| site.error_log().matches("is in force").count() == 2);
        // The new process goes on with the connection to the bridge, while the old one is there and when that is gone.
        topology.at_client(|| fetch_all(&site));
        server.signal(Signal::Quit);
        wait_for(|| !is_running(server.pid()));
        topology.at_client(|| fetch_all(&site));
        assert!(is_running(bridge), "another process has it");
        let new = Pid::new(master().trim().parse().unwrap()).unwrap();
        new.kill(Signal::Quit.number()).unwrap();
        wait_for(|| !is_running(new) && !is_running(bridge));
    });
}

#[test]
fn a_bridge_that_is_killed_is_reported_with_its_last_words() {
    with_port(|_| {
        let site = Site::new();
        let server = serve_on(&site, PACKET);
        bridge_of(&server).kill(Signal::Kill.number()).unwrap();
        let expected = "the bridge to the port, \"dpdk-testpmd\", has ended: no frame passes until a restart; its last words: ";
        wait_for(|| site.error_log().contains(expected));
        assert!(server.end(Signal::Quit).success());
    });
}

#[test]
fn a_bridge_ends_when_all_processes_of_its_server_are_killed() {
    with_port(|_| {
        let site = Site::new();
        let mut server = serve_on(&site, PACKET);
        let bridge = bridge_of(&server);
        server.kill_all();
        wait_for(|| !is_running(bridge));
    });
}

#[test]
fn what_a_bridge_lacks_is_named_with_what_to_do() {
    with_port(|_| {
        let site = Site::new();
        let conf = configure(&site);
        let check = |before: &[&str], stack: &str, expected: &str| {
            let stack = format!("{stack},bridge=on,address=10.50.0.1/24");
            let own = [BINARY, "serve", "-c", &conf, "--stack", &stack];
            let words = [before, &own].concat();
            let output = output_of(words[0], &words[1..]);
            assert_eq!(output.status.code(), Some(1), "{words:?}");
            let text = String::from_utf8(output.stderr).unwrap();
            assert!(text.contains(expected), "{text}");
        };
        check(
            &["env", "PATH=/nowhere"],
            "dpdk:vdev=net_af_packet0,iface=mill0",
            "dpdk:net_af_packet0: \"dpdk-testpmd\" is not installed, DPDK's program",
        );
        check(
            &[],
            "dpdk:ffff:1f.7",
            "is no port of DPDK: it is written as a PCI address",
        );
        check(
            &[],
            "dpdk:f7:1f.7",
            "dpdk:0000:f7:1f.7: there is no such PCI device; \"dpdk-devbind.py --status-dev net\"",
        );
        check(
            &[],
            "dpdk:vdev=net_af_packet0,iface=mill7",
            "dpdk:net_af_packet0: the bridge has ended: \"rte_pmd_init_internals(): net_af_packet0: ioctl failed (SIOCGIFINDEX):No such device",
        );
    });
}
