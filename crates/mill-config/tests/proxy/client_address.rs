//! The client's address as a proxy in front tells it: `set_real_ip_from` and its like, the PROXY protocol.

use crate::{PATH, located, refused};

#[test]
fn what_tells_the_client_s_address_is_refused_and_not_ignored() {
    let check = |directives: &str, subject: &str| {
        assert_eq!(
            refused(directives),
            format!("[emerg] {subject} is known to nginx, but not to Millstream yet in {PATH}:1"),
            "{directives}"
        );
    };
    let real_ip = [
        ("set_real_ip_from", "10.0.0.0/8"),
        ("real_ip_header", "X-Forwarded-For"),
        ("real_ip_header", "proxy_protocol"),
        ("real_ip_recursive", "on"),
    ];
    for (name, value) in real_ip {
        let subject = format!("directive \"{name}\"");
        check(&format!("{name} {value};"), &subject);
        check(&format!("server {{ {name} {value}; }}"), &subject);
        let location =
            format!("server {{ location / {{ {name} {value}; allow 10.0.0.1; deny all; }} }}");
        check(&location, &subject);
    }
    check(
        "server { listen 80 proxy_protocol; }",
        "the \"proxy_protocol\" parameter",
    );
    for version in ["on", "v1", "v2"] {
        check(
            &format!("server {{ proxy_protocol {version}; }}"),
            "directive \"proxy_protocol\"",
        );
    }
    located("proxy_protocol off;");
}

#[test]
fn faults_in_proxies_are_told_in_the_words_of_nginx() {
    let check = |directives: &str, expected: &str| {
        let line = refused(&format!("server {{ {directives} }}"));
        assert_eq!(
            line,
            format!("[emerg] {expected} in {PATH}:1"),
            "{directives}"
        );
    };
    check(
        "set_real_ip_from all;",
        "host not found in set_real_ip_from \"all\"",
    );
    check(
        "set_real_ip_from 10.0.0.0/33;",
        "host not found in set_real_ip_from \"10.0.0.0/33\"",
    );
    check(
        "real_ip_header A; real_ip_header B;",
        "\"real_ip_header\" directive is duplicate",
    );
    check(
        "real_ip_recursive 1;",
        "invalid value \"1\" in \"real_ip_recursive\" directive, it must be \"on\" or \"off\"",
    );
    check(
        "listen 80 proxy_protocol=1;",
        "invalid parameter \"proxy_protocol=1\"",
    );
}
