//! Routes, and source addresses.

use super::*;
use alloc::string::String;

const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

fn prefix(text: &str) -> Prefix {
    let (address, len) = text.split_once('/').unwrap();
    Prefix {
        address: address.parse().unwrap(),
        len: len.parse().unwrap(),
    }
}

fn routes() -> Routes {
    let gateway = |target: &str, gateway: &str| Route {
        target: prefix(target),
        gateway: gateway.parse().unwrap(),
    };
    Routes::new(
        MAC,
        &[
            prefix("10.77.0.2/24"),
            prefix("192.168.9.1/30"),
            prefix("fd00:7::2/64"),
            prefix("2001:db8:1::2/64"),
        ],
        &[
            gateway("0.0.0.0/0", "10.77.0.1"),
            gateway("172.16.0.0/12", "192.168.9.2"),
            gateway("10.77.0.128/25", "192.168.9.2"),
            gateway("::/0", "fe80::1"),
            gateway("fd00:8::/32", "fd00:7::1"),
            Route::on_link(prefix("10.90.0.0/16")),
        ],
    )
}

fn check(target: &str, expected: Option<(&str, &str)>) {
    let found = routes().route(target.parse().unwrap());
    let expected = expected.map(|(next_hop, source)| Hop {
        next_hop: next_hop.parse().unwrap(),
        source: source.parse().unwrap(),
    });
    assert_eq!(found, expected, "{target}");
}

#[test]
fn the_longest_prefix_says_where_a_packet_goes_first() {
    check("10.77.0.9", Some(("10.77.0.9", "10.77.0.2")));
    check("10.77.0.127", Some(("10.77.0.127", "10.77.0.2")));
    check("10.77.0.128", Some(("192.168.9.2", "192.168.9.1")));
    check("10.77.1.0", Some(("10.77.0.1", "10.77.0.2")));
    check("172.31.255.255", Some(("192.168.9.2", "192.168.9.1")));
    check("172.32.0.0", Some(("10.77.0.1", "10.77.0.2")));
    check("fd00:7::9", Some(("fd00:7::9", "fd00:7::2")));
    check("fd00:8::9", Some(("fd00:7::1", "fd00:7::2")));
    check("2001:db8:1::77", Some(("2001:db8:1::77", "2001:db8:1::2")));
    check("2001:db8:2::77", Some(("fe80::1", "2001:db8:1::2")));
    check("10.90.1.2", Some(("10.90.1.2", "10.77.0.2")));
    check("255.255.255.255", Some(("255.255.255.255", "10.77.0.2")));
}

#[test]
fn the_source_reaches_as_far_as_the_target_and_no_farther() {
    let link_local = String::from("fe80::ff:fe00:1");
    check("fe80::9", Some(("fe80::9", &link_local)));
    check("ff02::1", Some(("ff02::1", &link_local)));
    check("ff0e::1", Some(("ff0e::1", "fd00:7::2")));
    check("fd00:7::2", Some(("fd00:7::2", "fd00:7::2")));
    check("10.77.0.2", Some(("10.77.0.2", "10.77.0.2")));
}

#[test]
fn without_a_route_or_an_address_of_the_family_there_is_no_way() {
    let routes = Routes::new(MAC, &[prefix("10.77.0.2/24")], &[]);
    for target in ["10.77.1.1", "8.8.8.8", "fd00::1", "fe80::1", "ff02::1"] {
        assert_eq!(routes.route(target.parse().unwrap()), None, "{target}");
    }
    assert!(routes.route("10.77.0.255".parse().unwrap()).is_some());
}

#[test]
fn of_the_kernel_only_routes_lead_anywhere() {
    let check = |routes: &Routes, target: &str, expected: Option<&str>| {
        let found = routes.next_hop(target.parse().unwrap());
        assert_eq!(found, expected.map(|hop| hop.parse().unwrap()), "{target}");
    };
    let gateway = |target: &str, gateway: &str| Route {
        target: prefix(target),
        gateway: gateway.parse().unwrap(),
    };
    let addresses = [prefix("10.77.0.2/24"), prefix("fd00:7::2/64")];
    let mut routes = Routes::of_kernel(
        &addresses,
        &[
            gateway("0.0.0.0/0", "10.99.0.1"),
            Route::on_link(prefix("10.77.0.0/25")),
            gateway("10.94.0.0/16", "fe80::1"),
        ],
    );
    assert!(!routes.is_own(MAC.link_local().into()), "nothing is added");
    check(&routes, "10.77.0.9", Some("10.77.0.9"));
    check(&routes, "10.77.0.129", Some("10.99.0.1"));
    check(&routes, "10.94.0.1", Some("fe80::1"));
    check(&routes, "fd00:7::9", None);
    assert!(routes.is_broadcast("10.77.0.255".parse().unwrap()));
    routes.set_elsewhere(&[prefix("10.94.7.0/24"), prefix("10.77.0.0/24")]);
    check(&routes, "10.94.6.1", Some("fe80::1"));
    check(&routes, "10.94.7.1", None);
    check(&routes, "10.77.0.9", Some("10.77.0.9"));
    check(&routes, "10.77.0.129", None);
    routes.set_routes(&[Route::on_link(prefix("fd00:7::/64"))]);
    check(&routes, "10.94.6.1", None);
    check(&routes, "fd00:7::9", Some("fd00:7::9"));
    routes.set_addresses(MAC, &[prefix("fd00:7::3/64")]);
    let found = routes.route("fd00:7::9".parse().unwrap()).unwrap();
    assert_eq!(found.source, "fd00:7::3".parse::<IpAddr>().unwrap());
}

#[test]
fn a_gateway_is_used_while_an_address_has_it_on_its_link() {
    let route = Route {
        target: prefix("0.0.0.0/0"),
        gateway: "10.77.0.1".parse().unwrap(),
    };
    let mut routes = Routes::new(MAC, &[prefix("10.77.0.2/24")], &[route]);
    let target = "8.8.8.8".parse().unwrap();
    assert_eq!(routes.next_hop(target), Some(route.gateway));
    routes.set_addresses(MAC, &[prefix("10.78.0.2/24")]);
    assert_eq!(routes.next_hop(target), None);
    routes.set_addresses(MAC, &[prefix("10.77.0.3/24")]);
    assert_eq!(routes.next_hop(target), Some(route.gateway));
}

#[test]
fn broadcast_is_the_first_and_the_last_address_of_a_prefix_with_room_for_them() {
    let check = |own: &str, address: &str, expected: bool| {
        let routes = Routes::new(MAC, &[prefix(own)], &[]);
        assert_eq!(
            routes.is_broadcast(address.parse().unwrap()),
            expected,
            "{address} on {own}"
        );
    };
    for (address, expected) in [
        ("10.77.0.0", true),
        ("10.77.0.1", false),
        ("10.77.0.254", false),
        ("10.77.0.255", true),
        ("10.77.1.255", false),
        ("255.255.255.255", true),
    ] {
        check("10.77.0.2/24", address, expected);
    }
    check("10.0.0.1/30", "10.0.0.3", true);
    check("10.0.0.0/31", "10.0.0.1", false);
    check("10.0.0.0/31", "10.0.0.0", false);
    check("10.0.0.1/32", "10.0.0.1", false);
}

#[test]
fn group_loopback_and_own_addresses_are_no_senders() {
    let routes = routes();
    for (address, expected) in [
        ("10.77.0.9", false),
        ("10.77.0.2", true),
        ("10.77.0.255", true),
        ("127.0.0.1", true),
        ("0.0.0.0", true),
        ("0.1.2.3", true),
        ("224.0.0.1", true),
        ("8.8.8.8", false),
        ("::", true),
        ("::1", true),
        ("ff02::1", true),
        ("fd00:7::2", true),
        ("fe80::ff:fe00:1", true),
        ("fe80::1", false),
        ("::ffff:10.0.0.1", true),
    ] {
        assert_eq!(
            routes.is_bad_source(address.parse().unwrap()),
            expected,
            "{address}"
        );
    }
}

#[test]
fn a_prefix_holds_addresses_with_its_bits() {
    for (text, address, expected) in [
        ("10.0.0.1/8", "10.255.0.0", true),
        ("10.0.0.1/8", "11.0.0.0", false),
        ("10.0.0.1/32", "10.0.0.1", true),
        ("10.0.0.1/32", "10.0.0.0", false),
        ("0.0.0.0/0", "255.0.0.0", true),
        ("0.0.0.0/0", "::1", false),
        ("::/0", "1.2.3.4", false),
        ("fd00::1/128", "fd00::1", true),
        ("fd00::/127", "fd00::2", false),
    ] {
        let holds = prefix(text).holds(address.parse().unwrap());
        assert_eq!(holds, expected, "{address} in {text}");
    }
}
