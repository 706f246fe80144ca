//! `network_stack`: a text that mill-device parses, and its place.

use mill_config::config::{LogLevel, NetworkStack};
use mill_config::{Memory, Options, load};

const PATH: &str = "/etc/nginx/nginx.conf";

/// The stack in a configuration; the error's line if it is refused.
fn stack(text: &str) -> Result<Option<NetworkStack>, String> {
    let source = Memory::new().with(PATH, format!("{text}\nevents {{}}"));
    load(&source, &Options::default())
        .map(|loaded| loaded.config.main.network_stack)
        .map_err(|failure| failure.error.line())
}

#[test]
fn arguments_are_joined_as_on_the_command_line() {
    let check = |text: &str, expected: Option<&str>| {
        let found = stack(text).unwrap();
        let found = found.map(|stack| stack.text.display().into_owned());
        assert_eq!(found.as_deref(), expected, "{text}");
    };
    check("", None);
    check("network_stack kernel;", None);
    check("network_stack af_xdp:eth0;", Some("af_xdp:eth0"));
    check(
        "network_stack af_xdp:eth0,profile=wan polling=spin;",
        Some("af_xdp:eth0,profile=wan,polling=spin"),
    );
    check(
        "network_stack tap:ms0 \"address=10.0.0.2/24\"\n  burst=5;",
        Some("tap:ms0,address=10.0.0.2/24,burst=5"),
    );
    // Not the word alone: mill-device will report that this is no device.
    check(
        "network_stack kernel polling=spin;",
        Some("kernel,polling=spin"),
    );
}

#[test]
fn it_occurs_once_outside_all_blocks_and_has_arguments() {
    let check = |text: &str, expected: &str| {
        assert_eq!(stack(text).unwrap_err(), format!("[emerg] {expected}"));
    };
    let stands = "network_stack tap:a;";
    check(
        &format!("{stands}\n{stands}"),
        &format!("\"network_stack\" directive is duplicate in {PATH}:2"),
    );
    check(
        &format!("http {{ {stands} }}"),
        &format!("\"network_stack\" directive is not allowed here in {PATH}:1"),
    );
    check(
        "network_stack;",
        &format!("invalid number of arguments in \"network_stack\" directive in {PATH}:1"),
    );
}

#[test]
fn messages_about_it_show_its_text() {
    let stack = stack("\nnetwork_stack af_xdp:eth0 x=1; # so\n").unwrap();
    let message = stack
        .unwrap()
        .spot
        .diagnostic(LogLevel::Emerg, "\"x\" is no option");
    assert_eq!(
        message.render("millstream"),
        "millstream: [emerg] \"x\" is no option in /etc/nginx/nginx.conf:2\n\
         \x20 2 | network_stack af_xdp:eth0 x=1; # so\n\
         \x20   |               ^^^^^^^^^^^^^^^\n"
    );
}

#[test]
fn equal_texts_are_equal_stacks() {
    let parse = |text: &str| stack(text).unwrap();
    let one = parse("network_stack tap:a,burst=5;");
    assert_eq!(one, parse("\n\nnetwork_stack tap:a burst=5;"));
    assert_ne!(one, parse("network_stack tap:a burst=6;"));
    assert_ne!(one, parse(""));
}
