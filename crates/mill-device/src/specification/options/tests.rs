//! Both ends of every range, and where values are stored.

use super::*;
use crate::specification::Specification;
use mill_tcp::config::{Config, Keepalive};
use std::time::Duration;

fn parse(option: &StackOption, value: &str) -> Option<Specification> {
    let least = if option.devices.tap {
        "tap:ms0,address=10.77.0.2/24"
    } else if option.devices.af_xdp {
        "af_xdp:eth0"
    } else if option.devices.dpdk && !option.devices.memif {
        "dpdk:03:00.0,address=10.77.0.2/24"
    } else {
        "memif:@x,role=master,address=10.77.0.2/24"
    };
    let before = if option.name == "core" {
        ",bridge=on"
    } else {
        ""
    };
    Specification::parse(&format!("{least}{before},{}={value}", option.name)).ok()
}

/// Name; the values just inside; the values just outside.
const BOUNDS: &[(&str, [&str; 2], [&str; 2])] = &[
    ("mtu", ["576", "65521"], ["575", "65522"]),
    ("vlan", ["1", "4094"], ["0", "4095"]),
    ("queue", ["all", "0-1023"], ["3-1", "1024"]),
    ("receive-frames", ["256", "65536"], ["255", "65537"]),
    ("transmit-frames", ["256", "65536"], ["255", "65537"]),
    ("ports", ["1-1", "65535-65535"], ["0-1", "65535-65536"]),
    ("id", ["0", "4294967295"], ["-1", "4294967296"]),
    (
        "secret",
        ["s", "sesame; open the doors!!"],
        ["", "sesame open the doors!!!!"],
    ),
    ("rings", ["1", "16"], ["0", "17"]),
    ("ring-size", ["64", "16384"], ["32", "1000"]),
    ("queue-pairs", ["1", "16"], ["0", "17"]),
    ("core", ["all", "0-1023"], ["3-1", "1024"]),
    ("eal", ["-v", "--iova-mode=va"], ["--", "iova-mode"]),
    (
        "ethernet-address",
        ["00:00:00:00:00:01", "fe:ff:ff:FF:ff:ff"],
        ["00:00:00:00:00:00", "01:00:00:00:00:01"],
    ),
    ("buffer", ["128", "64k"], ["127", "65537"]),
    ("burst", ["1", "4096"], ["0", "4097"]),
    ("initial-window", ["1", "1000"], ["0", "1001"]),
    ("receive-buffer", ["4k", "1g"], ["4095", "1073741825"]),
    ("receive-buffer-first", ["4k", "1g"], ["4095", "1073741825"]),
    ("reassembly", ["4k", "1g"], ["4095", "1073741825"]),
    ("reassembly-ranges", ["1", "65536"], ["0", "65537"]),
    ("send-buffer", ["8k", "1g"], ["8191", "1073741825"]),
    ("mss", ["88", "65495"], ["87", "65496"]),
    ("rto-min", ["1ms", "60s"], ["0ms", "60001ms"]),
    ("rto-max", ["1s", "600s"], ["999ms", "600001ms"]),
    ("rto-initial", ["1ms", "60s"], ["0ms", "60001ms"]),
    ("syn-retries", ["0", "127"], ["-1", "128"]),
    ("syn-ack-retries", ["0", "127"], ["-1", "128"]),
    ("retries", ["1", "127"], ["0", "128"]),
    ("orphan-retries", ["0", "127"], ["-1", "128"]),
    ("user-timeout", ["1ms", "86400s"], ["0ms", "86400001ms"]),
    (
        "keepalive",
        ["1s:1s:1", "32767s:32767s:127"],
        ["999ms:1s:1", "32768s:1s:1"],
    ),
    ("keepalive", ["off", "on"], ["1s:1s:0", "1s:1s:128"]),
    (
        "keepalive",
        ["7200s:75s:9", "2s:1s:1"],
        ["1s:1s", "1s:1s:1:1"],
    ),
    ("delayed-ack", ["1ms", "500ms"], ["0ms", "501ms"]),
    ("quick-acks", ["0", "255"], ["-1", "256"]),
    ("msl", ["1ms", "240s"], ["0ms", "240001ms"]),
    ("fin-wait", ["1ms", "600s"], ["0ms", "600001ms"]),
    ("connections", ["1", "16777216"], ["0", "16777217"]),
    ("half-open", ["0", "1048576"], ["-1", "1048577"]),
    ("time-wait", ["0", "16777216"], ["-1", "16777217"]),
    (
        "receive-memory",
        ["1m", "1024g"],
        ["1048575", "1099511627777"],
    ),
    ("fragment-memory", ["64k", "1g"], ["65535", "1073741825"]),
    ("neighbors", ["1", "1048576"], ["0", "1048577"]),
    ("neighbor-queue", ["1", "65536"], ["0", "65537"]),
    ("paths", ["1", "1048576"], ["0", "1048577"]),
    ("answers", ["0", "1000000"], ["-1", "1000001"]),
    ("challenge-acks", ["0", "1000000"], ["-1", "1000001"]),
    ("invalid-ack-interval", ["0ms", "60s"], ["-1ms", "60001ms"]),
    ("loss", ["0%", "100%"], ["-1%", "100.0001%"]),
    ("reorder", ["0%", "100%"], ["-1%", "100.0001%"]),
    ("duplicate", ["0%", "100%"], ["-1%", "100.0001%"]),
    ("corrupt", ["0%", "100%"], ["-1%", "100.0001%"]),
    (
        "seed",
        ["0", "18446744073709551615"],
        ["-1", "18446744073709551616"],
    ),
];

#[test]
fn every_range_ends_where_the_table_says() {
    for (name, possible, impossible) in BOUNDS {
        for option in all().filter(|option| option.name == *name) {
            for value in possible {
                assert!(parse(option, value).is_some(), "{name}={value}");
            }
            for value in impossible {
                assert!(parse(option, value).is_none(), "{name}={value}");
            }
        }
    }
}

#[test]
fn every_option_with_a_range_has_its_bounds_tested() {
    for option in all() {
        let is_tested = BOUNDS.iter().any(|(name, ..)| *name == option.name);
        let has_range = match option.value {
            Value::Switch(_)
            | Value::Keyword(_)
            | Value::Prefix(_)
            | Value::Address(_)
            | Value::Path(_)
            | Value::Polling(_) => false,
            Value::Number(..)
            | Value::PowerOfTwo(..)
            | Value::Count(..)
            | Value::Seed(_)
            | Value::Time(..)
            | Value::Limit(..)
            | Value::Bytes(..)
            | Value::Memory(..)
            | Value::Segment(..)
            | Value::Keepalive(_)
            | Value::Share(_)
            | Value::Ports(_)
            | Value::Secret(..)
            | Value::Argument(_)
            | Value::EthernetAddress(_)
            | Value::Queues(..) => true,
        };
        assert_eq!(is_tested, has_range, "{}", option.name);
    }
}

#[test]
fn options_of_connections_are_stored() {
    let check = |text: &str, change: fn(&mut Config)| {
        let text = format!("af_xdp:eth0,{text}");
        let found = Specification::parse(&text).unwrap();
        let mut expected = Config::default();
        change(&mut expected);
        assert_eq!(found.host_config([0; 16]).tcp, expected, "{text}");
    };
    check("receive-buffer-first=4k", |to| {
        to.receive_buffer_bytes = 4096
    });
    check("receive-buffer=8k", |to| {
        (to.receive_buffer_bytes, to.receive_buffer_bytes_max) = (8192, 8192);
    });
    check("reassembly=1m", |to| to.reassembly_bytes_max = 1 << 20);
    check("reassembly-ranges=7", |to| to.reassembly_ranges_max = 7);
    check("mss=536", |to| to.mss_max = Some(536));
    check("mss=off", |_| {});
    check("rto-max=60s", |to| to.rto_max = Duration::from_secs(60));
    check("rto-initial=3s", |to| {
        to.rto_initial = Duration::from_secs(3)
    });
    check("syn-retries=1", |to| to.syn_retries_max = 1);
    check("syn-ack-retries=2", |to| to.syn_ack_retries_max = 2);
    check("retries=3", |to| to.retries_max = 3);
    check("orphan-retries=4", |to| to.orphan_retries_max = 4);
    check("user-timeout=9s", |to| {
        to.user_timeout = Some(Duration::from_secs(9));
    });
    check("keepalive=on", |to| {
        to.keepalive = Some(Keepalive::default())
    });
    check("keepalive=30s:5s:3", |to| {
        to.keepalive = Some(Keepalive {
            idle: Duration::from_secs(30),
            interval: Duration::from_secs(5),
            count: 3,
        });
    });
    check("quick-acks=0", |to| to.quick_acks = 0);
    check("fin-wait=2s", |to| to.fin_wait_2 = Duration::from_secs(2));
    check("time-wait-reuse=off", |to| to.time_wait_reuse = false);
    check("rfc1337=on", |to| to.rfc1337 = true);
    check("challenge-acks=10", |to| to.challenge_acks_per_second = 10);
    check("invalid-ack-interval=1s", |to| {
        to.invalid_ratelimit = Duration::from_secs(1);
    });
}

#[test]
fn options_of_limits_are_stored() {
    let text = "af_xdp:eth0,burst=7,receive-memory=2g,fragment-memory=1m,neighbors=5,neighbor-queue=6,\
                answers=8,send-buffer=1m";
    let found = Specification::parse(text).unwrap();
    assert_eq!(found.send_buffer_bytes, 1 << 20);
    let limits = found.host_config([0; 16]).limits;
    assert_eq!(limits.burst_max, 7);
    assert_eq!(limits.receive_bytes_max, 2 << 30);
    assert_eq!(limits.fragment_bytes_max, 1 << 20);
    assert_eq!((limits.neighbors_max, limits.neighbor_queue_max), (5, 6));
    assert_eq!(limits.answers_per_second, 8);
}

#[test]
fn each_device_has_ports_of_its_own() {
    let check = |text: &str, expected| {
        let found = Specification::parse(text).unwrap();
        assert_eq!(
            found.host_config([0; 16]).ephemeral_ports,
            expected,
            "{text}"
        );
    };
    check("af_xdp:eth0", 10240..=32767);
    check("af_xdp:eth0,ports=5-9", 5..=9);
    check("tap:ms0,address=10.77.0.2/24", 32768..=60999);
    check(
        "tap:ms0,address=10.77.0.2/24,ports=1024-65535",
        1024..=65535,
    );
}

#[test]
fn a_name_that_stands_twice_is_for_different_devices() {
    for (index, option) in all().enumerate() {
        for other in all()
            .skip(index + 1)
            .filter(|other| other.name == option.name)
        {
            let (one, two) = (option.devices, other.devices);
            let both = [
                (one.tap, two.tap),
                (one.af_xdp, two.af_xdp),
                (one.memif, two.memif),
            ];
            assert!(!both.contains(&(true, true)), "{}", option.name);
        }
    }
}

#[test]
fn the_least_time_is_less_than_the_longest() {
    let parse = |text: &str| Specification::parse(&format!("af_xdp:eth0,{text}"));
    assert!(parse("rto-min=1s,rto-max=1s").is_ok());
    let refused = parse("rto-min=1001ms,rto-max=1s").unwrap_err().to_string();
    assert!(
        refused.starts_with("\"rto-min\" is more than \"rto-max\""),
        "{refused}"
    );
}
