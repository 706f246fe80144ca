//! Sessions and challenges.

use super::{check, check_line, check_no_line};

#[test]
fn sessions_stick_where_it_is_asked() {
    let sticky = |inside: &str| {
        format!(
            "srv_group a {{ server 10.0.0.1; }} vhost v {{ proxy_pass a; sticky {{ {inside} }} }}
             http_chain {{ -> v; }}"
        )
    };
    check_line(
        &sticky("cookie; sticky_sessions allow_failover;"),
        "sticky cookie __tfw path=/;",
    );
    check_line(
        &sticky(
            "cookie name=s; cookie_options Path=/a Max-Age=5 Domain=b.c Secure HttpOnly; sticky_sessions;",
        ),
        "sticky cookie s path=/a expires=5s domain=b.c secure httponly;",
    );
    check_line(
        &sticky("learn name=sid; sess_lifetime 900;"),
        "sticky learn create=$upstream_cookie_sid lookup=$cookie_sid zone=a.sticky.v:8m timeout=900s;",
    );
    check_line(
        &sticky("cookie; cookie_options Partitioned Priority=High; sticky_sessions;"),
        "sticky cookie __tfw attribute=Priority=High attribute=Partitioned path=/;",
    );
    check_no_line(&sticky("cookie;"), "sticky");
    // A vhost that says nothing takes what is written outside.
    check_line(
        "sticky { cookie name=o; sticky_sessions; } server 10.0.0.1; vhost default { }",
        "sticky cookie o path=/;",
    );
}

#[test]
fn cookies_are_enforced_where_it_is_asked() {
    let site = |sticky: &str| {
        format!(
            "server 10.0.0.1; {sticky} frang_limits {{ http_methods get; }} vhost default {{ }}"
        )
    };
    let age = "attribute=Max-Age=4294967295";
    check_line(
        &site("sticky { cookie enforce; }"),
        &format!("challenge_cookie __tfw max_misses=1 {age};"),
    );
    check_line(
        &site(
            "sticky { cookie name=a-b enforce max_misses=5; sess_lifetime 60; cookie_options Path=/x Secure; }",
        ),
        "challenge_cookie a-b max_misses=5 lifetime=60s attribute=Path=/x attribute=Secure;",
    );
    check_line(
        &site("sticky { cookie enforce; cookie_options max-age=7; }"),
        "challenge_cookie __tfw max_misses=1 attribute=max-age=7;",
    );
    check_line(
        &site("sticky { cookie enforce; secret \"f00\"; }"),
        "challenge_secret f00;",
    );
    check_no_line(
        &site("sticky { cookie enforce; secret \"\"; }"),
        "challenge_secret",
    );
    check_no_line(&site("sticky { cookie; }"), "challenge_");
    // What enforces its cookie has `frang` to say what becomes of others.
    let alone = "server 10.0.0.1; sticky { cookie enforce; } vhost default { }";
    check(
        alone,
        "frang {",
        "frang {\n            action drop;\n        }",
    );
    check_no_line(
        "server 10.0.0.1; sticky { cookie; } vhost default { }",
        "frang",
    );
}

#[test]
fn a_challenge_enforces_its_cookie() {
    let site = |sticky: &str| {
        format!("server 10.0.0.1; sticky {{ {sticky} }} vhost default {{ sticky {{ }} }}")
    };
    let script = "js_challenge delay_min=1000 delay_range=1500";
    let text = site(&format!("cookie; {script};"));
    check_line(
        &text,
        "challenge_cookie __tfw max_misses=0 attribute=Max-Age=4294967295;",
    );
    check_line(
        &text,
        "challenge_script delay_min=1000ms delay_range=1500ms;",
    );
    check_line(
        &site(&format!(
            "cookie enforce; {script} resp_code=200 /etc/c.html;"
        )),
        "challenge_script delay_min=1000ms delay_range=1500ms status=200 page=/etc/c.html;",
    );
    // A cookie of its own has no challenge of others.
    let own = format!(
        "server 10.0.0.1; sticky {{ cookie; {script}; }} vhost default {{ sticky {{ cookie name=o; }} }}"
    );
    check_no_line(&own, "challenge_");
}

#[test]
fn an_enforced_cookie_names_the_session() {
    let text = "srv_group a { server 10.0.0.1; } http_chain { -> v; }";
    let (group, chain) = text.split_at(text.find("http_chain").unwrap());
    let vhost = "vhost v { proxy_pass a; sticky { cookie name=a-b enforce; sticky_sessions allow_failover; sess_lifetime 9; } }";
    check_line(
        &format!("{group}{vhost}{chain}"),
        "sticky learn create=$cookie_a-b lookup=$cookie_a-b zone=a.sticky.v:8m timeout=9s;",
    );
}
