//! A stack in a virtual network (802.1Q), with another one at the other end of the link: this machine's kernel needs no
//! knowledge of tags. Hosts of other networks, and of none, reach nothing.

use crate::client::Client;
use crate::namespace::{output_of, text_of};
use crate::run::BINARY;
use crate::server::{Server, Site, wait_for};
use crate::topology::{
    BRIDGED, FAR, HOSTS, INTERFACE, STACK, Topology, between, configure, ip, kernel_connections,
    serve_on,
};
use std::fs;

/// The load generator on a stack with these options, at the client's side: how many of 20 requests for the large file
/// were answered, and with how many bytes. `None` without an answer to one of them in so many seconds.
fn requests(topology: &Topology, stack: &str, host: &str, seconds: &str) -> Option<(usize, usize)> {
    let url = format!("http://{host}/large.bin");
    let words = [
        "ab", "--stack", stack, "-k", "-s", seconds, "-n", "20", "-c", "4", &url,
    ];
    let output = topology.at_client(|| output_of(BINARY, &words));
    let text = String::from_utf8(output.stdout).unwrap();
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let found = number("Complete requests:").zip(number("HTML transferred:"));
    found.filter(|(complete, _)| *complete > 0)
}

/// Where answers are expected, also on a machine that is busy.
const PATIENCE_S: &str = "20";

/// Serves on a stack; clients in the same network get all bytes, and those of others, or of none, nothing.
fn check(topology: &Topology, server_stack: &str, client_stack: &str, hosts: &[&str]) {
    let site = Site::new();
    let _server = serve_on(&site, &format!("{server_stack},vlan=10"));
    let len = fs::metadata(site.path("large.bin")).unwrap().len();
    for host in hosts {
        let stack = format!("{client_stack},vlan=10");
        let found = requests(topology, &stack, host, PATIENCE_S);
        assert_eq!(
            found,
            Some((20, 20 * usize::try_from(len).unwrap())),
            "{host}"
        );
    }
    assert_eq!(kernel_connections(80), "");
}

#[test]
fn requests_in_a_network_are_answered_there_over_af_xdp() {
    for mtu in [1500, 9000] {
        between(mtu, |topology| {
            check(topology, STACK, &format!("af_xdp:{FAR}"), &HOSTS);
        });
    }
}

#[test]
fn no_frames_of_other_networks_or_of_none_are_taken_over_af_xdp() {
    between(1500, |topology| {
        let site = Site::new();
        let server = serve_on(&site, &format!("{STACK},vlan=10"));
        // Without a tag they are the kernel's, whose sockets the server listens on as well.
        let address = format!("{}:80", HOSTS[0]).parse().unwrap();
        let mut client = topology.at_client(|| Client::connect(address).unwrap());
        assert_eq!(client.get("/").unwrap().content, b"hello\n");
        assert_ne!(kernel_connections(80), "");
        let pid = server.pid().number().to_string();
        let redirected = || {
            let text = text_of(BINARY, &["status", "--counters", &pid]);
            text.contains("steering_redirected")
        };
        assert!(!redirected());
        let stack = format!("af_xdp:{FAR},vlan=11");
        assert_eq!(requests(topology, &stack, HOSTS[0], "2"), None);
        assert!(!redirected());
        let stack = format!("af_xdp:{FAR},vlan=10");
        assert!(requests(topology, &stack, HOSTS[0], PATIENCE_S).is_some());
        wait_for(redirected);
    });
}

/// The server's TAP device and the client's interface are ports of one bridge, which knows nothing of networks.
#[test]
fn a_tap_device_and_an_interface_meet_in_a_network() {
    between(1500, |topology| {
        topology.bridge();
        let site = Site::new();
        let _server = serve_on(&site, &format!("{BRIDGED},vlan=10"));
        ip(crate::topology::JOIN_BRIDGE.trim_start_matches("ip "));
        let len = fs::metadata(site.path("large.bin")).unwrap().len();
        let len = usize::try_from(len).unwrap();
        // The client's kernel resolves neighbours without a tag, and does not find any: a TAP device of its own does.
        let raise = |vlan: &str, patience: &str| {
            let stack = format!("tap:mill3,address=10.50.0.3/24,address=fd50::3/64{vlan}");
            let url = format!("http://{}/large.bin", HOSTS[0]);
            let words = [
                "-c",
                &format!(
                    "{BINARY} ab --stack {stack} -k -s {patience} -n 20 -c 4 {url} & \
                 for i in $(seq 500); do ip link set mill3 master br0 2>/dev/null && break; done; wait $!"
                ),
            ];
            let output = output_of("sh", &words);
            String::from_utf8(output.stdout).unwrap()
        };
        let text = raise(",vlan=10", PATIENCE_S);
        assert!(text.contains("Complete requests:      20"), "{text}");
        assert!(
            text.contains(&format!("HTML transferred:       {} bytes", 20 * len)),
            "{text}"
        );
        for other in ["", ",vlan=11"] {
            let text = raise(other, "2");
            assert!(
                !text.contains("Complete requests:      20"),
                "{other}: {text}"
            );
        }
    });
}

#[test]
fn both_ends_of_a_memif_are_in_the_same_network_or_get_nothing() {
    between(1500, |_| {
        let site = Site::new();
        let socket = format!("memif:@vlan-{}", std::process::id());
        for (offload, client, is_served) in [
            ("", ",vlan=10", true),
            (",offload=off", ",vlan=10", true),
            ("", ",vlan=11", false),
            ("", "", false),
        ] {
            let stack = format!("{socket},role=master,address=10.66.0.1/24,vlan=10{offload}");
            let conf = configure(&site);
            let server = Server::configured(&site, &conf, &["--stack", &stack]);
            let len = fs::metadata(site.path("large.bin")).unwrap().len();
            let stack = format!("{socket},role=slave,address=10.66.0.2/24{client}{offload}");
            let url = "http://10.66.0.1/large.bin";
            let words = [
                "ab", "--stack", &stack, "-k", "-s", "2", "-n", "20", "-c", "4", url,
            ];
            let output = output_of(BINARY, &words);
            let text = String::from_utf8(output.stdout).unwrap();
            let all = format!("HTML transferred:       {} bytes", 20 * len);
            assert_eq!(text.contains(&all), is_served, "{client}{offload}: {text}");
            drop(server);
        }
    });
}

#[test]
fn numbers_that_no_network_has_are_refused() {
    for bad in ["0", "4095", "ten", "-1", ""] {
        let stack = format!("af_xdp:lo,vlan={bad}");
        let output = output_of(BINARY, &["serve", "/", "--stack", &stack]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        let expected = format!("\"vlan={bad}\" means nothing: a number from 1 to 4094 is wanted");
        assert!(text.contains(&expected), "{text}");
    }
}

/// veth says that it takes tags off, which it does only to those beside the frame.
#[test]
fn an_interface_that_takes_tags_off_is_reported() {
    between(1500, |_| {
        let site = Site::new();
        let _server = serve_on(&site, &format!("{STACK},vlan=10"));
        let warning = format!("\"ethtool -K {INTERFACE} rxvlan off\" leaves them");
        assert!(site.error_log().contains(&warning), "{}", site.error_log());
        let text = text_of(BINARY, &["status", "--link", INTERFACE]);
        assert!(text.contains("VLAN tags"), "{text}");
    });
}
