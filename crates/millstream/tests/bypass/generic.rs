//! Frames that are taken after the driver (generic mode): on interfaces whose driver runs no programs, and where it is
//! configured.

use crate::client::Client;
use crate::namespace::{output_of, text_of};
use crate::others::{Echo, the_rest_is_undisturbed};
use crate::server::{Site, wait_for};
use crate::topology::{
    HOSTS, INTERFACE, Topology, between, has_program, ip, kernel_connections, serve_on,
};
use mill_sys::signal::Signal;
use std::fs;

/// An interface on top of the server's end, which has the server's addresses now.
const ABOVE: &str = "mill2";

fn add_macvlan() {
    for address in ["10.50.0.1/24", "fd50::1/64"] {
        ip(&format!("address delete {address} dev {INTERFACE}"));
    }
    ip(&format!(
        "link add link {INTERFACE} name {ABOVE} type macvlan mode bridge"
    ));
    ip(&format!("address add 10.50.0.1/24 dev {ABOVE}"));
    ip(&format!("address add fd50::1/64 dev {ABOVE} nodad"));
    ip(&format!("link set {ABOVE} up"));
}

const WARNING: &str = "the driver takes no program";

/// Content of all lengths in both directions, by connections that are not the kernel's.
fn check_traffic(topology: &Topology, site: &Site) {
    let large = fs::read(site.path("large.bin")).unwrap();
    for host in HOSTS {
        let address = format!("{host}:80").parse().unwrap();
        let mut client = topology.at_client(|| Client::connect(address).unwrap());
        assert_eq!(client.get("/").unwrap().content, b"hello\n", "{host}");
        assert!(client.get("/large.bin").unwrap().content == large, "{host}");
        let url = format!("http://{host}/");
        check_upload(&mut client);
        topology.at_client(|| {
            let text = text_of("ab", &["-q", "-n", "500", "-c", "10", &url]);
            assert!(text.contains("Failed requests:        0"), "{text}");
        });
    }
    assert_eq!(kernel_connections(80), "");
    // A peer on this machine leaves segmentation to the interface. Without it all large segments would be lost, and be
    // retransmitted one by one: that would be more than a thousand. On a busy machine some are lost all the same.
    let repeated = topology.at_client(segments_repeated);
    assert!(repeated < 500, "{repeated} segments were sent again");
}

/// A body that is refused, and read to its end.
fn check_upload(client: &mut Client) {
    let body = "x".repeat(900_000);
    let len = body.len();
    let request = format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {len}\r\n\r\n{body}");
    client.send(request.as_bytes()).unwrap();
    assert_eq!(client.answer().unwrap().status, 405);
    assert_eq!(client.get("/").unwrap().content, b"hello\n");
}

/// The kernel's counter in the thread's namespace (proc(5), /proc/net/snmp: RetransSegs).
fn segments_repeated() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let mut of_tcp = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, numbers) = (of_tcp.next().unwrap(), of_tcp.next().unwrap());
    let mut columns = names.split(' ').zip(numbers.split(' '));
    let (_, count) = columns.find(|(name, _)| *name == "RetransSegs").unwrap();
    count.parse().unwrap()
}

fn check(mtu: u16, prepare: impl FnOnce() + Send, interface: &str, mode: &str, warns: bool) {
    between(mtu, |topology| {
        prepare();
        let echo = Echo::start();
        let mut kept = topology.at_client(|| HOSTS.map(|host| echo.connect(host)));
        let site = Site::new();
        let server = serve_on(&site, &format!("af_xdp:{interface}{mode}"));
        assert!(text_of("ip", &["link", "show", interface]).contains("xdpgeneric"));
        assert_eq!(
            site.error_log().contains(WARNING),
            warns,
            "{}",
            site.error_log()
        );
        check_traffic(topology, &site);
        the_rest_is_undisturbed(topology, &mut kept);
        // The next process uses the same mode.
        server.worker().kill(Signal::Kill.number()).unwrap();
        let in_force = "configuration 1 is in force";
        wait_for(|| site.error_log().matches(in_force).count() == 2);
        let address = format!("{}:80", HOSTS[0]).parse().unwrap();
        let mut client = topology.at_client(|| Client::connect(address).unwrap());
        check_upload(&mut client);
        assert!(server.end(Signal::Quit).success());
        assert!(!has_program(interface));
        the_rest_is_undisturbed(topology, &mut kept);
    });
}

#[test]
fn a_macvlan_interface_is_served_with_a_warning() {
    for mtu in [1500, 9000] {
        check(mtu, add_macvlan, ABOVE, "", true);
    }
}

#[test]
fn generic_mode_can_be_configured_where_native_mode_works() {
    for mtu in [1500, 9000] {
        check(mtu, || {}, INTERFACE, ",mode=generic", false);
    }
}

#[test]
fn native_mode_is_refused_where_the_driver_can_not() {
    between(1500, |_| {
        add_macvlan();
        let site = Site::new();
        let directory = site.path("");
        let directory = directory.to_str().unwrap();
        let stack = format!("af_xdp:{ABOVE},mode=native");
        let words = ["serve", directory, "--port", "81", "--stack", &stack];
        let output = output_of(env!("CARGO_BIN_EXE_millstream"), &words);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        let begins =
            "millstream: [emerg] af_xdp:mill2: the driver takes no program (bpf(BPF_LINK_CREATE): ";
        let ends = "); without mode=native frames are taken behind it\n";
        assert!(text.starts_with(begins) && text.ends_with(ends), "{text}");
        assert!(!has_program(ABOVE));
    });
}
