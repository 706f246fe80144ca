//! Which answers may be kept: see `mill_server::variables::purity`.

use crate::site::Site;

#[test]
fn an_answer_is_pure_unless_something_beside_its_key_went_into_it() {
    let check = |directives: &str, request: &str, pure: bool| {
        let directives = format!("open_file_cache max=10; {directives}");
        let site = Site::new(&directives, "map $http_h $by_field { default $arg_a; }");
        assert_eq!(site.is_pure(request), pure, "{directives}\n{request}");
    };
    check("", "GET /a.txt", true);
    check("", "GET /a.txt?x=1", true);
    check("", "GET /dir", true);
    check("location / { return 200 x; }", "GET /", true);
    check(
        "location / { return 200 $uri$args$arg_a$host; }",
        "GET /?a=1",
        true,
    );
    check("location / { return 302 /x; }", "GET /", true);
    check(
        "location / { return 302 /x; }",
        "GET / HTTP/1.0 | -Host",
        false,
    );
    check("location / { return 200 $remote_addr; }", "GET /", false);
    check(
        "location / { return 200 $http_user_agent; }",
        "GET /",
        false,
    );
    check(
        "location / { return 200 $http_accept_encoding; }",
        "GET /",
        true,
    );
    check("location / { return 200 $cookie_a; }", "GET /", false);
    check("location / { return 200 $msec; }", "GET /", false);
    check("location / { return 200 $request_id; }", "GET /", false);
    check("location / { return 200 $by_field; }", "GET /", false);
    check("location / { set $a $uri; return 200 $a; }", "GET /", true);
    check(
        "location / { set $a $remote_addr; return 200 $a; }",
        "GET /",
        false,
    );
    check(
        "location / { if ($http_x) { return 403; } }",
        "GET /a.txt",
        false,
    );
    check(
        "location / { if ($arg_x) { return 403; } }",
        "GET /a.txt",
        true,
    );
    check(
        "location / { if (-f /srv/404.html) { return 403; } }",
        "GET /a.txt",
        false,
    );
    check("allow all;", "GET /a.txt", false);
    check("rewrite ^/x(.*)$ $1 last;", "GET /x/a.txt", true);
    check("try_files $uri /404.html =404;", "GET /a.txt", true);
    check("try_files $uri /404.html =404;", "GET /missing", false);
    check("location / { root /srv/$cookie_a; }", "GET /a.txt", false);
}

#[test]
fn an_answer_that_depends_on_the_local_address_is_impure() {
    let other = "server { listen 127.0.0.2:8123; }";
    let site = Site::new("listen 8123; location / { return 200 x; }", other);
    assert!(!site.is_pure("GET /"));
}
