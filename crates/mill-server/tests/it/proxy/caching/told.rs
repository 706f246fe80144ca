//! What is counted of caches, and told by the API and for Prometheus.

use super::super::origin::{Act, ok, send};
use super::{Cached, content, field, with};
use crate::proxy::get;
use serde_json::{Value, json};

const SITE: &str = "
    location / { proxy_pass http://app; proxy_cache_valid 200 10s; proxy_cache_bypass $arg_b;
                 proxy_cache_use_stale updating; proxy_cache_purge $arg_purge; proxy_cache_key $uri; }
    location /api { proxy_cache off; api write=on; }
    location /m { proxy_cache off; millstream_metrics; }";

fn call(cached: &mut Cached, request: &str) -> Value {
    let answer = cached.ask(request);
    serde_json::from_str(content(&answer)).unwrap_or(Value::Null)
}

fn cache(cached: &mut Cached) -> Value {
    call(cached, &get("/api/9/http/caches/one"))
}

fn responses(cache: &Value) -> Vec<(&str, u64)> {
    let counts = cache.as_object().expect("an object").iter();
    let counts = counts.filter_map(|(name, counts)| {
        let count = counts.get("responses")?.as_u64()?;
        (count > 0).then_some((name.as_str(), count))
    });
    counts.collect()
}

#[test]
fn each_answer_counts_once_by_its_outcome_also_if_a_worker_keeps_it() {
    for workers in [1, 2] {
        let mut cached = Cached::with_workers(workers, SITE, |_, _| vec![ok("0123456789")]);
        let len = cached.ask(&get("/a")).len() as u64;
        for _ in 0..9 {
            cached.ask(&get("/a"));
        }
        cached.ask(&get("/a?b=1"));
        cached.pass(11);
        cached.ask(&get("/a"));
        // The field that says the outcome is as long as the word.
        let hits = (len - 4 + 3) * 9;
        let mut told = cache(&mut cached);
        let size = told["size"].take().as_u64();
        assert!(
            size.is_some_and(|size| (300..2000).contains(&size)),
            "{size:?}"
        );
        let none = json!({ "responses": 0, "bytes": 0 });
        let once = |bytes: u64| json!({ "responses": 1, "bytes": bytes, "responses_written": 1, "bytes_written": bytes });
        let expected = json!({
            "size": null, "max_size": 8 << 20, "cold": false,
            "hit": { "responses": 9, "bytes": hits },
            "stale": none, "updating": none, "revalidated": none,
            "miss": once(len), "expired": once(len - 4 + 7), "bypass": once(len - 4 + 6),
        });
        assert_eq!(told, expected, "{workers} workers");
    }
}

#[test]
fn a_reset_begins_anew_and_takes_nothing_out() {
    let mut cached = Cached::new(SITE, |_, _| vec![ok("x")]);
    for _ in 0..3 {
        cached.outcome("/a");
    }
    assert_eq!(responses(&cache(&mut cached)), [("hit", 2), ("miss", 1)]);
    let all = call(&mut cached, &get("/api/9/http/caches"));
    assert_eq!(all["one"], cache(&mut cached));
    let delete = |path: &str| format!("DELETE {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = cached.ask(&delete("/api/9/http/caches/one"));
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    assert_eq!(responses(&cache(&mut cached)), []);
    assert_eq!(cached.outcome("/a"), "HIT");
    assert_eq!(responses(&cache(&mut cached)), [("hit", 1)]);
    for request in [
        get("/api/9/http/caches/two"),
        delete("/api/9/http/caches/two"),
    ] {
        let refused = call(&mut cached, &request);
        assert_eq!(refused["error"]["code"], "CacheNotFound");
    }
}

#[test]
fn prometheus_gets_what_each_cache_holds_and_did() {
    let mut cached = Cached::new(SITE, |_, request| {
        let fields = match request.contains("/p") {
            true => "Cache-Control: private\r\n",
            false => "",
        };
        vec![with(fields, "x")]
    });
    for path in ["/a", "/a", "/b", "/p", "/b?purge=1"] {
        cached.outcome(path);
    }
    let answer = cached.ask(&get("/m"));
    let lines: Vec<&str> = content(&answer).lines().collect();
    for expected in [
        "# TYPE millstream_cache_objects gauge",
        "millstream_cache_objects{zone=\"one\"} 1",
        "millstream_cache_limit_bytes{zone=\"one\"} 8388608",
        "millstream_cache_filling{zone=\"one\"} 0",
        "millstream_cache_hits_total{zone=\"one\"} 1",
        "millstream_cache_misses_total{zone=\"one\"} 3",
        "millstream_cache_fills_total{zone=\"one\"} 2",
        "millstream_cache_purges_total{zone=\"one\"} 1",
        "millstream_cache_evictions_total{zone=\"one\",reason=\"purged\"} 1",
        "millstream_cache_evictions_total{zone=\"one\",reason=\"room\"} 0",
        "millstream_cache_responses_total{zone=\"one\",outcome=\"miss\"} 3",
        "millstream_cache_responses_total{zone=\"one\",outcome=\"hit\"} 1",
    ] {
        let found = lines.iter().filter(|line| **line == expected).count();
        assert_eq!(found, 1, "{expected}\n{answer}");
    }
}

#[test]
fn a_client_that_goes_before_its_answer_counts_nothing() {
    let late = |_: usize, _: &str| vec![Act::Wait(std::time::Duration::from_secs(3)), ok("x")];
    let mut cached = Cached::new(SITE, late);
    let client = cached.server.connect();
    client.send(get("/a"));
    let elapsed = cached.server.world.elapsed() + std::time::Duration::from_millis(500);
    cached.server.run_to(elapsed);
    client.reset();
    cached.pass(5);
    assert_eq!(responses(&cache(&mut cached)), []);
}

#[test]
fn what_a_server_has_validated_tells_how_long_it_is_fresh_from_now_on() {
    let directives =
        "cache_rules rfc9111; cache_status mill; location / { proxy_pass http://app; }";
    let mut cached = Cached::new(directives, |number, _| {
        vec![match number {
            0 => with("ETag: \"a\"\r\nCache-Control: max-age=5\r\n", "x"),
            _ => send("HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=9\r\n\r\n"),
        }]
    });
    cached.outcome("/a");
    cached.pass(7);
    let answer = cached.ask(&get("/a"));
    let expected = ("mill;fwd=stale;fwd-status=304;ttl=9", "x");
    assert_eq!((field(&answer, "Cache-Status"), content(&answer)), expected);
}

#[test]
fn a_lifetime_is_told_as_it_is_configured_although_nginxs_rules_use_its_last_second_too() {
    for (rules, last) in [("", 10), ("cache_rules rfc9111;", 9)] {
        let directives = format!(
            "{rules} cache_status mill; location / {{ proxy_pass http://app; proxy_cache_valid 200 10s; }}"
        );
        let mut cached = Cached::new(&directives, |_, _| vec![ok("x")]);
        assert_eq!(cached.outcome("/a"), "MISS");
        let mut status = |seconds| {
            cached.pass(seconds);
            let answer = cached.ask(&get("/a"));
            field(&answer, "Cache-Status").to_owned()
        };
        assert_eq!(status(0), "mill;hit;ttl=10", "{rules}");
        assert_eq!(
            status(last),
            format!("mill;hit;ttl={}", 10 - last),
            "{rules}"
        );
        assert_eq!(status(1), "mill;fwd=stale;stored", "{rules}");
    }
}
