//! `network_stack` in a configuration, and `--polling`.

use crate::namespace::{in_namespace, output_of};
use crate::server::{STACK, Server, Site, wait_for};
use mill_sys::signal::Signal;

const BINARY: &str = env!("CARGO_BIN_EXE_millstream");
const SERVER: &str = "server { listen 80; }";

/// The stack of most tests, as a directive.
fn directive(more: &str) -> String {
    let words = STACK.replace(',', " ");
    format!("worker_processes 1;\nnetwork_stack {words}{more};")
}

fn is_served(address: &str) -> bool {
    output_of("curl", &["-sSf", &format!("http://{address}/")])
        .status
        .success()
}

#[test]
fn a_configuration_names_the_stack_and_a_reload_leaves_it_as_it_is() {
    in_namespace(|| {
        let site = Site::new();
        std::fs::write(site.path("profile"), "# Ours.\nmsl=1s\nprofile=wan\n").unwrap();
        let conf = site.configure(&directive(" profile=./profile"), SERVER);
        let server = Server::configured(&site, &conf, &["--polling", "interrupt"]);
        assert!(is_served("10.77.0.2"));
        site.configure(&directive(" burst=5"), SERVER);
        server.signal(Signal::Hangup);
        wait_for(|| site.error_log().contains("configuration 2 is in force"));
        let expected = "\"network_stack\" has changed: that takes effect with a restart only";
        assert!(site.error_log().contains(expected));
        // A wrong one is refused like every bad configuration.
        site.configure(&directive(" brust=5"), SERVER);
        server.signal(Signal::Hangup);
        let expected = format!(
            "\"network_stack\" directive: \"brust\" is no option of a stack, did you mean \"burst\"? in {conf}:4"
        );
        wait_for(|| site.error_log().contains(&expected));
        assert!(is_served("10.77.0.2"));
        assert!(server.end(Signal::Quit).success());
    });
}

#[test]
fn a_test_of_the_configuration_tests_the_stack() {
    let site = Site::new();
    std::fs::write(site.path("profile"), "msl=1s\nmsl=2s\n").unwrap();
    let check = |more: &str, expected: &str| {
        let conf = site.configure(&directive(more), "server { listen 10.77.0.2:80; }");
        let output = output_of(BINARY, &["serve", "-t", "-c", &conf]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(expected), "{text}");
        output.status.success()
    };
    // The kernel is not asked to bind an address of the stack.
    assert!(check("", "test is successful"));
    assert!(!check(
        " mtu=5",
        "\"mtu=5\" means nothing: a number from 576 to 65521 is wanted in "
    ));
    let profile = site.path("profile");
    let place = format!("{}:2: \"msl\" stands twice", profile.display());
    assert!(!check(&format!(" profile={}", profile.display()), &place));
}

#[test]
fn the_command_line_takes_precedence_over_the_configuration() {
    in_namespace(|| {
        let site = Site::new();
        let other = "network_stack tap:mill9 address=10.99.0.2/24;\nworker_processes 1;";
        let conf = site.configure(other, SERVER);
        let server = Server::configured(&site, &conf, &["--stack", STACK]);
        assert!(is_served("10.77.0.2"));
        assert!(server.end(Signal::Quit).success());
    });
}

#[test]
fn polling_without_a_stack_is_refused() {
    let check = |arguments: &[&str], expected: &str| {
        let output = output_of(BINARY, arguments);
        assert!(!output.status.success());
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(expected), "{text}");
    };
    let site = Site::new();
    let conf = site.configure("", SERVER);
    let needs = "\"--polling\" sets the polling mode of a stack of our own: it needs \"--stack\"";
    check(&["serve", "--polling", "spin"], needs);
    check(&["wrk", "--polling=spin", "http://a/"], needs);
    let needs = format!("{needs}, or \"network_stack\" in the configuration");
    check(&["serve", "--polling", "spin", "-t", "-c", &conf], &needs);
}
