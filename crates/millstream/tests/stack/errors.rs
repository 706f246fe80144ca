//! Errors as users see them: one clear message each.

use crate::namespace::{in_namespace, output_of};
use crate::server::{STACK, Server, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_millstream");

/// The error message of a command that has to fail.
fn complaint(arguments: &[&str]) -> String {
    let output = output_of(BINARY, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn typing_errors_are_reported_with_the_valid_values() {
    let check = |stack: &str, expected: &str| {
        for command in [
            &["serve", "--stack", stack][..],
            &["wrk", "--stack", stack, "http://a/"],
        ] {
            let text = complaint(command);
            let hint = "\"millstream serve --help\" lists the options of a stack.";
            assert_eq!(text, format!("millstream: --stack: {expected}\n{hint}\n"));
        }
    };
    check(
        "ms0",
        "\"ms0\" is no device: a device is written as \"tap:ms0\", \"af_xdp:eth0\", \"memif:/run/mill.sock\" or \"dpdk:0000:03:00.0\"",
    );
    check(
        "tap:ms0,adress=10.77.0.2/24",
        "\"adress\" is no option of a stack, did you mean \"address\"?",
    );
    check(
        "tap:ms0,address=10.77.0.2",
        "\"address=10.77.0.2\" means nothing: an address with the length of its network's prefix, \
         as 10.77.0.2/24 or fd00::2/64, is wanted",
    );
    assert_eq!(
        complaint(&["serve", "--pcap", "x"]),
        "millstream: \"--pcap\" captures the frames of a stack of our own: it needs \"--stack\"\n"
    );
}

#[test]
fn help_lists_all_options_of_a_stack() {
    let output = output_of(BINARY, &["serve", "--help"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for option in mill_device::specification::options::all() {
        assert!(
            text.contains(&format!("  {}=", option.name)),
            "{}",
            option.name
        );
    }
}

#[test]
fn a_busy_name_and_addresses_in_use_are_named() {
    in_namespace(|| {
        let site = Site::new();
        let directory = site.path("");
        let _server = Server::directory(&directory, &["--stack", STACK]);
        let directory = directory.to_str().unwrap();
        let check = |stack: &str, expected: &str| {
            let text = complaint(&["serve", directory, "--port", "81", "--stack", stack]);
            assert_eq!(text, format!("millstream: [emerg] {expected}\n"));
        };
        check(
            "tap:mill0,address=10.78.0.2/24",
            "the TAP device \"mill0\" could not be made: there is an interface \"mill0\" already",
        );
        check(
            "tap:mill1,address=10.77.0.1/24",
            "10.77.0.1 can't be the stack's: mill0 of this machine has it",
        );
        check(
            "tap:mill1,address=10.77.0.3/24,host=10.77.0.1/24",
            "10.77.0.1 can't be the host's: mill0 of this machine has it",
        );
        check(
            "tap:mill1,address=10.78.0.2/24,pcap=/nonexistent/a.pcap",
            "\"/nonexistent/a.pcap\" can't be written: No such file or directory (os error 2)",
        );
    });
}

#[test]
fn missing_rights_are_named() {
    in_namespace(|| {
        let run = |wrapper: &[&str]| {
            let mut all = wrapper.to_vec();
            let port = ["serve", "/tmp", "--port", "8081", "--stack", STACK];
            all.push(BINARY);
            all.extend_from_slice(&port);
            let output = output_of("setpriv", &all);
            assert!(!output.status.success());
            String::from_utf8(output.stderr).unwrap()
        };
        let without = ["--bounding-set=-net_admin", "--inh-caps=-net_admin"];
        assert_eq!(
            run(&without),
            "millstream: [emerg] the TAP device \"mill0\" could not be made: \
             making network devices takes the right CAP_NET_ADMIN, which root has\n"
        );
    });
}
