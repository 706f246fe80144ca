//! The client's address as a proxy in front tells it: `set_real_ip_from` and its like, the PROXY protocol.

use std::net::IpAddr;

use mill_config::Text;
use mill_config::config::Network;
use mill_config::config::settings::RealIpHeader;

use crate::proxy::{PATH, config, http, located, location, refused};

#[test]
fn proxies_in_front_are_networks_and_names() {
    let location = located(
        "set_real_ip_from 10.0.0.0/8; set_real_ip_from ::1; set_real_ip_from localhost; set_real_ip_from unix:; \
         real_ip_header X-Forwarded-For; real_ip_recursive on;",
    );
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    assert_eq!(
        location.real_ip.from,
        [
            Network::Cidr(address("10.0.0.0"), 8),
            Network::Cidr(address("::1"), 128),
            Network::Cidr(address("127.0.0.1"), 32),
            Network::Unix,
        ]
    );
    let field = |name: &str| RealIpHeader::Field(Text::from(name));
    assert_eq!(location.real_ip.header, field("X-Forwarded-For"));
    assert!(location.real_ip.recursive);
    let default = &located("").real_ip;
    assert!(default.from.is_empty() && !default.recursive);
    assert_eq!(default.header, field("X-Real-IP"));
    let told = located("real_ip_header proxy_protocol;");
    assert_eq!(told.real_ip.header, RealIpHeader::ProxyProtocol);
}

#[test]
fn a_list_of_proxies_is_inherited_as_a_whole() {
    let config = config(
        "set_real_ip_from 10.0.0.1; set_real_ip_from 10.0.0.2; server { location /a { } \
         location /b { set_real_ip_from 10.0.0.3; } }",
    );
    let count = |path| location(&config, path).real_ip.from.len();
    assert_eq!((count("/a"), count("/b")), (2, 1));
}

#[test]
fn faults_in_proxies_are_told_in_the_words_of_nginx() {
    let check = |directives: &str, expected: &str| {
        let line = refused(&format!("server {{ {directives} }}"));
        assert_eq!(
            line,
            format!("[emerg] {expected} in {PATH}:1"),
            "{directives}"
        );
    };
    check(
        "set_real_ip_from all;",
        "host not found in set_real_ip_from \"all\"",
    );
    check(
        "set_real_ip_from 10.0.0.0/33;",
        "host not found in set_real_ip_from \"10.0.0.0/33\"",
    );
    check(
        "real_ip_header A; real_ip_header B;",
        "\"real_ip_header\" directive is duplicate",
    );
    check(
        "real_ip_recursive 1;",
        "invalid value \"1\" in \"real_ip_recursive\" directive, it must be \"on\" or \"off\"",
    );
    check(
        "listen 80 proxy_protocol=1;",
        "invalid parameter \"proxy_protocol=1\"",
    );
}

#[test]
fn an_address_has_the_proxy_protocol_for_all_its_servers() {
    let config = config(
        "server { listen 80 proxy_protocol backlog=9; } server { listen 80; } server { listen 81; } \
         server { listen 127.0.0.1:81 proxy_protocol; } server { listen 82; } \
         server { listen 82 reuseport; } server { listen 82 proxy_protocol; }",
    );
    let listeners: Vec<(String, bool, bool)> = http(&config)
        .listeners
        .iter()
        .map(|listener| {
            let local = Some("127.0.0.1".parse::<IpAddr>().expect("an address"));
            (
                listener.address.to_string(),
                listener.hosts.proxy_protocol,
                listener.hosts_for(local).proxy_protocol,
            )
        })
        .collect();
    let expected = |port: u16, own, local| (format!("0.0.0.0:{port}"), own, local);
    assert_eq!(
        listeners,
        [
            expected(80, true, true),
            expected(81, false, true),
            expected(82, true, true),
        ]
    );
    assert_eq!(http(&config).listeners[0].options.backlog, 9);
}
