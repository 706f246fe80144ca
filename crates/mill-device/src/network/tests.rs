//! What is read of interfaces, in network namespaces of the tests.

use super::*;
use mill_sys::namespace;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVlan, LinkAttribute, LinkInfo, LinkMessage, VlanProtocol,
};
use std::process::Command;

/// Runs a test on a thread in a network namespace that vanishes with it.
pub(super) fn in_namespace(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if let Err(error) = namespace::leave_network() {
                println!("not tested, since there can be no network namespace: {error}");
                return;
            }
            test();
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Runs ip(8) for each line, in the calling thread's namespace.
pub(super) fn ip(lines: &[&str]) {
    for line in lines {
        let output = Command::new("ip")
            .args(line.split(' '))
            .output()
            .expect("ip(8) is installed");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ip {line}: {errors}");
    }
}

/// Two interfaces joined by a wire, the first with addresses.
pub(super) fn wire() {
    ip(&[
        "link add mill0 type veth peer name mill1",
        "link set mill0 address 02:00:00:00:00:01 up",
        "link set mill1 address 02:00:00:00:00:02 up",
        "address add 10.77.0.1/24 dev mill0",
        "address add fd00:7::1/64 dev mill0 nodad",
    ]);
}

pub(super) fn prefix(text: &str) -> Prefix {
    let (address, len) = text.split_once('/').unwrap();
    Prefix {
        address: address.parse().unwrap(),
        len: len.parse().unwrap(),
    }
}

/// The routes as text, without link-local ones.
pub(super) fn text_of(network: &Network) -> Vec<String> {
    let routes = network.routes.iter().map(|route| {
        let Prefix { address, len } = route.target;
        if route.is_on_link() {
            format!("{address}/{len}")
        } else {
            format!("{address}/{len} via {}", route.gateway)
        }
    });
    let elsewhere = network.elsewhere.iter();
    let elsewhere = elsewhere.map(|Prefix { address, len }| format!("{address}/{len} elsewhere"));
    let all = routes.chain(elsewhere);
    all.filter(|text| !text.starts_with("fe80")).collect()
}

#[test]
fn an_interface_is_read_with_its_addresses_and_neighbors() {
    in_namespace(|| {
        wire();
        ip(&[
            "link set mill0 mtu 9000",
            "address add 10.77.0.9/32 dev mill0",
            "address add 10.78.0.1 peer 10.78.0.2/24 dev mill0",
            "neighbor add 10.77.0.2 lladdr 02:00:00:00:00:02 dev mill0",
            "neighbor add fd00:7::2 lladdr 02:00:00:00:00:02 nud stale dev mill0",
            "neighbor add proxy 10.77.0.3 dev mill0",
            "neighbor add 10.77.0.4 lladdr 02:00:00:00:00:04 dev mill1",
        ]);
        let network = Network::of("mill0").unwrap();
        let link = &network.link;
        assert_eq!(
            (link.mac, link.mtu, link.is_up, link.is_running),
            (MacAddress([2, 0, 0, 0, 0, 1]), 9000, true, true)
        );
        assert_eq!(
            (link.name.as_str(), link.kind.as_deref()),
            ("mill0", Some("veth"))
        );
        assert_eq!((link.receive_queues, link.transmit_queues), (1, 1));
        assert!(link.peer_may_be_local());
        for address in [
            "10.77.0.1/24",
            "10.77.0.9/32",
            "10.78.0.1/32",
            "fd00:7::1/64",
        ] {
            let addresses = &network.addresses;
            assert!(addresses.contains(&prefix(address)), "{addresses:?}");
        }
        let mac = MacAddress([2, 0, 0, 0, 0, 2]);
        let neighbors = ["10.77.0.2", "fd00:7::2"].map(|text| (text.parse().unwrap(), mac));
        assert_eq!(network.neighbors, BTreeMap::from(neighbors));
    });
}

#[test]
fn the_main_table_is_read_as_seen_from_the_interface() {
    in_namespace(|| {
        wire();
        ip(&[
            "address add 192.168.9.1/24 dev mill1",
            "route add default via 10.77.0.254 dev mill0",
            "route add 172.16.0.0/12 via 10.77.0.253 dev mill0 metric 20",
            "route add 172.16.0.0/12 via 10.77.0.252 dev mill0 metric 10",
            "route add 172.16.0.0/12 via 192.168.9.9 dev mill1 metric 15",
            "route add 10.90.0.0/16 dev mill0",
            "route add blackhole 10.91.0.0/16",
            "route add 10.92.0.0/16 nexthop via 192.168.9.9 nexthop via 10.77.0.251",
            "route add 10.93.0.0/16 via 10.77.0.250 dev mill0 table 100",
            "route add 10.94.0.0/16 via inet6 fd00:7::fe dev mill0",
            "nexthop add id 7 via 10.77.0.7 dev mill0",
            "route add 10.95.0.0/16 nhid 7",
            "-6 route add default via fd00:7::ff dev mill0",
            "-6 route add 2001:db8::/32 dev mill1",
        ]);
        let network = Network::of("mill0").unwrap();
        assert_eq!(
            text_of(&network),
            [
                "0.0.0.0/0 via 10.77.0.254",
                "10.77.0.0/24",
                "10.90.0.0/16",
                "10.92.0.0/16 via 10.77.0.251",
                "10.94.0.0/16 via fd00:7::fe",
                "10.95.0.0/16 via 10.77.0.7",
                "172.16.0.0/12 via 10.77.0.252",
                "::/0 via fd00:7::ff",
                "fd00:7::/64",
                "10.91.0.0/16 elsewhere",
                "192.168.9.0/24 elsewhere",
                "2001:db8::/32 elsewhere",
            ]
        );
        let other = Network::of("mill1").unwrap();
        assert_eq!(
            text_of(&other),
            [
                "10.92.0.0/16 via 192.168.9.9",
                "192.168.9.0/24",
                "2001:db8::/32"
            ],
            "prefixes that no route of the interface covers are not listed"
        );
        assert_eq!(network.routes_left_out, 0);
    });
}

#[test]
fn routes_beyond_the_limit_are_counted() {
    let prefixes = (0..u32::try_from(ROUTES_MAX).unwrap() + 3).map(|number| Prefix {
        address: IpAddr::V4(number.into()),
        len: 32,
    });
    let mut network = Network {
        link: LinkState {
            name: String::from("mill0"),
            index: 1,
            mac: MacAddress::UNSPECIFIED,
            mtu: 1500,
            is_up: true,
            is_running: true,
            kind: None,
            receive_queues: 1,
            transmit_queues: 1,
            vlan: None,
        },
        addresses: Vec::new(),
        routes: Vec::new(),
        elsewhere: Vec::new(),
        neighbors: BTreeMap::new(),
        routes_left_out: 0,
    };
    network.take_routes(prefixes.map(|prefix| Routing {
        prefix,
        metric: 0,
        target: Target::Link,
    }));
    assert_eq!(
        (network.routes.len(), network.routes_left_out),
        (ROUTES_MAX, 3)
    );
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    let refused = Network::of("mill9").unwrap_err();
    let text = refused.to_string();
    assert!(
        text.starts_with("the number of the interface \"mill9\" could not be read: No such device"),
        "{text}"
    );
}

#[test]
fn an_interface_without_neighbors_has_none() {
    let network = Network::of("lo").unwrap();
    assert_eq!((network.link.mtu, network.link.kind), (u16::MAX, None));
    assert!(network.neighbors.is_empty());
}

#[test]
fn a_namespace_that_never_had_a_route_has_none() {
    in_namespace(|| {
        ip(&["link add mill0 type veth peer mill1"]);
        let network = Network::of("mill0").unwrap();
        assert!(network.routes.is_empty() && network.addresses.is_empty());
    });
}

/// The kernel's message about eth0.10, without the kernel's module of such interfaces.
#[test]
fn a_virtual_network_is_read_with_its_number_and_the_interface_below() {
    let read = |infos: Vec<LinkInfo>| {
        let mut message = LinkMessage::default();
        message.header.index = 7;
        message.attributes = vec![
            LinkAttribute::IfName(String::from("eth0.10")),
            LinkAttribute::Link(2),
            LinkAttribute::LinkInfo(infos),
        ];
        read::link(&RouteNetlinkMessage::NewLink(message), 7)
            .unwrap()
            .vlan
    };
    let vlan = |options| {
        let kind = LinkInfo::Kind(InfoKind::Vlan);
        read(vec![kind, LinkInfo::Data(InfoData::Vlan(options))])
    };
    let id = InfoVlan::Id(10);
    let of = Some(VlanOf { parent: 2, id: 10 });
    assert_eq!(vlan(vec![id.clone()]), of);
    let customer = InfoVlan::Protocol(VlanProtocol::Ieee8021Q);
    assert_eq!(vlan(vec![customer, id.clone()]), of);
    // A provider's: the stack has no such tags.
    let provider = InfoVlan::Protocol(VlanProtocol::Ieee8021Ad);
    assert_eq!(vlan(vec![provider, id]), None);
    assert_eq!(vlan(vec![]), None);
    assert_eq!(read(vec![LinkInfo::Kind(InfoKind::Veth)]), None);
}
