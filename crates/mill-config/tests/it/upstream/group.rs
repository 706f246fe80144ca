//! Servers, methods, kept connections, zones.

use std::time::Duration;

use mill_config::Text;
use mill_config::config::{Balancing, RandomChoice, ResponseTime, Template, UpstreamTarget};

use crate::upstream::{PATH, config, http, refused, warnings};

#[test]
fn a_group_has_servers_with_their_parameters() {
    let config = config(
        "resolver 127.0.0.1; upstream a { server 127.0.0.1; server localhost:81 weight=3 max_conns=4 max_fails=0 fail_timeout=1m down; \
         server unix:/a.sock backup slow_start=30s route=r; server [::1]:82 drain; \
         server name.invalid:83 resolve; server name.invalid service=s resolve; }",
    );
    let group = &http(&config).upstreams[0];
    assert_eq!((group.index, group.explicit, group.port), (0, true, 0));
    assert_eq!(group.name, "a");
    assert_eq!(group.balancing, Balancing::RoundRobin);
    let keepalive = &group.keepalive;
    assert_eq!((keepalive.connections, keepalive.local), (None, false));
    assert_eq!(keepalive.requests, 1000);
    assert_eq!(keepalive.time, Duration::from_secs(3600));
    assert_eq!(keepalive.timeout, Duration::from_secs(60));
    let [plain, named, socket, ipv6, resolved, service] = &group.servers[..] else {
        panic!("{:?}", group.servers);
    };
    assert_eq!(plain.name, "127.0.0.1");
    assert_eq!(
        (plain.weight, plain.max_conns, plain.max_fails),
        (1, 0, 1),
        "defaults"
    );
    assert_eq!(plain.fail_timeout, Duration::from_secs(10));
    assert!(!plain.backup && !plain.down && !plain.drain && !plain.resolve);
    assert_eq!(named.name, "localhost:81");
    assert_eq!((named.weight, named.max_conns, named.max_fails), (3, 4, 0));
    assert_eq!(named.fail_timeout, Duration::from_secs(60));
    assert!(named.down);
    assert!(socket.backup);
    assert_eq!(socket.slow_start, Duration::from_secs(30));
    assert_eq!(socket.route, Some(Text::from("r")));
    assert!(ipv6.drain);
    let name = |port| UpstreamTarget::Name {
        host: Text::from("name.invalid"),
        port,
    };
    assert_eq!(resolved.target, name(83));
    assert_eq!(service.target, name(80));
    assert_eq!(service.service, Some(Text::from("s")));
    let mut known = group.servers[..4].iter().flat_map(|server| {
        let UpstreamTarget::Addresses(addresses) = &server.target else {
            panic!("{server:?}");
        };
        addresses.iter().map(ToString::to_string)
    });
    for expected in ["127.0.0.1:80", "127.0.0.1:81", "unix:/a.sock", "[::1]:82"] {
        assert_eq!(known.next().as_deref(), Some(expected));
    }
}

#[test]
fn a_group_has_a_method() {
    let check = |directive: &str, expected: Balancing| {
        let config = config(&format!("upstream a {{ {directive} server 127.0.0.1; }}"));
        assert_eq!(
            http(&config).upstreams[0].balancing,
            expected,
            "{directive}"
        );
    };
    let random = Balancing::Random;
    check("", Balancing::RoundRobin);
    check("least_conn;", Balancing::LeastConn);
    check("ip_hash;", Balancing::IpHash);
    check("random;", random(RandomChoice::One));
    check("random two;", random(RandomChoice::TwoLeastConn));
    check("random two least_conn;", random(RandomChoice::TwoLeastConn));
    let (header, last_byte) = (ResponseTime::Header, ResponseTime::LastByte);
    check(
        "random two least_time;",
        random(RandomChoice::TwoLeastTime(header)),
    );
    check(
        "random two least_time=last_byte;",
        random(RandomChoice::TwoLeastTime(last_byte)),
    );
    let least_time = |time, inflight| Balancing::LeastTime { time, inflight };
    check("least_time header;", least_time(header, false));
    check(
        "least_time last_byte inflight;",
        least_time(last_byte, true),
    );
    let hash = |consistent| Balancing::Hash {
        key: Template::literal("k"),
        consistent,
    };
    check("hash k;", hash(false));
    check("hash k consistent;", hash(true));
    check("ip_hash; least_conn;", Balancing::LeastConn);
}

#[test]
fn a_group_keeps_connections_and_may_have_a_zone() {
    let config = config(
        "upstream a { zone z 64k; keepalive 16; keepalive_requests 10; keepalive_time 2h; keepalive_timeout 5s; \
         server 127.0.0.1; } upstream b { zone z; keepalive 0 local; server 127.0.0.1; }",
    );
    let [a, b] = &http(&config).upstreams[..] else {
        panic!("two groups");
    };
    assert_eq!(a.keepalive.connections, Some(16));
    assert_eq!(a.keepalive.requests, 10);
    assert_eq!(a.keepalive.time, Duration::from_secs(7200));
    assert_eq!(a.keepalive.timeout, Duration::from_secs(5));
    assert_eq!(
        (b.keepalive.connections, b.keepalive.local),
        (Some(0), true)
    );
    let zone = a.zone.as_ref().expect("it has a zone");
    assert_eq!(
        (&zone.name, zone.size_bytes),
        (&Text::from("z"), Some(65536))
    );
    assert_eq!(b.zone.as_ref().and_then(|zone| zone.size_bytes), None);
}

#[test]
fn faults_in_a_group_are_told_in_the_words_of_nginx() {
    let check = |block: &str, expected: &str| {
        let line = refused(&format!("upstream a {{ {block} }}"));
        assert_eq!(line, format!("[emerg] {expected} in {PATH}:1"), "{block}");
    };
    check("", "no servers are inside upstream");
    check("server 127.0.0.1 backup;", "no servers in upstream \"a\"");
    check(
        "server;",
        "invalid number of arguments in \"server\" directive",
    );
    check(
        "server nosuch.invalid;",
        "host not found in upstream \"nosuch.invalid\"",
    );
    check(
        "server 127.0.0.1/x;",
        "invalid host in upstream \"127.0.0.1/x\"",
    );
    for parameter in [
        "weight=0",
        "weight=x",
        "max_conns=x",
        "max_fails=",
        "nosuch",
    ] {
        check(
            &format!("server 127.0.0.1 {parameter};"),
            &format!("invalid parameter \"{parameter}\""),
        );
    }
    for method in ["ip_hash", "hash k", "random"] {
        check(
            &format!("{method}; server 127.0.0.1 backup;"),
            "balancing method does not support parameter \"backup\"",
        );
    }
    check(
        "hash k consistent; server 127.0.0.1; server 127.0.0.2 slow_start=1s;",
        "balancing method does not support parameter \"slow_start=1s\"",
    );
    check("server 127.0.0.1 route=;", "route is empty");
    check(
        &format!("server 127.0.0.1 route={};", "r".repeat(33)),
        "route is longer than 32",
    );
    check("server a.b service=;", "service is empty");
    check(
        "server a.b service=x;",
        "service upstream \"a.b\" requires \"resolve\" parameter",
    );
    check(
        "server a.b:80 service=x resolve;",
        "service upstream \"a.b:80\" may not have port",
    );
    check(
        "server a.b resolve;",
        "no resolver defined to resolve names at run time in upstream \"a\"",
    );
    check(
        "server 127.0.0.1 service=x resolve;",
        "service upstream \"127.0.0.1\" requires domain name",
    );
    check("hash k once;", "invalid parameter \"once\"");
    check("random three;", "invalid parameter \"three\"");
    check("random two fast;", "invalid parameter \"fast\"");
    check("least_time now;", "invalid value \"now\"");
    check("least_time header x;", "invalid parameter \"x\"");
    check(
        "keepalive x;",
        "invalid value \"x\" in \"keepalive\" directive",
    );
    check("keepalive 1 x;", "invalid parameter \"x\"");
    check(
        "keepalive 1; keepalive 2;",
        "\"keepalive\" directive is duplicate",
    );
    check(
        "keepalive_timeout 1; keepalive_timeout 2;",
        "\"keepalive_timeout\" directive is duplicate",
    );
    check(
        "keepalive_timeout x;",
        "\"keepalive_timeout\" directive invalid value",
    );
    check(
        "keepalive_timeout 1 2;",
        "invalid number of arguments in \"keepalive_timeout\" directive",
    );
    check("zone \"\";", "invalid zone name \"\"");
    check("zone z x;", "invalid zone size \"x\"");
    check("zone z 16k;", "zone \"z\" is too small");
    check("listen 80;", "\"listen\" directive is not allowed here");
    let twice = "upstream a { server 127.0.0.1; } upstream A { server 127.0.0.1; }";
    assert_eq!(
        refused(twice),
        format!("[emerg] duplicate upstream \"A\" in {PATH}:1")
    );
}

#[test]
fn a_second_method_takes_the_place_of_the_first_with_a_warning() {
    let warning = format!("[warn] load balancing method redefined in {PATH}:1");
    let two = "upstream a { least_conn; ip_hash; server 127.0.0.1; }";
    assert_eq!(warnings(two), [warning]);
    let kept = "upstream a { keepalive 2; least_conn; server 127.0.0.1; }";
    assert!(warnings(kept).is_empty());
}

#[test]
fn zones_have_one_size_and_one_purpose() {
    let group = |name: &str, rest: &str| format!("upstream {name} {{ server 127.0.0.1; {rest} }}");
    let check = |groups: [String; 2], expected: &str| {
        let line = refused(&groups.concat());
        assert_eq!(
            line,
            format!("[emerg] {expected} in {PATH}:1"),
            "{groups:?}"
        );
    };
    check(
        [group("a", "zone z 32k;"), group("b", "zone z 64k;")],
        "the size 65536 of shared memory zone \"z\" conflicts with already declared size 32768",
    );
    check(
        [group("a", "zone z;"), group("b", "zone y 64k;")],
        "zero size shared memory zone \"z\"",
    );
    let learn = "sticky learn create=$uri lookup=$uri zone=z:64k;";
    check(
        [group("a", "zone z 64k;"), group("b", learn)],
        "the shared memory zone \"z\" is already declared for a different use",
    );
    check(
        [group("a", learn), group("b", learn)],
        "sticky zone \"z\" is already used in another upstream",
    );
}
