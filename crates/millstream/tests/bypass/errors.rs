//! Errors as users see them: one clear message each.

use crate::namespace::output_of;
use crate::server::{Server, Site, wait_for};
use crate::topology::{FAR, INTERFACE, STACK, between, ip, is_steered};
use mill_sys::signal::Signal;

const BINARY: &str = env!("CARGO_BIN_EXE_millstream");

/// The error message of a start that has to fail, run behind another command.
fn complaint_behind(before: &[&str], directory: &str, stack: &str) -> String {
    let own = [BINARY, "serve", directory, "--port", "81", "--stack", stack];
    let words = [before, &own].concat();
    let output = output_of(words[0], &words[1..]);
    assert_eq!(output.status.code(), Some(1), "{words:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// The error message under the least limit of memory under which the program itself can be loaded and say something:
/// how much that is depends on how it was built.
fn complaint_of_the_least_memory_that_starts(directory: &str) -> String {
    for mebibytes in (16..256).step_by(2) {
        let limit = format!("--as={}", mebibytes << 20);
        let own = [
            &limit, BINARY, "serve", directory, "--port", "81", "--stack", STACK,
        ];
        let output = output_of("prlimit", &own);
        let text = String::from_utf8(output.stderr).unwrap();
        if output.status.code() == Some(1) && text.starts_with("millstream: [emerg] ") {
            return text;
        }
    }
    panic!("no limit stops the start with a message");
}

/// Checks the error message of each case, optionally with a server running on the interface.
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
fn missing_interfaces_and_files_are_named() {
    check(
        false,
        &[
            (
                "af_xdp:mill7",
                "af_xdp:mill7: there is no interface \"mill7\"; did you mean \"mill0\"?",
            ),
            (
                "af_xdp:wlp0s20f3",
                "af_xdp:wlp0s20f3: there is no interface \"wlp0s20f3\"; \"ip link\" lists those that there are",
            ),
            (
                "af_xdp:mill0,queue=1",
                "af_xdp:mill0: there is no queue 1: the interface receives by 1, counted from 0",
            ),
        ],
    );
}

#[test]
fn a_second_server_on_the_same_queue_is_refused_with_its_reason() {
    let busy = "af_xdp:mill0: the queue can't be had: queue 0 of the interface is in use, perhaps by another Millstream";
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
            ("-net_raw,-sys_admin,-bpf", &["CAP_NET_RAW"]),
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
        // One capability covers the three for programs.
        for without in ["-bpf,-perfmon,-net_admin", "-sys_admin"] {
            let without = ["--bounding-set=", "--inh-caps="].map(|set| format!("{set}{without}"));
            let before = ["setpriv", &without[0], &without[1]];
            let _server = Server::directory_behind(&before, &site.path(""), &["--stack", STACK]);
            assert!(is_steered(), "{without:?}");
        }
    });
}

#[test]
fn the_far_end_has_no_stack_to_offer() {
    between(1500, |topology| {
        let site = Site::new();
        // The name belongs to the other namespace.
        let text = complaint_behind(
            &[],
            site.path("").to_str().unwrap(),
            &format!("af_xdp:{FAR}"),
        );
        assert!(
            text.contains("there is no interface \"mill1\"; did you mean \"mill0\"?"),
            "{text}"
        );
        topology.at_client(|| assert!(!is_steered_far()));
    });
}

fn is_steered_far() -> bool {
    crate::namespace::text_of("ip", &["link", "show", FAR]).contains("xdp")
}

#[test]
fn a_foreign_program_is_named_with_its_process() {
    between(1500, |topology| {
        topology.lay_two_queues();
        let site = Site::new();
        let directory = site.path("");
        let first = Server::directory(&directory, &["--stack", &format!("{STACK},queue=0")]);
        // Another queue of the same interface: the socket can be opened, but the program cannot be attached.
        for mode in ["", ",mode=native", ",mode=generic"] {
            let stack = format!("{STACK},queue=1{mode}");
            let text = complaint_behind(&[], directory.to_str().unwrap(), &stack);
            let expected =
                "af_xdp:mill0: the interface has a program already: \"mill_steering\", number ";
            assert!(text.contains(expected), "{text}");
            let process = format!(", of process {} (millstream)\n", first.pid().number());
            assert!(text.ends_with(&process), "{text}");
        }
        assert!(is_steered());
    });
}

#[test]
fn a_lack_of_memory_is_reported() {
    between(1500, |_| {
        let site = Site::new();
        let directory = site.path("");
        let directory = directory.to_str().unwrap();
        let check = |before: &[&str], expected: &str| {
            let text = complaint_behind(before, directory, STACK);
            assert_eq!(
                text,
                format!("millstream: [emerg] af_xdp:mill0: {expected}\n")
            );
        };
        let unlocked = ["--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"];
        check(
            &[
                "prlimit",
                "--memlock=65536",
                "setpriv",
                unlocked[0],
                unlocked[1],
            ],
            "the queue can't be had: packet memory is more than may be locked (ulimit -l), and the right CAP_IPC_LOCK \
             is missing, for which there is no limit",
        );
        let text = complaint_of_the_least_memory_that_starts(directory);
        let expected = "there is no packet memory: Cannot allocate memory (os error 12)";
        assert_eq!(
            text,
            format!("millstream: [emerg] af_xdp:mill0: {expected}\n")
        );
        assert!(!is_steered());
        // With CAP_IPC_LOCK no limit applies.
        let server = Server::directory_behind(
            &["prlimit", "--memlock=65536"],
            &site.path(""),
            &["--stack", STACK],
        );
        assert!(is_steered());
        drop(server);
    });
}

#[test]
fn missing_huge_pages_are_reported_unless_they_are_off() {
    between(1500, |_| {
        let site = Site::new();
        let missed = "packet memory is in small pages, there are no large ones";
        for (option, wants) in [
            ("", true),
            (",hugepages=on", true),
            (",hugepages=off", false),
        ] {
            let conf = crate::topology::configure(&site);
            let log_before = site.error_log().len();
            let server = Server::begin(&conf, &["--stack", &format!("{STACK}{option}")]);
            wait_for(|| site.error_log()[log_before..].contains("configuration 1 is in force"));
            let log = &site.error_log()[log_before..];
            // On a machine with such pages there is no warning.
            let is_missed = wants && !has_huge_pages();
            assert_eq!(log.contains(missed), is_missed, "{option}: {log}");
            assert_eq!(
                log.contains("\"sysctl vm.nr_hugepages=64\" makes some"),
                is_missed
            );
            assert!(server.end(Signal::Quit).success());
        }
    });
}

/// Whether there are enough of them for packet memory of any size used here.
fn has_huge_pages() -> bool {
    let text = std::fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap();
    text.trim().parse::<u32>().unwrap() >= 64
}

#[test]
fn in_a_user_namespace_the_reason_of_the_refusal_is_reported() {
    between(1500, |_| {
        let site = Site::new();
        let directory = site.path("");
        let directory = directory.to_str().unwrap();
        // All capabilities, in a namespace without the interface.
        let text = complaint_behind(&["unshare", "--user", "--map-root-user"], directory, STACK);
        let expected = "the queue can't be had: the interface belongs to another user namespace";
        assert!(text.contains(expected), "{text}");
        // And in a network namespace with an interface of its own.
        let (own, port) = (
            "ip link add mill0 type veth peer mill1 && ip link set mill0 up && exec",
            "81",
        );
        // As little memory as may be locked almost everywhere.
        let stack = format!("{STACK},receive-frames=256,transmit-frames=256");
        let command = format!("{own} {BINARY} serve {directory} --port {port} --stack {stack}");
        let words = ["--user", "--map-root-user", "--net", "sh", "-c", &command];
        let output = output_of("unshare", &words);
        let text = String::from_utf8(output.stderr).unwrap();
        let expected = "af_xdp:mill0: the kernel allows no programs for interfaces here: not in a user namespace of one's own";
        assert!(text.contains(expected), "{text}");
        assert_eq!(output.status.code(), Some(1));
    });
}
