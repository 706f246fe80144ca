//! Many clients that ask for one thing at a time, which the cache does not have, or not any more.

use super::{Figures, Rules, ask};
use crate::server::Server;

const HOT: &str = "GET /hot HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n";

fn crowd(server: &Server, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let host = format!("203.0.{}.{}", number / 250 % 250, 1 + number % 250);
        let _client = ask(server, &host, number, HOT);
    }
}

const ZONE: &str = "proxy_cache_path /cache keys_zone=one:1m memory=8m;";

const UNDEFENDED: Rules = Rules {
    http: ZONE,
    server: "proxy_cache one; location / { proxy_pass http://app; }",
};

fn asked_for_hot(figures: &Figures) -> usize {
    let requests = figures.attacked.seen.requests.borrow();
    requests
        .iter()
        .filter(|request| request.starts_with("GET /hot "))
        .count()
}

#[test]
fn a_crowd_that_finds_nothing_kept_waits_for_one_answer() {
    let defended = Rules {
        http: ZONE,
        server: "proxy_cache one; proxy_cache_lock on; location / { proxy_pass http://app; }",
    };
    let attack = || {
        |server: &Server, step| {
            if step == 100 {
                crowd(server, 0..200);
            }
        }
    };
    let figures = Figures::of(defended, UNDEFENDED, attack);
    assert_eq!(asked_for_hot(&figures), 1);
    let caches = figures.attacked.server.site.caches.iter();
    let waited: u64 = caches.map(|zone| zone.figures().store.waited).sum();
    assert_eq!(waited, 199);
    assert_eq!(figures.attacked.logged("200 HIT"), 199);
    figures.check("a crowd for what is not kept");
}

/// The page is kept for a second: each time it is over, all ask for it until there is a new one.
#[test]
fn a_crowd_that_finds_something_stale_is_given_that() {
    let defended = Rules {
        http: ZONE,
        server: "proxy_cache one; proxy_cache_lock on; proxy_cache_use_stale updating; proxy_cache_background_update on;
                 location / { proxy_pass http://app; }",
    };
    let attack = || |server: &Server, step| crowd(server, step * 10..step * 10 + 10);
    let figures = Figures::of(defended, UNDEFENDED, attack);
    let asked = asked_for_hot(&figures);
    assert!((3..=6).contains(&asked), "{asked}");
    assert!(figures.attacked.logged("200 STALE") + figures.attacked.logged("200 UPDATING") > 0);
    figures.check("a crowd for what is stale");
}
