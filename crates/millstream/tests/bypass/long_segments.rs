//! Long segments leave whole where the device cuts them, in order with the frames before them and behind them.

use crate::ask;
use crate::client::Client;
use crate::namespace::text_of;
use crate::run::{BINARY, address};
use crate::server::{Server, Site, wait_for};
use crate::topology::{FAR, HOSTS, STACK, Topology, between, configure, serve_on};
use std::fs;

/// A counter of the server; those that are 0 are not shown.
fn counter(server: &Server, name: &str) -> u64 {
    let pid = server.pid().number().to_string();
    let text = text_of(BINARY, &["status", "--counters", &pid]);
    let lines = text.lines().map(|line| line.split_whitespace());
    let value = lines.filter_map(|mut words| (words.next()? == name).then(|| words.next()));
    value
        .flatten()
        .next()
        .map_or(0, |value| value.parse().unwrap())
}

/// What `--rings` says of long segments: which way they take, and how many went whole.
fn way(server: &Server) -> (String, u64) {
    let status = ask::json(&[&server.pid().number().to_string(), "--rings"]);
    let rows = ask::rows(&status, "rings");
    let value = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        row["value"].as_str().unwrap().to_owned()
    };
    let whole = value("transmitted_whole").parse().unwrap();
    (value("long_segments"), whole)
}

/// How many segments came to the clients' kernel behind later ones.
fn out_of_order(topology: &Topology) -> u64 {
    let text = topology.at_client(|| fs::read_to_string("/proc/thread-self/net/netstat").unwrap());
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let names = lines.next().unwrap().split_whitespace();
    let mut values = lines.next().unwrap().split_whitespace();
    let place = names
        .into_iter()
        .position(|name| name == "TCPOFOQueue")
        .unwrap();
    values.nth(place).unwrap().parse().unwrap()
}

/// Small answers and large ones in turn, over several connections; each byte of them is compared.
fn exchange(topology: &Topology, site: &Site) {
    let large = fs::read(site.path("large.bin")).unwrap();
    let clients = (0..4).map(|_| topology.at_client(|| Client::connect(address(80)).unwrap()));
    for mut client in clients.collect::<Vec<_>>() {
        for _ in 0..3 {
            assert_eq!(client.get("/").unwrap().content, b"hello\n");
            assert!(client.get("/large.bin").unwrap().content == large);
        }
    }
}

#[test]
fn they_leave_whole_and_nothing_overtakes_them() {
    for mtu in [1500, 9000] {
        between(mtu, |topology| {
            let site = Site::new();
            let server = serve_on(&site, STACK);
            exchange(topology, &site);
            assert_eq!(out_of_order(topology), 0);
            wait_for(|| counter(&server, "stack.link_segments") > 12 * 180);
            // Of the file, which is mapped.
            wait_for(|| counter(&server, "stack.segments_in_place") > 12 * 180);
            let (taken, whole) = way(&server);
            assert_eq!(taken, "left to the device, by a packet socket");
            assert_eq!(whole, counter(&server, "stack.link_segments"));
        });
    }
}

/// The client's program at the other end of the pair takes no long segments: from then on the kernel cuts them.
#[test]
fn a_client_on_the_stack_gets_them_in_frames() {
    between(1500, |topology| {
        let site = Site::new();
        let _server = serve_on(&site, STACK);
        let len = fs::metadata(site.path("large.bin")).unwrap().len();
        let stack = format!("af_xdp:{FAR}");
        let url = format!("http://{}/large.bin", HOSTS[0]);
        let words = ["ab", "--stack", &stack, "-k", "-n", "4", "-c", "2", &url];
        let text = topology.at_client(|| text_of(BINARY, &words));
        assert!(text.contains("Failed requests:        0"), "{text}");
        let transferred = format!("HTML transferred:       {} bytes", 4 * len);
        assert!(text.contains(&transferred), "{text}");
    });
}

#[test]
fn where_the_device_is_not_to_cut_they_leave_as_frames() {
    between(1500, |topology| {
        let site = Site::new();
        let conf = configure(&site);
        let stack = format!("{STACK},offload=off");
        let server = Server::configured(&site, &conf, &["--stack", &stack]);
        exchange(topology, &site);
        wait_for(|| counter(&server, "stack.link_transmitted") > 12 * 8000);
        assert_eq!(counter(&server, "stack.link_segments"), 0);
        assert_eq!(way(&server), (String::from("cut into frames here"), 0));
    });
}
