//! More requests than the origin can serve.

use super::{Figures, Rules, ask};
use crate::server::Server;

/// A thousand requests a second, each for a page that nothing keeps, from the address that `host` says.
fn flood(host: impl Fn(usize) -> String) -> impl FnMut(&Server, usize) {
    move |server, step| {
        for number in step * 10..step * 10 + 10 {
            let request = format!(
                "GET /account/of-{number} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n"
            );
            let _client = ask(server, &host(number), number, &request);
        }
    }
}

const UNDEFENDED: Rules = Rules {
    http: "",
    server: "",
};

/// The usual client has its own share: forty a second, and some in reserve.
const BY_ADDRESS: Rules = Rules {
    http: "limit_req_zone $binary_remote_addr zone=clients:1m rate=60r/s; limit_req zone=clients burst=3 nodelay; limit_req_status 429;",
    server: "",
};

const BY_NETWORK: Rules = Rules {
    http: "limit_req_zone $binary_remote_net zone=clients:1m rate=60r/s; limit_req zone=clients burst=3 nodelay; limit_req_status 429;",
    server: "",
};

#[track_caller]
fn assert_refused(figures: &Figures) {
    let server = &figures.attacked.server;
    let refused = server.counters().limit_req_rejected;
    assert!((4600..=4750).contains(&refused), "{refused} of 5000");
    assert!(server.has_logged("limiting requests, excess: 3."));
    assert!(server.has_logged("by zone \"clients\", client: "));
}

#[test]
fn a_flood_from_one_address_is_cut_to_its_share() {
    let attack = || flood(|_| String::from("203.0.113.5"));
    let figures = Figures::of(BY_ADDRESS, UNDEFENDED, attack);
    assert_refused(&figures);
    figures.check("flood from one address");
}

/// Each request from another address of the network that one client of IPv6 has.
#[test]
fn a_flood_from_one_network_of_ipv6_is_cut_to_its_share() {
    let host = |number: usize| format!("2001:db8:5:6:{:x}:7:8:{number:x}", number * 7 % 65_536);
    let figures = Figures::of(BY_NETWORK, BY_ADDRESS, || flood(host));
    assert_refused(&figures);
    assert_eq!(figures.undefended.server.counters().limit_req_rejected, 0);
    figures.check("flood from a /64 of IPv6");
}

/// A thousand addresses, none of which asks often: only a limit of all together holds, and it has to leave room for clients
/// that are known.
#[test]
fn a_flood_from_many_addresses_leaves_known_clients_their_room() {
    let host = |number: usize| format!("203.0.{}.{}", number / 250 % 4, 1 + number % 250);
    let known = Rules {
        http: "geo $unknown { default all; 198.51.100.0/24 ''; }
               limit_req_zone $unknown zone=clients:1m rate=60r/s; limit_req zone=clients burst=3 nodelay;",
        server: "",
    };
    let figures = Figures::of(known, BY_NETWORK, || flood(host));
    assert_refused(&figures);
    figures.check("flood from a thousand addresses");
}
