//! Which answers are cached, and when they are taken: `proxy_cache_…`, `slice`, `cache_…`.

use std::sync::Arc;
use std::time::Duration;

use mill_config::Text;
use mill_config::config::settings::{
    CacheRules, CacheSettings, CacheValid, NextUpstream, PassCache, PassStore,
};
use mill_config::config::{PassProtocol, Template, Variable};

use crate::proxy::{PATH, config, literal, located, location, refused, remarks};

/// Those of `proxy_pass` in the location `/` with these directives.
fn settings(directives: &str) -> Arc<CacheSettings> {
    Arc::clone(&located(directives).proxy_cache)
}

fn literals(list: &[Template]) -> Vec<String> {
    list.iter().map(literal).collect()
}

#[test]
fn caching_has_the_defaults_of_nginx() {
    let cache = settings("");
    assert_eq!((&cache.cache, &cache.key), (&PassCache::Off, &None));
    assert!(cache.valid.is_empty() && cache.purge.is_empty());
    assert!(cache.bypass.is_empty() && cache.no_cache.is_empty());
    assert_eq!(cache.min_uses, 1);
    assert_eq!(cache.max_range_offset, i64::MAX as u64);
    assert!(!cache.lock && !cache.background_update && !cache.revalidate && cache.convert_head);
    assert_eq!(cache.lock_timeout, Duration::from_secs(5));
    assert_eq!(cache.lock_age, Duration::from_secs(5));
    assert!(!cache.use_stale.contains(NextUpstream::ERROR));
    assert!(!cache.use_stale.contains(NextUpstream::UPDATING));
    assert_eq!(located("").slice.size, 0);
}

#[test]
fn each_protocol_has_the_same_directives() {
    let protocols = [
        PassProtocol::Http,
        PassProtocol::Fastcgi,
        PassProtocol::Uwsgi,
        PassProtocol::Scgi,
    ];
    for protocol in protocols {
        let p = protocol.prefix();
        let location = located(&format!(
            "{p}_cache $arg_z; {p}_cache_key k; {p}_cache_bypass 1 2; {p}_cache_bypass 3; {p}_no_cache 4; {p}_no_cache 5; \
             {p}_cache_purge 6; {p}_cache_valid 1m; {p}_cache_methods POST; {p}_cache_min_uses 2; \
             {p}_cache_max_range_offset 1g; {p}_cache_use_stale error updating; {p}_cache_lock on; \
             {p}_cache_lock_timeout 1ms; {p}_cache_lock_age 2s; {p}_cache_revalidate on; {p}_cache_background_update on;"
        ));
        let cache = location.cache_settings(protocol).expect("it has caches");
        assert!(matches!(cache.cache, PassCache::Evaluated(_)), "{p}");
        assert_eq!(cache.key.as_ref().map(literal).as_deref(), Some("k"), "{p}");
        assert_eq!(literals(&cache.bypass), ["1", "2", "3"], "{p}");
        assert_eq!(literals(&cache.no_cache), ["4", "5"], "{p}");
        assert_eq!(literals(&cache.purge), ["6"], "{p}");
        assert_eq!(cache.valid_for(200), Some(Duration::from_secs(60)), "{p}");
        assert!(cache.takes_method(b"POST"), "{p}");
        assert_eq!(
            (cache.min_uses, cache.max_range_offset),
            (2, 1 << 30),
            "{p}"
        );
        assert!(cache.use_stale.contains(NextUpstream::UPDATING), "{p}");
        assert!(
            cache.lock && cache.revalidate && cache.background_update,
            "{p}"
        );
        assert_eq!(cache.lock_timeout, Duration::from_millis(1), "{p}");
        assert_eq!(cache.lock_age, Duration::from_secs(2), "{p}");
        for other in protocols.into_iter().filter(|other| *other != protocol) {
            let settings = location.cache_settings(other).expect("it has caches");
            assert_eq!((settings.min_uses, &settings.key), (1, &None), "{p}");
        }
    }
    assert!(!settings("proxy_cache_convert_head off;").convert_head);
    assert!(
        located("")
            .cache_settings(PassProtocol::Memcached)
            .is_none()
    );
}

#[test]
fn the_first_entry_of_a_status_tells_how_long_it_is_fresh() {
    let entry = |status, seconds| CacheValid {
        status,
        time: Duration::from_secs(seconds),
    };
    let cache =
        settings("proxy_cache_valid 1m; proxy_cache_valid 404 any 1h; proxy_cache_valid 404 2h;");
    let expected = [
        entry(Some(200), 60),
        entry(Some(301), 60),
        entry(Some(302), 60),
        entry(Some(404), 3600),
        entry(None, 3600),
        entry(Some(404), 7200),
    ];
    assert_eq!(cache.valid, expected);
    let seconds =
        |cache: &CacheSettings, status| cache.valid_for(status).map(|time| time.as_secs());
    assert_eq!(seconds(&cache, 302), Some(60));
    assert_eq!(seconds(&cache, 404), Some(3600));
    assert_eq!(seconds(&cache, 500), Some(3600));
    let some = settings("proxy_cache_valid 100 599 0;");
    assert_eq!(seconds(&some, 100), Some(0));
    assert_eq!(seconds(&some, 200), None);
    assert_eq!(seconds(&settings(""), 200), None);
}

#[test]
fn get_and_head_are_cached_whatever_is_written() {
    let check = |directives: &str, expected: [bool; 4]| {
        let cache = settings(directives);
        let methods = [&b"GET"[..], b"HEAD", b"POST", b"PUT"];
        let taken = methods.map(|method| cache.takes_method(method));
        assert_eq!(taken, expected, "{directives}");
    };
    check("", [true, true, false, false]);
    check("proxy_cache_methods POST;", [true, true, true, false]);
    check("proxy_cache_methods get;", [true, true, false, false]);
    check(
        "proxy_cache_methods GET; proxy_cache_methods POST;",
        [true, true, true, false],
    );
    assert_eq!(
        remarks("server { proxy_cache_methods GET; proxy_cache_methods POST get; }"),
        [format!("[warn] duplicate value \"get\" in {PATH}:1")]
    );
}

#[test]
fn off_means_that_nothing_stale_serves() {
    let check = |directives: &str, failure: NextUpstream, expected: bool| {
        let contains = settings(directives).use_stale.contains(failure);
        assert_eq!(contains, expected, "{directives}");
    };
    let some = "proxy_cache_use_stale timeout http_500; proxy_cache_use_stale updating;";
    check(some, NextUpstream::TIMEOUT, true);
    check(some, NextUpstream::UPDATING, true);
    check(some, NextUpstream::status(500), true);
    check(some, NextUpstream::ERROR, false);
    check(some, NextUpstream::status(502), false);
    check(
        "proxy_cache_use_stale error off;",
        NextUpstream::ERROR,
        false,
    );
    // What another server is tried for is another matter.
    let tried = located("proxy_next_upstream updating http_500; proxy_cache_use_stale http_404;");
    let stale = tried.proxy_cache.use_stale;
    assert!(!stale.contains(NextUpstream::UPDATING) && !stale.contains(NextUpstream::status(500)));
    assert!(
        !tried
            .proxy
            .next_upstream
            .contains(NextUpstream::status(404))
    );
}

#[test]
fn a_block_inherits_each_directive_that_it_does_not_have() {
    let config = config(
        "proxy_cache_path /c keys_zone=z:1m; proxy_cache z; proxy_cache_valid 1m; proxy_cache_bypass a; \
         proxy_cache_methods POST; server { location /same { } location /own { proxy_cache_valid 404 1h; \
         proxy_cache_bypass b; proxy_cache_methods GET; } location /off { proxy_cache off; } \
         location /grpc { grpc_pass 127.0.0.1:1; } location /if { if ($arg_a) { gzip on; } } }",
    );
    let cache = |path: &str| Arc::clone(&location(&config, path).proxy_cache);
    let (same, own) = (cache("/same"), cache("/own"));
    assert_eq!(
        (&same.cache, &own.cache),
        (&PassCache::Zone(0), &PassCache::Zone(0))
    );
    assert!(same.valid_for(200).is_some() && own.valid_for(200).is_none());
    assert_eq!(literals(&own.bypass), ["b"]);
    assert!(same.takes_method(b"POST") && !own.takes_method(b"POST"));
    assert_eq!(cache("/off").cache, PassCache::Off);
    assert_eq!(cache("/grpc").cache, PassCache::Off);
    assert_eq!(cache("/if").cache, PassCache::Zone(0));
}

#[test]
fn a_block_stores_its_answers_or_caches_them() {
    let check = |http: &str, is_cached: bool, is_stored: bool| {
        let config = config(&format!("proxy_cache_path /c keys_zone=z:1m; {http}"));
        let location = location(&config, "/");
        let cached = location.proxy_cache.cache != PassCache::Off;
        let stored = location.proxy.store != PassStore::Off;
        assert_eq!((cached, stored), (is_cached, is_stored), "{http}");
    };
    check("proxy_cache z; server { }", true, false);
    check(
        "proxy_cache z; server { location / { proxy_store on; } }",
        false,
        true,
    );
    check(
        "proxy_store on; server { location / { proxy_cache z; } }",
        true,
        false,
    );
    check(
        "proxy_cache z; server { location / { proxy_store off; } }",
        true,
        false,
    );
    check(
        "proxy_store on; server { location / { proxy_cache off; } }",
        false,
        true,
    );
    check("server { proxy_store off; proxy_cache z; }", true, false);
    check("server { proxy_cache off; proxy_store on; }", false, true);
    let refuse = |directives: &str, expected: &str| {
        let line = refused(&format!("server {{ {directives} }}"));
        assert_eq!(line, format!("[emerg] {expected} in {PATH}:1"));
    };
    refuse(
        "proxy_store on; proxy_cache z;",
        "\"proxy_cache\" directive is incompatible with \"proxy_store\"",
    );
    refuse(
        "scgi_cache z; scgi_store /a$uri;",
        "\"scgi_store\" directive is incompatible with \"scgi_cache\"",
    );
}

#[test]
fn faults_in_caching_are_told_in_the_words_of_nginx() {
    let check = |directives: &str, expected: &str| {
        let line = refused(&format!("server {{ location / {{ {directives} }} }}"));
        assert_eq!(
            line,
            format!("[emerg] {expected} in {PATH}:1"),
            "{directives}"
        );
    };
    check("proxy_cache_valid x;", "invalid time value \"x\"");
    check("proxy_cache_valid 200 1ms;", "invalid time value \"1ms\"");
    for status in ["99", "600", "Any", "2xx", "70000"] {
        let expected = format!("invalid status \"{status}\"");
        check(&format!("proxy_cache_valid {status} 1m;"), &expected);
    }
    check("proxy_cache_methods PUT;", "invalid value \"PUT\"");
    check("proxy_cache_use_stale foo;", "invalid value \"foo\"");
    check(
        "uwsgi_cache_use_stale http_502;",
        "invalid value \"http_502\"",
    );
    let number = "\"proxy_cache_min_uses\" directive invalid number";
    check("proxy_cache_min_uses x;", number);
    let offset = "\"proxy_cache_max_range_offset\" directive invalid value";
    check("proxy_cache_max_range_offset x;", offset);
    let time = "\"scgi_cache_lock_age\" directive invalid value";
    check("scgi_cache_lock_age x;", time);
    for flag in ["lock", "revalidate", "background_update", "convert_head"] {
        let name = format!("proxy_cache_{flag}");
        let expected =
            format!("invalid value \"x\" in \"{name}\" directive, it must be \"on\" or \"off\"");
        check(&format!("{name} x;"), &expected);
    }
    for once in [
        "cache off",
        "cache_key a",
        "cache_lock on",
        "cache_min_uses 1",
    ] {
        let name = once.split(' ').next().expect("there is one");
        let expected = format!("\"proxy_{name}\" directive is duplicate");
        check(&format!("proxy_{once}; proxy_{once};"), &expected);
    }
    check("proxy_cache_key $nosuch;", "unknown \"nosuch\" variable");
    check("slice 1x;", "\"slice\" directive invalid value");
    check("slice 1g;", "\"slice\" directive invalid value");
    let place = "directive is not allowed here";
    check("if ($arg_a) { slice 1m; }", &format!("\"slice\" {place}"));
    check(
        "proxy_cache_path /c keys_zone=z:1m;",
        &format!("\"proxy_cache_path\" {place}"),
    );
    check(
        "fastcgi_cache_convert_head on;",
        "unknown directive \"fastcgi_cache_convert_head\"",
    );
    check("grpc_cache z;", "unknown directive \"grpc_cache\"");
}

#[test]
fn answers_are_cut_into_slices_of_a_size() {
    let config = config("slice 1m; server { location /a { slice 8k; } location /b { slice 0; } }");
    let size = |path: &str| location(&config, path).slice.size;
    assert_eq!((size("/"), size("/a"), size("/b")), (1 << 20, 8 << 10, 0));
}

#[test]
fn rules_tags_and_fields_are_off_unless_they_are_written() {
    let caching = &located("").caching;
    assert_eq!((caching.rules, &caching.status), (CacheRules::Nginx, &None));
    assert!(caching.tags.is_empty() && caching.targeted.is_empty());
    assert_eq!(caching.object_max_bytes, 64 << 20);
    let config = config(
        "cache_rules rfc9111; cache_status 'edge 1'; cache_tags Surrogate-Key Cache-Tag; \
         cache_targeted CDN-Cache-Control; cache_object_max 1g; server { location /off { cache_rules nginx; \
         cache_status off; cache_tags off; cache_targeted off; cache_object_max 0; } }",
    );
    let (on, off) = (location(&config, "/"), location(&config, "/off"));
    let (on, off) = (&on.caching, &off.caching);
    assert_eq!(
        (on.rules, off.rules),
        (CacheRules::Rfc9111, CacheRules::Nginx)
    );
    assert_eq!(on.status.as_deref(), Some(&b"edge 1"[..]));
    assert_eq!(
        on.tags,
        [Text::from("Surrogate-Key"), Text::from("Cache-Tag")]
    );
    assert_eq!(on.targeted, [Text::from("CDN-Cache-Control")]);
    assert_eq!((on.object_max_bytes, off.object_max_bytes), (1 << 30, 0));
    assert!(off.status.is_none() && off.tags.is_empty() && off.targeted.is_empty());
}

#[test]
fn names_of_caches_and_fields_are_checked() {
    let check = |directives: &str, expected: &str| {
        let line = refused(&format!("server {{ {directives} }}"));
        assert_eq!(
            line,
            format!("[emerg] {expected} in {PATH}:1"),
            "{directives}"
        );
    };
    check("cache_rules rfc7234;", "invalid value \"rfc7234\"");
    check("cache_status '';", "invalid name of a cache \"\"");
    check("cache_status 'ä';", "invalid name of a cache \"ä\"");
    let longest = "a".repeat(255);
    located(&format!("cache_status {longest};"));
    check(
        &format!("cache_status {longest}a;"),
        &format!("invalid name of a cache \"{longest}a\""),
    );
    for field in ["''", "'Cache Tag'", "Cache:Tag", "ä"] {
        let expected = format!("invalid name of a field \"{}\"", field.trim_matches('\''));
        check(&format!("cache_tags {field};"), &expected);
        check(&format!("cache_targeted A {field};"), &expected);
    }
    check("cache_tags A off;", "invalid name of a field \"off\"");
    let fields: Vec<String> = (0..17).map(|number| format!("F{number}")).collect();
    located(&format!("cache_tags {};", fields[1..].join(" ")));
    check(
        &format!("cache_tags {};", fields.join(" ")),
        "more than 16 names of fields",
    );
    check(
        "cache_tags A; cache_tags B;",
        "\"cache_tags\" directive is duplicate",
    );
    let offset = "\"cache_object_max\" directive invalid value";
    check("cache_object_max x;", offset);
    assert_eq!(
        remarks("cache_targeted A a;"),
        [format!("[warn] duplicate value \"a\" in {PATH}:1")]
    );
}

#[test]
fn caches_have_their_variables() {
    let check = |name: &str, expected: Variable| {
        assert_eq!(Variable::builtin(name.as_bytes()), Some(expected), "{name}");
    };
    check("upstream_cache_status", Variable::UpstreamCacheStatus);
    check("upstream_cache_key", Variable::UpstreamCacheKey);
    check("upstream_cache_age", Variable::UpstreamCacheAge);
    check("upstream_cache_etag", Variable::UpstreamCacheEtag);
    let modified = Variable::UpstreamCacheLastModified;
    check("upstream_cache_last_modified", modified);
    check("cache_decision", Variable::CacheDecision);
    check("slice_range", Variable::SliceRange);
    assert_eq!(
        refused("server { set $slice_range a; }"),
        format!("[emerg] the duplicate \"slice_range\" variable in {PATH}:1")
    );
}
