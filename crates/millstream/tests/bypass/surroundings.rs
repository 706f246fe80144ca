//! An interface that changes while it is in use: the stack applies the changes that the kernel reports.

use crate::client::Client;
use crate::namespace::{get, text_of};
use crate::run::BINARY;
use crate::server::{Server, Site, wait_for, wait_until_at_rest};
use crate::topology::{
    FAR, HOSTS, INTERFACE, Topology, between, has_program, ip, is_steered, kernel_connections,
    move_to, serve,
};
use mill_sys::signal::Signal;
use std::net::SocketAddr;

/// A server of two processes, and a connection that is kept.
fn with_connection(mtu: u16, test: impl FnOnce(&Topology, &Site, &Server, &mut Client) + Send) {
    between(mtu, |topology| {
        let site = Site::new();
        let server = serve(&site);
        let address: SocketAddr = format!("{}:80", HOSTS[0]).parse().unwrap();
        let mut client = topology.at_client(|| Client::connect(address).unwrap());
        assert_eq!(client.get("/").unwrap().content, b"hello\n");
        test(topology, &site, &server, &mut client);
    });
}

fn is_served_at(topology: &Topology, host: &str) -> bool {
    let url = format!("http://{host}/");
    topology.at_client(|| {
        crate::namespace::output_of("curl", &["-sSf", "-m2", &url])
            .status
            .success()
    })
}

#[test]
fn connections_outlive_an_interface_that_is_down_for_a_moment() {
    with_connection(1500, |topology, site, _, client| {
        for (count, (end, why)) in [
            (
                "near",
                "mill0: the interface is down: connections wait until it is up again",
            ),
            (
                "far",
                "mill0: the interface has no carrier: connections wait until the link is up",
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let set = |state: &str| match end {
                "near" => ip(&format!("link set {INTERFACE} {state}")),
                _ => topology.at_client(|| ip(&format!("link set {FAR} {state}"))),
            };
            set("down");
            // Lost, or not even sent.
            let _ = client.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n");
            wait_for(|| site.error_log().contains(why));
            set("up");
            assert_eq!(client.answer().unwrap().content, b"hello\n", "{end}");
            assert_eq!(client.get("/").unwrap().content, b"hello\n", "{end}");
            wait_for(|| is_served_at(topology, HOSTS[0]));
            assert!(is_steered());
            let again = "mill0: the interface is up again: connections go on";
            assert_eq!(site.error_log().matches(again).count(), count + 1, "{end}");
        }
    });
}

#[test]
fn addresses_that_come_are_served_and_those_that_go_are_not() {
    with_connection(1500, |topology, _, _, client| {
        for (address, host) in [("10.50.0.7/24", "10.50.0.7"), ("fd50::7/64", "[fd50::7]")] {
            let nodad = if host.starts_with('[') { "nodad" } else { "" };
            assert!(!is_served_at(topology, host));
            ip(&format!("address add {address} dev {INTERFACE} {nodad}"));
            // Until the stack has heard of it, it is the kernel that answers there.
            wait_for(|| is_served_at(topology, host) && kernel_connections(80).is_empty());
            ip(&format!("address delete {address} dev {INTERFACE}"));
            wait_for(|| !is_served_at(topology, host));
        }
        assert_eq!(client.get("/").unwrap().content, b"hello\n");
    });
}

#[test]
fn a_connection_outlives_that_its_address_is_away_for_a_moment() {
    with_connection(1500, |topology, _, _, client| {
        ip(&format!("address delete 10.50.0.1/24 dev {INTERFACE}"));
        wait_for(|| !is_served_at(topology, HOSTS[0]));
        assert!(is_served_at(topology, HOSTS[1]));
        client
            .send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            .unwrap();
        ip(&format!("address add 10.50.0.1/24 dev {INTERFACE}"));
        assert_eq!(client.answer().unwrap().content, b"hello\n");
        assert_eq!(client.get("/").unwrap().content, b"hello\n");
        assert!(is_served_at(topology, HOSTS[0]));
    });
}

#[test]
fn an_interface_that_gets_another_name_is_the_same_one() {
    with_connection(1500, |topology, site, server, client| {
        for line in [
            format!("link set {INTERFACE} down"),
            format!("link set {INTERFACE} name mill9"),
            String::from("link set mill9 up"),
        ] {
            ip(&line);
        }
        assert_eq!(client.get("/").unwrap().content, b"hello\n");
        assert!(is_served_at(topology, HOSTS[0]));
        assert!(has_program("mill9"));
        // The next process finds it by its number.
        server.worker().kill(Signal::Kill.number()).unwrap();
        let in_force = "configuration 1 is in force";
        wait_for(|| site.error_log().matches(in_force).count() == 2);
        assert!(is_served_at(topology, HOSTS[0]));
        assert_eq!(kernel_connections(80), "");
    });
}

#[test]
fn a_namespace_that_is_deleted_lives_on_with_the_process() {
    with_connection(1500, |topology, _, server, client| {
        let (name, process) = (format!("mill-{}", std::process::id()), server.pid());
        ip(&format!("netns attach {name} {}", process.number()));
        ip(&format!("netns delete {name}"));
        assert_eq!(client.get("/").unwrap().content, b"hello\n");
        assert!(is_served_at(topology, HOSTS[0]) && is_steered());
    });
}

#[test]
fn segments_keep_to_an_mtu_that_gets_lower() {
    with_connection(9000, |topology, site, _, client| {
        let expected = std::fs::read(site.path("large.bin")).unwrap();
        assert!(client.get("/large.bin").unwrap().content == expected);
        ip(&format!("link set {INTERFACE} mtu 1400"));
        topology.at_client(|| ip(&format!("link set {FAR} mtu 1400")));
        assert!(
            client.get("/large.bin").unwrap().content == expected,
            "kept"
        );
        for host in HOSTS {
            let fetched = site.path("fetched");
            let to = fetched.to_str().unwrap();
            let url = format!("http://{host}/large.bin");
            topology.at_client(|| text_of("curl", &["-sSfo", to, &url]));
            assert!(std::fs::read(&fetched).unwrap() == expected, "{host}");
        }
    });
}

#[test]
fn packets_too_large_for_packet_memory_are_complained_about() {
    with_connection(1500, |topology, site, server, client| {
        topology.at_client(|| ip(&format!("link set {FAR} mtu 9000")));
        ip(&format!("link set {INTERFACE} mtu 9000"));
        let complaint = "packets of 9000 bytes do not fit into packet memory";
        wait_for(|| {
            assert_eq!(client.get("/").unwrap().content, b"hello\n");
            site.error_log().contains(complaint)
        });
        assert!(is_served_at(topology, HOSTS[0]));
        // The next process has the same memory, and its frames fit into it.
        server.worker().kill(Signal::Kill.number()).unwrap();
        wait_for(|| site.error_log().matches(complaint).count() == 2);
        let expected = std::fs::read(site.path("large.bin")).unwrap();
        for host in HOSTS {
            let fetched = site.path("fetched");
            let url = format!("http://{host}/large.bin");
            let to = fetched.to_str().unwrap();
            topology.at_client(|| text_of("curl", &["-sSfo", to, &url]));
            assert!(std::fs::read(&fetched).unwrap() == expected, "{host}");
        }
        assert_eq!(kernel_connections(80), "");
    });
}

#[test]
fn replies_follow_a_peer_whose_ethernet_address_changes() {
    with_connection(1500, |topology, _, _, client| {
        topology.at_client(|| {
            ip(&format!("link set {FAR} address 02:00:00:00:47:11"));
            // As after a takeover of an address: gratuitous ARP updates all neighbours.
            ip("neighbor flush all");
        });
        assert_eq!(client.get("/").unwrap().content, b"hello\n");
        assert!(is_served_at(topology, HOSTS[0]) && is_served_at(topology, HOSTS[1]));
    });
}

#[test]
fn an_interface_whose_own_ethernet_address_changes_serves_on() {
    with_connection(1500, |topology, _, _, client| {
        ip(&format!("link set {INTERFACE} address 02:00:00:00:08:15"));
        // A peer with the old address in its cache notices only after a while.
        topology.at_client(|| ip("neighbor flush all"));
        assert_eq!(client.get("/").unwrap().content, b"hello\n");
        assert!(is_served_at(topology, HOSTS[0]) && is_served_at(topology, HOSTS[1]));
    });
}

#[test]
fn a_deleted_interface_is_reported_once_and_kernel_sockets_go_on() {
    with_connection(1500, |topology, site, server, _| {
        let worker = server.worker();
        // From the other end, as when the other namespace is deleted.
        topology.at_client(|| ip(&format!("link delete {FAR}")));
        let missed = "the device \"mill0\" was deleted";
        wait_for(|| site.error_log().contains(missed));
        assert_eq!(get("http://127.0.0.1/").as_deref(), Some("hello\n"));
        wait_until_at_rest(worker);
        assert_eq!(site.error_log().matches(missed).count(), 1);
        assert_eq!(server.worker(), worker);
        // A new interface of the same name is another one, also for the next process.
        for has_taken_over in [false, true] {
            if has_taken_over {
                server.worker().kill(Signal::Kill.number()).unwrap();
                wait_for(|| site.error_log().matches(missed).count() == 2);
            } else {
                topology.join(1500);
            }
            assert!(!is_steered());
            wait_for(|| is_served_at(topology, HOSTS[0]));
        }
        // On kernel sockets, whose ports are added and removed as before.
        server.signal(Signal::Hangup);
        wait_for(|| site.error_log().contains("configuration 2 is in force"));
        assert!(is_served_at(topology, HOSTS[0]));
    });
}

#[test]
fn an_interface_that_is_moved_to_another_namespace_is_its_kernels() {
    with_connection(1500, |topology, site, _, _| {
        let third = topology.elsewhere();
        move_to(INTERFACE, &third);
        wait_for(|| {
            site.error_log()
                .contains("the device \"mill0\" was deleted")
        });
        mill_sys::namespace::enter_network(&third).unwrap();
        ip("address add 10.50.0.1/24 dev mill0");
        ip("link set mill0 up");
        let kernels = std::net::TcpListener::bind("10.50.0.1:80").unwrap();
        let address = kernels.local_addr().unwrap();
        topology.at_client(|| std::net::TcpStream::connect(address).unwrap());
    });
}

#[test]
fn status_tells_of_an_interface_what_it_has_and_what_is_in_the_way() {
    between(9000, |_| {
        let shown = || text_of(BINARY, &["status", "--link", INTERFACE]);
        let before = shown();
        for words in [
            "mill0: veth",
            "up, MTU 9000",
            "XDP program              none",
            "long segments            left to the device",
        ] {
            assert!(before.contains(words), "{words}: {before}");
        }
        let _server = serve(&Site::new());
        let beside = shown();
        assert!(beside.contains("in the driver\n"), "{beside}");
        assert!(
            beside.contains("! it has an XDP program already"),
            "{beside}"
        );
        let all = text_of(BINARY, &["status", "--link"]);
        assert!(all.contains(&beside), "{all}");
        let refused = crate::namespace::output_of(BINARY, &["status", "--link", "mill9"]);
        assert!(!refused.status.success());
        let why = String::from_utf8_lossy(&refused.stderr);
        assert!(
            why.contains("\"mill9\" could not be read: No such device"),
            "{why}"
        );
    });
}
