//! Statements of nginx's language, construct by construct.

/// The cache.
mod cache;
/// Fields and contents.
mod fields;
/// Limits, and the form of requests.
mod limits;
/// Groups of servers, their health, and which requests they get again.
mod servers;
/// Sessions and challenges.
mod sessions;

use super::translated;

/// The block of a translation that begins with a line, without the indentation of that.
pub(crate) fn block(text: &str, head: &str) -> String {
    let found = text
        .lines()
        .skip_while(|line| line.trim_start() != head)
        .collect::<Vec<_>>();
    let first = found
        .first()
        .unwrap_or_else(|| panic!("no \"{head}\" in\n{text}"));
    let indent = first.len() - first.trim_start().len();
    let end = format!("{}}}", " ".repeat(indent));
    let len = match head.ends_with('{') {
        true => found.iter().position(|line| *line == end).unwrap_or(0) + 1,
        false => 1,
    };
    let lines = found.iter().take(len).map(|line| &line[indent..]);
    lines.collect::<Vec<_>>().join("\n")
}

/// One block of the translation of a text.
pub(crate) fn check(text: &str, head: &str, expected: &str) {
    let lines = expected.trim().lines();
    let expected = lines.map(|line| line.strip_prefix("        ").unwrap_or(line));
    let expected = expected.collect::<Vec<_>>().join("\n");
    assert_eq!(block(&translated(text), head), expected, "{text}");
}

/// A line of the translation, wherever it is.
pub(crate) fn check_line(text: &str, line: &str) {
    check(text, line, line);
}

/// A line that is not there.
pub(crate) fn check_no_line(text: &str, start: &str) {
    let translated = translated(text);
    let mut lines = translated.lines();
    let found = lines.find(|line| line.trim_start().starts_with(start));
    assert_eq!(found, None, "{text}");
}

#[test]
fn the_first_seed_is_a_server_with_one_location() {
    assert_eq!(
        translated(include_str!("../seeds/tempesta.conf")),
        include_str!("../seeds/tempesta.nginx.conf")
    );
}

#[test]
fn without_a_word_there_is_port_80_and_no_way() {
    check(
        "",
        "server {",
        "server {
            listen 0.0.0.0:80 reuseport backlog=131072;
            location / {
                return 444;
            }
        }",
    );
}

#[test]
fn sockets_of_one_protocol_are_one_server() {
    let tls = "tls_certificate /c.pem; tls_certificate_key /k.pem; tls_tickets disable;";
    let text = format!("listen 80; listen [::1]:81; listen 443 proto=h2,https; {tls}");
    check(
        &text,
        "server {",
        "server {
            listen 0.0.0.0:80 reuseport backlog=131072;
            listen [::1]:81 reuseport backlog=131072;
            location / {
                return 444;
            }
        }",
    );
    check_line(&text, "listen 0.0.0.0:443 ssl reuseport backlog=131072;");
    check_line(&text, "http2 on;");
    check_line(&text, "ssl_certificate /c.pem;");
    check_line(&text, "ssl_certificate_key /k.pem;");
    check_line(&text, "ssl_session_tickets off;");
    check_no_line(&format!("listen 443 proto=https; {tls}"), "http2");
    let text = tls.replace("disable", "lifetime=7200");
    check_line(
        &format!("listen 443 proto=https; {text}"),
        "ssl_session_timeout 7200s;",
    );
}

#[test]
fn certificates_of_all_vhosts_are_those_of_one_server() {
    let vhost = |name: &str| {
        format!(
            "vhost {name} {{ proxy_pass a; tls_certificate /{name}.pem; tls_certificate_key /{name}.key; }} "
        )
    };
    let text = format!(
        "listen 443 proto=https; tls_tickets secret=\"abc d\" lifetime=60; srv_group a {{ server 10.0.0.1; }}
         {} {} http_chain {{ -> one; }}",
        vhost("one"),
        vhost("two")
    );
    let server = block(&translated(&text), "server {");
    let lines: Vec<&str> = server.lines().map(str::trim).collect();
    let certificates = [
        "ssl_certificate /one.pem;",
        "ssl_certificate_key /one.key;",
        "ssl_certificate /two.pem;",
        "ssl_certificate_key /two.key;",
    ];
    assert_eq!(lines[2..6], certificates, "{server}");
}

#[test]
fn tickets_may_have_a_secret() {
    let tls = "listen 443 proto=https; tls_certificate /c.pem; tls_certificate_key /k.pem;";
    let text = format!("{tls} tls_tickets secret=\"abc d\" lifetime=60;");
    check_line(&text, "ssl_session_ticket_secret \"abc d\";");
    check_no_line(
        &format!("{tls} tls_tickets secret=\"\";"),
        "ssl_session_ticket_secret",
    );
}

#[test]
fn what_concerns_clients_stands_at_the_level_of_all_servers() {
    for (text, line) in [
        ("keepalive_timeout 30;", "keepalive_timeout 30s;"),
        (
            "max_concurrent_streams 9;",
            "http2_max_concurrent_streams 9;",
        ),
        (
            "http_max_header_list_size 4096;",
            "large_client_header_buffers 1 4096;",
        ),
        (
            "frang_limits { client_header_timeout 20; }",
            "client_header_timeout 20s;",
        ),
        (
            "frang_limits { client_body_timeout 010; }",
            "client_body_timeout 10s;",
        ),
        ("frang_limits { }", "client_max_body_size 0;"),
        ("", "client_max_body_size 1073741824;"),
        ("", "access_log off;"),
        ("access_log dmesg;", "access_log /dev/kmsg;"),
        ("", "keepalive_requests 1000000000;"),
        ("", "worker_processes auto;"),
    ] {
        check_line(text, line);
    }
    // No limit there: ours stays.
    check_no_line(
        "frang_limits { client_header_timeout 0; }",
        "client_header_timeout",
    );
    check_no_line(
        "http_max_header_list_size 0;",
        "large_client_header_buffers",
    );
}
