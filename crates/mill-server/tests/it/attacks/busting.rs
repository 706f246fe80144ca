//! Requests that a cache has no answer for: the same page under ever new keys.

use super::{Figures, Rules, ask};
use crate::server::Server;
use mill_server::cache::CacheOutcome;

/// A thousand requests a second, from as many addresses, with the target and the field that a number gives.
fn bust(
    target: impl Fn(usize) -> String,
    field: impl Fn(usize) -> String,
) -> impl FnMut(&Server, usize) {
    move |server, step| {
        for number in step * 10..step * 10 + 10 {
            let (target, field) = (target(number), field(number));
            let request = format!(
                "GET {target} HTTP/1.1\r\nHost: shop.example\r\n{field}Connection: close\r\n\r\n"
            );
            let host = format!("203.0.{}.{}", number / 250, 1 + number % 250);
            let _client = ask(server, &host, number, &request);
        }
    }
}

const ZONE: &str = "proxy_cache_path /cache keys_zone=one:1m memory=8m;";

const UNDEFENDED: Rules = Rules {
    http: ZONE,
    server: "proxy_cache one; location / { proxy_pass http://app; }",
};

/// Nearly all were hits, and the log says so.
#[track_caller]
fn assert_hits(figures: &Figures) {
    let scene = &figures.attacked;
    let caches = scene.server.site.caches.iter();
    let hits: u64 = caches
        .map(|zone| zone.figures().of(CacheOutcome::Hit).responses)
        .sum();
    assert!(hits >= 4900, "{hits} of 5000");
    assert!(scene.logged("200 HIT") >= 4900);
    let asked = scene.seen.requests.borrow().len();
    assert!(asked < 500, "the origin was asked {asked} times");
}

#[test]
fn new_arguments_are_not_new_pages() {
    let defended = Rules {
        http: ZONE,
        server: "proxy_cache one; location / { proxy_pass http://app; proxy_cache_key $scheme$host$uri; proxy_cache_lock on; }",
    };
    let attack = || bust(|number| format!("/page?{number}"), |_| String::new());
    let figures = Figures::of(defended, UNDEFENDED, attack);
    assert_hits(&figures);
    figures.check("new arguments");
}

/// Where arguments matter, what can be limited is how many requests with arguments there are.
#[test]
fn requests_with_arguments_have_a_limit_of_their_own() {
    let defended = Rules {
        http: "proxy_cache_path /cache keys_zone=one:1m memory=8m;
               map $is_args $searching { '' ''; default all; }
               limit_req_zone $searching zone=searches:1m rate=60r/s;",
        server: "proxy_cache one; location / { proxy_pass http://app; limit_req zone=searches burst=3 nodelay; }",
    };
    let attack = || bust(|number| format!("/search?{number}"), |_| String::new());
    let figures = Figures::of(defended, UNDEFENDED, attack);
    let server = &figures.attacked.server;
    assert!(server.counters().limit_req_rejected > 4600);
    assert!(server.has_logged("by zone \"searches\""));
    figures.check("new arguments that matter");
}

#[test]
fn new_languages_are_not_new_pages() {
    let defended = Rules {
        http: "proxy_cache_path /cache keys_zone=one:1m memory=8m;
               map $http_accept_language $language { ~^de de; default en; }",
        server: "proxy_cache one; location / {
                     proxy_pass http://app; proxy_set_header Accept-Language $language; proxy_set_header Host $host;
                     proxy_cache_key $scheme$host$uri$language; proxy_ignore_headers Vary; proxy_cache_lock on;
                 }",
    };
    let field = |number| format!("Accept-Language: x-{number}\r\n");
    let attack = || bust(|_| String::from("/words/a"), field);
    let figures = Figures::of(defended, UNDEFENDED, attack);
    assert_hits(&figures);
    figures.check("new values of what Vary names");
}

/// A cache keeps whole answers, and cuts ranges out of them itself. A key with the range makes it keep each one.
#[test]
fn new_ranges_are_not_new_pages() {
    let undefended = Rules {
        http: ZONE,
        server: "proxy_cache one; location / {
                     proxy_pass http://app; proxy_set_header Host $host; proxy_set_header Range $http_range;
                     proxy_cache_key $scheme$host$uri$http_range;
                 }",
    };
    let defended = Rules {
        http: ZONE,
        server: "proxy_cache one; location / { proxy_pass http://app; proxy_cache_lock on; max_ranges 1; }",
    };
    let field = |number| format!("Range: bytes=0-0,{number}-{number}\r\n");
    let attack = || bust(|_| String::from("/page"), field);
    let figures = Figures::of(defended, undefended, attack);
    assert_hits(&figures);
    let requests = figures.attacked.seen.requests.borrow();
    assert!(requests.iter().all(|request| !request.contains("Range")));
    drop(requests);
    figures.check("new ranges");
}
