//! `resolver` of a group and of http.

use std::time::Duration;

use mill_config::Text;

use crate::upstream::{PATH, config, http, refused};

#[test]
fn names_are_looked_up_by_the_servers_of_the_group_or_of_http() {
    let config = config(
        "resolver 127.0.0.1 [::1]:54 localhost:55 valid=30s ipv6=off status_zone=dns; resolver_timeout 5s; \
         upstream a { server a.b resolve; } \
         upstream b { resolver 127.0.0.2 ipv4=off; resolver_timeout 6s; server a.b resolve; } \
         server { location / { resolver 127.0.0.3; } }",
    );
    let [a, b] = &http(&config).upstreams[..] else {
        panic!("two groups");
    };
    let outer = a.name_servers.as_ref().expect("http has one");
    let servers: Vec<String> = outer.servers.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["127.0.0.1:53", "[::1]:54", "127.0.0.1:55"]);
    assert_eq!(outer.valid, Some(Duration::from_secs(30)));
    assert!(outer.ipv4 && !outer.ipv6);
    assert_eq!(outer.status_zone, Some(Text::from("dns")));
    let own = b.name_servers.as_ref().expect("it is written");
    assert!(!own.ipv4 && own.ipv6 && own.valid.is_none());
    let timeouts = (a.resolver_timeout, b.resolver_timeout);
    assert_eq!(timeouts, (Duration::from_secs(5), Duration::from_secs(6)));
    let server = &http(&config).servers[0];
    let location = server.locations.find(b"/", &mut Vec::new());
    let location = location.expect("the location exists");
    let inner = location.resolver.name_servers.as_ref();
    assert_eq!(
        inner.expect("it is written").servers[0].to_string(),
        "127.0.0.3:53"
    );
    assert_eq!(location.resolver.timeout, Duration::from_secs(5));
}

#[test]
fn faults_in_a_resolver_are_told_in_the_words_of_nginx() {
    let check = |arguments: &str, expected: &str| {
        let line = refused(&format!("resolver {arguments};"));
        assert_eq!(
            line,
            format!("[emerg] {expected} in {PATH}:1"),
            "{arguments}"
        );
        let line = refused(&format!(
            "upstream a {{ server 127.0.0.1; resolver {arguments}; }}"
        ));
        assert_eq!(
            line,
            format!("[emerg] {expected} in {PATH}:1"),
            "{arguments}"
        );
    };
    check("valid=x", "invalid parameter: valid=x");
    check("127.0.0.1 ipv6=maybe", "invalid parameter: ipv6=maybe");
    check("127.0.0.1 ipv4=", "invalid parameter: ipv4=");
    check("valid=1s", "no name servers defined");
    check(
        "127.0.0.1 ipv4=off ipv6=off",
        "\"ipv4\" and \"ipv6\" cannot both be \"off\"",
    );
    check("127.0.0.1:0", "invalid port in resolver \"127.0.0.1:0\"");
    check(
        "nosuch.invalid",
        "host not found in resolver \"nosuch.invalid\"",
    );
}
