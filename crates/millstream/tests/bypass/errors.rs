//! What stands in the way, as users see it: one clear sentence each.

use crate::namespace::output_of;
use crate::server::{Server, Site};
use crate::topology::{FAR, INTERFACE, STACK, between, ip, is_steered};

const BINARY: &str = env!("CARGO_BIN_EXE_millstream");

/// What a start says that has to fail, run behind other words.
fn complaint_behind(before: &[&str], directory: &str, stack: &str) -> String {
    let own = [BINARY, "serve", directory, "--port", "81", "--stack", stack];
    let words = [before, &own].concat();
    let output = output_of(words[0], &words[1..]);
    assert_eq!(output.status.code(), Some(1), "{words:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// What stands in the way of each of these, with a server that is running on the interface if there is to be one.
fn check(with_server: bool, cases: &[(&str, &str)]) {
    between(1500, |_| {
        let site = Site::new();
        let directory = site.path("");
        let server = with_server.then(|| Server::directory(&directory, &["--stack", STACK]));
        for (stack, expected) in cases {
            let text = complaint_behind(&[], directory.to_str().unwrap(), stack);
            assert_eq!(text, format!("millstream: [emerg] {expected}\n"), "{stack}");
        }
        assert_eq!(is_steered(), server.is_some(), "nothing is left of them");
    });
}

#[test]
fn what_is_not_there_is_named() {
    check(
        false,
        &[
            (
                "af_xdp:mill7",
                "af_xdp:mill7: the number of the interface \"mill7\" could not be read: No such device (os error 19)",
            ),
            (
                "af_xdp:mill0,queue=1",
                "af_xdp:mill0: there is no queue 1: the interface receives by 1, counted from 0",
            ),
        ],
    );
}

#[test]
fn a_second_one_on_the_same_queue_is_told_of_the_first() {
    let busy = "af_xdp:mill0: the queue can't be had: somebody else has queue 0 of the interface, another Millstream perhaps";
    check(true, &[(STACK, busy)]);
}

#[test]
fn an_interface_that_is_down_is_named() {
    between(1500, |_| {
        let site = Site::new();
        ip(&format!("link set {INTERFACE} down"));
        let text = complaint_behind(&[], site.path("").to_str().unwrap(), STACK);
        let expected =
            "af_xdp:mill0: the interface is down; \"ip link set mill0 up\" switches it on";
        assert_eq!(text, format!("millstream: [emerg] {expected}\n"));
    });
}

#[test]
fn each_missing_right_is_named() {
    between(1500, |_| {
        let site = Site::new();
        let directory = site.path("");
        let directory = directory.to_str().unwrap();
        let check = |before: &[&str], named: &[&str]| {
            let text = complaint_behind(before, directory, STACK);
            let first = text.lines().next().unwrap();
            for right in ["CAP_NET_RAW", "CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"] {
                assert_eq!(
                    first.contains(right),
                    named.contains(&right),
                    "{before:?}: {text}"
                );
            }
            assert!(
                text.starts_with("millstream: [emerg] af_xdp:mill0: "),
                "{text}"
            );
        };
        for (without, named) in [
            ("-net_raw", &["CAP_NET_RAW"][..]),
            ("-sys_admin,-net_admin", &["CAP_NET_ADMIN"]),
            ("-sys_admin,-bpf", &["CAP_BPF"]),
            ("-sys_admin,-perfmon", &["CAP_PERFMON"]),
            (
                "-sys_admin,-bpf,-perfmon,-net_admin",
                &["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"],
            ),
        ] {
            let without = ["--bounding-set=", "--inh-caps="].map(|set| format!("{set}{without}"));
            check(&["setpriv", &without[0], &without[1]], named);
        }
        assert!(!is_steered());
    });
}

#[test]
fn the_far_end_has_no_stack_to_offer() {
    between(1500, |topology| {
        let site = Site::new();
        // The name is the other namespace's.
        let text = complaint_behind(
            &[],
            site.path("").to_str().unwrap(),
            &format!("af_xdp:{FAR}"),
        );
        assert!(
            text.contains("the interface \"mill1\" could not be read: No such device"),
            "{text}"
        );
        topology.at_client(|| assert!(!is_steered_far()));
    });
}

fn is_steered_far() -> bool {
    crate::namespace::text_of("ip", &["link", "show", FAR]).contains("xdp")
}
