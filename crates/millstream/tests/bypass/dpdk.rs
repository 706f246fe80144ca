//! Ports of DPDK in the process that serves, on virtual devices that need no card.

use crate::ask;
use crate::dpdk_bridge::{children, fetch_all, with_port, with_port_of};
use crate::namespace::{get, has, in_namespace, output_of, text_of};
use crate::server::{Server, Site, wait_for};
use crate::topology::{configure, ip, serve_on};
use mill_sys::dpdk::environment;
use mill_sys::signal::Signal;
use std::fs;

const BINARY: &str = env!("CARGO_BIN_EXE_millstream");

/// The stack on the server's interface, by packet sockets, and on a TAP device that DPDK makes.
const PACKET: &str = "dpdk:vdev=net_af_packet0,iface=mill0,address=10.50.0.1/24,address=fd50::1/64";
const TAP: &str = "dpdk:vdev=net_tap0,iface=mill2,address=10.50.0.1/24,address=fd50::1/64";

const LISTEN: &str = "server { listen 80; listen [::]:80; keepalive_requests 1000000; }";

/// Whether the libraries are here.
fn has_dpdk() -> bool {
    match environment::check() {
        Ok(()) => true,
        Err(error) => {
            println!("not tested: {error}");
            false
        }
    }
}

/// Runs a test with a server on a TAP device that DPDK makes, with so many workers and these options, whose other end is the kernel's.
fn on_tap(workers: u32, options: &str, test: impl FnOnce(&Site, Server) + Send) {
    if !has_dpdk() {
        return;
    }
    in_namespace(|| {
        let site = Site::new();
        let conf = site.configure(&format!("worker_processes {workers};"), LISTEN);
        let stack = format!("{TAP}{options}");
        let server = Server::configured(&site, &conf, &["--stack", &stack]);
        join_tap();
        test(&site, server);
    });
}

/// The kernel's end of the device.
fn join_tap() {
    ip("address add 10.50.0.2/24 dev mill2");
    ip("address add fd50::2/64 dev mill2 nodad");
    ip("link set mill2 up");
}

/// A fact about the device, of each worker that has it.
fn facts(server: &Server, name: &str) -> Vec<String> {
    let status = ask::json(&[&server.pid().number().to_string(), "--rings"]);
    let rows = ask::rows(&status, "rings");
    let rows = rows.iter().filter(|row| row["name"] == name);
    rows.map(|row| row["value"].as_str().unwrap().to_owned())
        .collect()
}

fn total(server: &Server, name: &str) -> u64 {
    let values = facts(server, name);
    values
        .iter()
        .map(|value| value.parse::<u64>().unwrap())
        .sum()
}

#[test]
fn files_are_served_over_a_tap_device_of_dpdk_whose_driver_cuts_long_segments() {
    on_tap(1, "", |site, server| {
        fs::write(site.path("large.bin"), vec![b'x'; 10 << 20]).unwrap();
        fetch_all(site);
        assert_eq!(facts(&server, "driver"), ["net_tap"]);
        let offloads = "checksums on receive, checksums on transmit, long segments";
        assert_eq!(facts(&server, "offloads"), [offloads]);
        assert!(total(&server, "transmitted_whole") > 100);
        assert!(total(&server, "received_verified") > 100);
        assert_eq!(total(&server, "received_bad"), 0);
        assert_eq!(total(&server, "transmit_refused"), 0);
        assert!(total(&server, "port_received") >= total(&server, "received_verified"));
        assert!(server.end(Signal::Quit).success());
        let left = output_of("ip", &["link", "show", "mill2"]);
        assert!(!left.status.success(), "it ends with its server");
    });
}

#[test]
fn several_workers_have_a_queue_each_and_find_each_others_flows() {
    on_tap(2, "", |site, server| {
        assert_eq!(facts(&server, "queue_pairs"), ["2", "2"]);
        for _ in 0..20 {
            fetch_all(site);
        }
        let carried = facts(&server, "transmitted");
        assert!(carried.iter().all(|count| count != "0"), "{carried:?}");
        assert!(server.end(Signal::Quit).success());
    });
}

#[test]
fn a_reload_keeps_the_port_and_a_killed_worker_process_is_replaced_by_one_that_opens_it() {
    on_tap(1, "", |site, server| {
        fetch_all(site);
        let worker = server.worker();
        server.signal(Signal::Hangup);
        wait_for(|| site.error_log().contains("configuration 2 is in force"));
        fetch_all(site);
        assert_eq!(children(server.pid(), "millstream"), [worker]);
        worker.kill(Signal::Kill.number()).unwrap();
        let again = || {
            site.error_log()
                .matches("configuration 2 is in force")
                .count()
                == 2
        };
        wait_for(again);
        join_tap();
        fetch_all(site);
        assert!(server.end(Signal::Quit).success());
    });
}

#[test]
fn the_binary_is_not_changed_over_a_port_that_is_the_process_own() {
    on_tap(1, "", |site, server| {
        server.signal(Signal::User2);
        let why = "a port of DPDK is one process's; with \"bridge=on\" it can be handed over";
        wait_for(|| site.error_log().contains(why));
        fetch_all(site);
        assert!(server.end(Signal::Quit).success());
    });
}

#[test]
fn a_driver_with_fewer_queues_than_workers_carries_fewer() {
    with_port(|topology| {
        let site = Site::new();
        let conf = site.configure("worker_processes 2;", LISTEN);
        let server = Server::configured(&site, &conf, &["--stack", PACKET]);
        topology.at_client(|| fetch_all(&site));
        let said =
            "the driver net_af_packet has 1 queue in each direction, and 2 workers want one each";
        assert!(site.error_log().contains(said), "{}", site.error_log());
        assert_eq!(facts(&server, "queue_pairs"), ["1"]);
        assert!(server.end(Signal::Quit).success());
    });
}

#[test]
fn one_process_is_master_and_worker_with_a_port() {
    with_port(|topology| {
        let site = Site::new();
        let conf = site.configure("master_process off;", LISTEN);
        let server = Server::configured(&site, &conf, &["--stack", PACKET]);
        topology.at_client(|| fetch_all(&site));
        assert!(server.end(Signal::Quit).success());
    });
}

/// As many threads as queues, which the driver takes as an argument.
#[test]
fn load_is_made_over_a_port_by_several_threads() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    with_port(|topology| {
        let site = Site::new();
        let _nginx = topology.at_client(|| crate::nginx::Nginx::start(&site, LISTEN));
        for target in ["http://10.50.0.2/", "http://[fd50::2]/large.bin"] {
            let ab = ["ab", "--stack", PACKET, "-k", "-n", "20", "-c", "3", target];
            let text = text_of(BINARY, &ab);
            assert!(text.contains("Complete requests:      20"), "{text}");
            assert!(text.contains("Failed requests:        0"), "{text}");
        }
        let two = PACKET.replace("iface=mill0", "iface=mill0,qpairs=2");
        let wrk = [
            "wrk",
            "--stack",
            &two,
            "-t2",
            "-c4",
            "-d1s",
            "http://10.50.0.2/",
        ];
        let text = text_of(BINARY, &wrk);
        assert!(text.contains("requests in"), "{text}");
        assert!(!text.contains("Socket errors"), "{text}");
        let wrk = [
            "wrk",
            "--stack",
            PACKET,
            "-t2",
            "-c4",
            "-d1s",
            "http://10.50.0.2/",
        ];
        let refused = output_of(BINARY, &wrk);
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(
            text.contains("carries 1 of 2 threads: give \"-t1\""),
            "{text}"
        );
    });
}

/// DPDK's memif as the port, ours at the other end.
#[test]
fn a_memif_of_dpdk_is_a_port() {
    if !has_dpdk() {
        return;
    }
    in_namespace(|| {
        let site = Site::new();
        let socket = site.path("memif.sock").display().to_string();
        let port = format!(
            "dpdk:vdev=net_memif0,role=server,socket={socket},socket-abstract=no,zero-copy=no,address=10.50.0.1/24"
        );
        let server = serve_on(&site, &port);
        let ours = format!("memif:{socket},role=slave,address=10.50.0.2/24");
        for target in ["http://10.50.0.1/", "http://10.50.0.1/large.bin"] {
            let ab = ["ab", "--stack", &ours, "-k", "-n", "20", "-c", "3", target];
            let text = text_of(BINARY, &ab);
            assert!(text.contains("Complete requests:      20"), "{text}");
            assert!(text.contains("Failed requests:        0"), "{text}");
        }
        assert_eq!(facts(&server, "driver"), ["net_memif"]);
        assert_eq!(facts(&server, "offloads"), ["nothing"]);
        server.end(Signal::Terminate);
    });
}

/// libpcap has no limit of its own.
#[test]
fn packets_may_be_longer_than_1500_bytes() {
    with_port_of(9000, |topology| {
        let site = Site::new();
        let port = "dpdk:vdev=net_pcap0,rx_iface_in=mill0,tx_iface=mill0,address=10.50.0.1/24,address=fd50::1/64,mtu=9000";
        let server = serve_on(&site, port);
        topology.at_client(|| fetch_all(&site));
        let (frames, bytes) = (
            total(&server, "transmitted"),
            total(&server, "transmitted_bytes"),
        );
        assert!(bytes / frames > 2000, "{bytes} bytes in {frames} frames");
        assert!(server.end(Signal::Quit).success());
    });
}

#[test]
fn what_is_missing_is_named_with_what_to_do() {
    with_port(|_| {
        let site = Site::new();
        let conf = configure(&site);
        let check = |before: &[&str], stack: &str, expected: &[&str]| {
            let stack = format!("{stack},address=10.50.0.1/24");
            let own = [BINARY, "serve", "-c", &conf, "--stack", &stack];
            let words = [before, &own].concat();
            let output = output_of(words[0], &words[1..]);
            assert_eq!(output.status.code(), Some(1), "{words:?}");
            let text = String::from_utf8(output.stderr).unwrap();
            for expected in expected {
                assert!(text.contains(expected), "{text}");
            }
        };
        // An empty file in the place of the library, for this program alone.
        let without = "for file in $(ldconfig -p | sed -n 's/.* => \\(.*librte_eal.so.23\\)$/\\1/p'); do \
                       mount --bind /dev/null $file; done; exec \"$@\"";
        check(
            &["unshare", "--mount", "sh", "-c", without, "sh"],
            "dpdk:vdev=net_af_packet0,iface=mill0",
            &[
                "dpdk:net_af_packet0: DPDK's libraries of ABI 23 can't be loaded: ",
                "in the packages librte-ethdev23 and ",
                "works with \"bridge=on\"",
            ],
        );
        check(
            &[],
            "dpdk:f7:1f.7",
            &[
                "dpdk:0000:f7:1f.7: there is no such PCI device; \"dpdk-devbind.py --status-dev net\"",
            ],
        );
        check(
            &[],
            "dpdk:vdev=net_af_packet0,iface=mill7",
            &[
                "dpdk:net_af_packet0: rte_eal_hotplug_add: ",
                "net_af_packet0: ioctl failed (SIOCGIFINDEX):No such device",
            ],
        );
        check(
            &[],
            "dpdk:vdev=net_af_xdp0,iface=mill0",
            &[
                "the driver net_af_xdp can't take its program off",
                "\"bridge=on\"",
            ],
        );
        check(
            &[],
            "dpdk:vdev=net_nothing0",
            &[
                "dpdk:net_nothing0: rte_eal_hotplug_add: ",
                "DPDK's last words: ",
            ],
        );
        check(
            &[],
            "dpdk:vdev=net_tap0,iface=mill2,eal=--nonsense",
            &["dpdk:net_tap0: DPDK's environment (EAL) can't be initialised: "],
        );
        check(
            &[],
            "dpdk:vdev=net_tap0,iface=mill2,mtu=65521",
            &["the driver net_tap has no MTU of 65521: \"mtu=\" may be 46 to 1504"],
        );
    });
}

#[test]
fn a_server_at_no_port_of_the_kernels_answers_at_the_port_alone() {
    on_tap(1, ",polling=sleep-spin", |_, server| {
        assert_eq!(get("http://10.50.0.1/").as_deref(), Some("hello\n"));
        assert_eq!(crate::topology::kernel_connections(80), "");
        assert!(server.end(Signal::Quit).success());
    });
}
