//! Why a request went where it did: lines at level debug.

use super::origin::{self, Act, ok};
use super::{OTHER, Proxy, get};

const DIRECTIVES: &str = "
    location = /exact { return 204; }
    location ^~ /static/ { return 204; }
    location /plain/ { return 204; }
    location ~ [.]php$ { return 204; }
    location /named/ { error_page 418 = @app; return 418; }
    location @app { proxy_pass http://app; }";

/// The decisions that the log tells, without what follows the message.
fn decisions(proxy: &mut Proxy, path: &str) -> Vec<String> {
    let before = proxy.server.error_log().len();
    proxy.ask(&get(path));
    let lines = proxy.server.error_log();
    let debug = lines
        .iter()
        .skip(before)
        .filter(|line| line.contains("[debug]"));
    let message = |line: &String| {
        let (_, message) = line.split_once("*").unwrap_or_default();
        let (_, message) = message.split_once(' ').unwrap_or_default();
        let (message, _) = message.split_once(", client: ").unwrap_or_default();
        message.to_owned()
    };
    debug.map(message).collect()
}

fn proxy(directives: &str) -> Proxy {
    let servers = format!("least_conn; server {}; server {OTHER};", super::ORIGIN);
    let directives = format!("{directives} {DIRECTIVES}");
    let mut proxy = Proxy::with_upstream(&servers, &directives, |_, _| vec![Act::Close]);
    let (turn, _) = origin::start(&proxy.server.world, OTHER, |_, _| vec![ok("yes")]);
    proxy.server.add_peer(turn);
    proxy
}

#[test]
fn each_decision_is_one_line_at_level_debug() {
    let mut proxy = proxy("error_log /error.log debug;");
    let mut check = |path: &str, expected: &[&str]| {
        assert_eq!(decisions(&mut proxy, path), expected, "{path}");
    };
    check("/exact", &["location \"/exact\" found as the exact path"]);
    check(
        "/static/a.php",
        &["location \"/static/\" found as the longest prefix, ^~"],
    );
    check(
        "/plain/a",
        &["location \"/plain/\" found as the longest prefix"],
    );
    check(
        "/plain/a.php",
        &["location \"[.]php$\" found by its regular expression"],
    );
    check(
        "/other",
        &["location \"\" found as there is none: the server itself"],
    );
    check(
        "/named/",
        &[
            "location \"/named/\" found as the longest prefix",
            "location \"@app\" found by its name",
            "server 10.0.0.2:80 of \"app\" chosen by least_conn",
            "another server is tried after: upstream prematurely closed connection while reading response header from upstream",
            "server 10.0.0.3:80 of \"app\" chosen by least_conn",
        ],
    );
}

#[test]
fn without_that_level_no_decision_is_told() {
    let mut proxy = proxy("");
    assert_eq!(decisions(&mut proxy, "/named/"), Vec::<String>::new());
    assert!(proxy.server.has_logged("upstream prematurely closed"));
}
