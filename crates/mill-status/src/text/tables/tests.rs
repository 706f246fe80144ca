//! Tests of the tables.

use super::*;
use crate::document::{OptionInForce, Total, Worker};
use crate::tables::{Listener, Neighbor, Route};

fn connection() -> Connection {
    Connection {
        state: String::from("established"),
        local: String::from("10.0.0.1:80"),
        by: String::from("stack"),
        remote: String::from("10.0.0.2:40000"),
        receive_queue: 0,
        send_queue: 2896,
        rtt_us: 150,
        rttvar_us: 20,
        rto_us: 201_000,
        mss: 1448,
        cwnd: 14_480,
        ssthresh: Some(7240),
        send_window: 65_535,
        receive_window: 131_072,
        in_flight: 2896,
        recovery: String::from("recovery"),
        options: vec![String::from("ts"), String::from("sack")],
        bytes_acked: 1_000_000,
        ..Connection::default()
    }
}

fn status(part: Part) -> Status {
    Status {
        workers: vec![Worker {
            stack: Some(Figures::new()),
            ..Worker::default()
        }],
        parts: vec![part],
        ..Status::default()
    }
}

#[test]
fn a_connection_is_shown_as_ss_does() {
    let waiting = Connection {
        state: String::from("time-wait"),
        local: String::from("10.0.0.1:80"),
        by: String::from("stack"),
        remote: String::from("10.0.0.2:40001"),
        ..Connection::default()
    };
    let text = connections(&status(Part {
        worker: 3,
        connections: vec![connection(), waiting],
        connections_total: 5,
        ..Part::default()
    }));
    let expected = "\
STATE        RECV-Q  SEND-Q  LOCAL        PEER            BY     WORKER
established       0    2896  10.0.0.1:80  10.0.0.2:40000  stack       3
        ts sack rtt:150us/20us rto:201ms mss:1448 cwnd:14480 ssthresh:7240 snd_wnd:65535
        rcv_wnd:131072 unacked:2896 bytes_acked:1000000 recovery
time-wait         0       0  10.0.0.1:80  10.0.0.2:40001  stack       3
2 of 5 connections shown
";
    assert_eq!(text, expected);
}

#[test]
fn other_tables_are_aligned() {
    let part = Part {
        listeners: vec![Listener {
            address: String::from("0.0.0.0:80"),
            waiting: 1,
            backlog: 511,
            half_open: 2,
            half_open_max: 511,
            sends_cookies: true,
        }],
        neighbors: vec![Neighbor {
            address: String::from("10.0.0.2"),
            mac: String::new(),
            state: String::from("incomplete"),
        }],
        routes: vec![Route {
            target: String::from("0.0.0.0/0"),
            gateway: Some(String::from("10.0.0.9")),
            is_elsewhere: false,
        }],
        timers: vec![Fact {
            name: String::from("connections"),
            value: String::from("3 armed"),
        }],
        ..Part::default()
    };
    let status = status(part);
    let check = |text: String, expected: &str| assert_eq!(text, expected);
    check(
        listeners(&status),
        "ADDRESS     ACCEPT-Q  BACKLOG  SYN-Q  SYN-MAX  COOKIES  WORKER\n\
         0.0.0.0:80         1      511      2      511  sent          0\n",
    );
    check(
        neighbors(&status),
        "NEIGHBOR  MAC  STATE       WORKER\n10.0.0.2  -    incomplete       0\n",
    );
    check(
        routes(&status),
        "TARGET     VIA       WORKER\n0.0.0.0/0  10.0.0.9       0\n",
    );
    check(
        timers(&status),
        "worker 0\n  NAME         VALUE\n  connections  3 armed\n",
    );
    check(rings(&status), NO_STACK);
    check(listeners(&Status::default()), NO_STACK);
    check(options(&status), "the server has no stack of its own\n");
}

#[test]
fn drops_and_counters_have_their_help_in_100_columns() {
    let stack = [
        ("frames_received", 10),
        ("frames_handled", 7),
        ("dropped_checksum", 3),
    ];
    let worker = Worker {
        server: Figures::from([(String::from("requests"), 5)]),
        stack: Some(stack.map(|(name, value)| (name.to_owned(), value)).into()),
        ..Worker::default()
    };
    let mut status = status(Part::default());
    status.total = Total::of(&[worker]);
    status.server.options.push(OptionInForce {
        name: String::from("mtu"),
        value: String::from("1500"),
        from: String::from("default"),
    });
    let text = drops(&status, Help::Fitting);
    assert!(text.contains("checksum "), "{text}");
    assert!(
        text.ends_with("10 frames received = 7 handled + 3 dropped on the way in\n"),
        "{text}"
    );
    let some = counters(&status, false, Help::Fitting);
    assert_eq!(some.lines().count(), 5, "{some}");
    assert!(some.contains("stack.dropped_checksum"), "{some}");
    let whole = counters(&status, true, Help::Whole);
    let is_cut = |text: &str| text.lines().any(|line| line.trim_end().ends_with(" …"));
    assert!(!is_cut(&whole) && is_cut(&counters(&status, true, Help::Fitting)));
    for figure in StackCounters::DESCRIPTIONS {
        assert!(whole.contains(figure.help), "{}: {whole}", figure.name);
    }
    for text in [
        text,
        some,
        counters(&status, true, Help::Fitting),
        options(&status),
    ] {
        let widest = text
            .lines()
            .max_by_key(|line| line.chars().count())
            .unwrap();
        assert!(widest.chars().count() <= 100, "{widest}");
    }
}
