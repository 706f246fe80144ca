//! `proxy_cache_path` and its like, and names of caches.

use std::time::Duration;

use mill_config::config::settings::PassCache;
use mill_config::config::{CachePace, CachePath, PassProtocol};

use crate::proxy::{PATH, config, http, literal, location, refused, remarks};

fn only(http_block: &str) -> CachePath {
    let config = config(http_block);
    let [cache] = &http(&config).cache_zones[..] else {
        panic!("{:?}", http(&config).cache_zones);
    };
    CachePath::clone(cache)
}

fn pace(files: u64, sleep_ms: u64, threshold_ms: u64) -> CachePace {
    CachePace {
        files,
        sleep: Duration::from_millis(sleep_ms),
        threshold: Duration::from_millis(threshold_ms),
    }
}

#[test]
fn a_cache_has_the_defaults_of_nginx_and_256_mib_of_memory() {
    let cache = only("proxy_cache_path c/ keys_zone=z:8k;");
    assert_eq!((cache.index, cache.protocol), (0, PassProtocol::Http));
    assert!(cache.path.ends_with(b"/c") && cache.path.starts_with(b"/"));
    assert_eq!((&cache.zone[..], cache.zone_bytes), (&b"z"[..], 8192));
    assert_eq!(cache.memory_bytes, 256 << 20);
    assert_eq!(cache.inactive, Duration::from_secs(600));
    assert_eq!(cache.levels, [0; 3]);
    assert!(cache.on_disk && cache.use_temp_path && !cache.purger);
    assert_eq!((cache.max_size_bytes, cache.min_free_bytes), (None, 0));
    assert_eq!(cache.manager, pace(100, 50, 200));
    assert_eq!(cache.loader, pace(100, 50, 200));
    assert_eq!(cache.purger_pace, pace(10, 50, 50));
}

#[test]
fn each_parameter_is_read_in_any_order() {
    let cache = only(
        "uwsgi_cache_path /c max_size=1g levels=1:2:2 min_free=2m inactive=1M use_temp_path=off memory=2g disk=off \
         manager_files=1 manager_sleep=2ms manager_threshold=3ms loader_files=4 loader_sleep=5ms loader_threshold=6ms \
         purger=on purger_files=7 purger_sleep=8ms purger_threshold=9s keys_zone=two:1m;",
    );
    let expected = CachePath {
        index: 0,
        protocol: PassProtocol::Uwsgi,
        zone: "two".into(),
        zone_bytes: 1 << 20,
        memory_bytes: 2 << 30,
        inactive: Duration::from_secs(30 * 86400),
        path: "/c".into(),
        on_disk: false,
        levels: [1, 2, 2],
        use_temp_path: false,
        max_size_bytes: Some(1 << 30),
        min_free_bytes: 2 << 20,
        manager: pace(1, 2, 3),
        loader: pace(4, 5, 6),
        purger: true,
        purger_pace: pace(7, 8, 9000),
    };
    assert_eq!(cache, expected);
    let levels = |text: &str| only(&format!("proxy_cache_path /c keys_zone=z:8k {text};")).levels;
    assert_eq!(levels("levels="), [0; 3]);
    assert_eq!(levels("levels=2"), [2, 0, 0]);
    // The last of the same name counts.
    let cache = only("proxy_cache_path /c keys_zone=a:8k keys_zone=b:16k;");
    assert_eq!((&cache.zone[..], cache.zone_bytes), (&b"b"[..], 16 << 10));
}

#[test]
fn faults_in_parameters_are_told_in_the_words_of_nginx() {
    let check = |parameters: &str, expected: &str| {
        let line = refused(&format!("fastcgi_cache_path /c {parameters};"));
        assert_eq!(line, format!("[emerg] {expected} in {PATH}:1"), "{line}");
    };
    let must = "\"fastcgi_cache_path\" must have \"keys_zone\" parameter";
    check(
        "",
        "invalid number of arguments in \"fastcgi_cache_path\" directive",
    );
    check("levels=1", must);
    check("keys_zone=:1m", must);
    check("foo", "invalid parameter \"foo\"");
    check("foo=1", "invalid parameter \"foo=1\"");
    check("foo_files=1", "invalid parameter \"foo_files=1\"");
    check("loader_=1", "invalid parameter \"loader_=1\"");
    check("'{}=1'", "invalid parameter \"{}=1\"");
    for zone in ["keys_zone=z", "keys_zone=z:", "keys_zone=z:1g"] {
        check(zone, &format!("invalid keys zone size \"{zone}\""));
    }
    check(
        "keys_zone=z:8191",
        "keys zone \"keys_zone=z:8191\" is too small",
    );
    for levels in [
        "levels=0",
        "levels=3",
        "levels=12",
        "levels=1:",
        "levels=:1",
        "levels=1:1:1:1",
    ] {
        check(levels, &format!("invalid \"levels\" \"{levels}\""));
    }
    for name in ["use_temp_path", "purger", "disk"] {
        check(
            &format!("{name}=On"),
            &format!("invalid {name} value \"{name}=On\", it must be \"on\" or \"off\""),
        );
    }
    for parameter in [
        "inactive=1ms",
        "max_size=x",
        "min_free=",
        "memory=-1",
        "manager_files=1k",
        "manager_sleep=x",
        "manager_threshold=x",
        "loader_files=x",
        "loader_sleep=1M",
        "loader_threshold=x",
        "purger_files=x",
        "purger_sleep=x",
        "purger_threshold=x",
    ] {
        let name = parameter.split('=').next().expect("there is one");
        check(parameter, &format!("invalid {name} value \"{parameter}\""));
    }
}

#[test]
fn a_zone_and_a_directory_belong_to_one_cache() {
    let check = |text: &str, expected: &str| {
        let line = refused(text);
        assert_eq!(line, format!("[emerg] {expected} in {PATH}:1"), "{text}");
    };
    let first = "proxy_cache_path /a keys_zone=z:1m;";
    check(
        &format!("{first} proxy_cache_path /b keys_zone=z:1m;"),
        "duplicate zone \"z\"",
    );
    check(
        &format!("{first} proxy_cache_path /b keys_zone=z:2m;"),
        "the size 2097152 of shared memory zone \"z\" conflicts with already declared size 1048576",
    );
    let other_use = "the shared memory zone \"z\" is already declared for a different use";
    for text in [
        "fastcgi_cache_path /b keys_zone=z:1m;",
        "server { location / { scgi_cache z; } }",
        "upstream u { server 127.0.0.1; zone z 1m; }",
    ] {
        check(&format!("{first} {text}"), other_use);
    }
    let same_path = format!("the same path name \"/a\" used in {PATH}:1 and");
    for text in [
        "proxy_cache_path /a keys_zone=y:1m;",
        "scgi_cache_path /a/ keys_zone=y:1m;",
        "server { client_body_temp_path /a; }",
    ] {
        check(&format!("{first} {text}"), &same_path);
    }
    check(&format!("uwsgi_temp_path /a; {first}"), &same_path);
    config("proxy_temp_path /a; server { fastcgi_temp_path /a; }");
}

#[test]
fn a_cache_may_be_used_before_it_is_defined() {
    let config = config(
        "proxy_cache_path /a keys_zone=a:1m; \
         server { location / { proxy_cache b; } location /a { proxy_cache a; } location /f { fastcgi_cache f; } } \
         fastcgi_cache_path /f keys_zone=f:1m; proxy_cache_path /b keys_zone=b:1m;",
    );
    let caches = &http(&config).cache_zones;
    assert!((caches.iter().enumerate()).all(|(index, cache)| cache.index == index));
    let check = |path: &str, protocol: PassProtocol, zone: &str| {
        let location = location(&config, path);
        let settings = location.cache_settings(protocol).expect("it has caches");
        let PassCache::Zone(index) = settings.cache else {
            panic!("{:?}", settings.cache);
        };
        assert_eq!(caches[index].zone, zone, "{path}");
        assert_eq!(caches[index].protocol, protocol, "{path}");
    };
    check("/", PassProtocol::Http, "b");
    check("/a", PassProtocol::Http, "a");
    check("/f", PassProtocol::Fastcgi, "f");
}

#[test]
fn a_cache_that_nothing_defines_is_refused_where_it_is_used() {
    let check = |text: &str, name: &str| {
        let expected = format!("[emerg] {name} is unknown in {PATH}:3");
        assert_eq!(refused(&format!("\n\n{text}\n")), expected, "{text}");
    };
    check("proxy_cache z;", "\"proxy_cache\" zone \"z\"");
    check(
        "server { location / { fastcgi_cache z; } }",
        "\"fastcgi_cache\" zone \"z\"",
    );
    check(
        "scgi_cache_path /c keys_zone=y:1m; scgi_cache ''; server { scgi_cache off; }",
        "\"scgi_cache\" zone \"\"",
    );
}

#[test]
fn a_name_by_variables_finds_caches_of_its_protocol() {
    let config = config(
        "proxy_cache_path /a keys_zone=a:1m; fastcgi_cache_path /f keys_zone=f:1m; \
         server { location / { proxy_cache $arg_cache; } }",
    );
    match &location(&config, "/").proxy_cache.cache {
        PassCache::Evaluated(template) => assert!(template.as_literal().is_none()),
        other => panic!("{other:?}"),
    }
    let found = |protocol, name: &str| {
        let cache = http(&config).cache_zone(protocol, name.as_bytes());
        cache.map(|cache| cache.index)
    };
    assert_eq!(found(PassProtocol::Http, "a"), Some(0));
    assert_eq!(found(PassProtocol::Fastcgi, "f"), Some(1));
    assert_eq!(found(PassProtocol::Http, "f"), None);
    assert_eq!(found(PassProtocol::Http, "A"), None);
    assert_eq!(found(PassProtocol::Http, ""), None);
}

#[test]
fn what_has_no_effect_is_told_once_for_each_cache() {
    let memory = "\"proxy_cache_path\" directive keeps answers in memory alone";
    let some = "some parameters of \"proxy_cache_path\" have no effect";
    let check = |parameters: &str, notice: &str, unused: &str| {
        let text = format!("proxy_cache_path /c {parameters};");
        assert_eq!(remarks(&text), [format!("[notice] {notice} in {PATH}:1")]);
        assert_eq!(
            crate::proxy::helps(&text),
            [format!("without effect: {unused}")]
        );
    };
    check("keys_zone=z:1m memory=1m disk=off", memory, "\"/c\"");
    check(
        "levels=1:2 keys_zone=z:1m max_size=1g disk=off",
        memory,
        "\"/c\", \"levels=1:2\", \"max_size=1g\"",
    );
    check(
        "keys_zone=z:1m use_temp_path=off purger=on",
        some,
        "\"use_temp_path=off\", \"purger=on\"",
    );
    let all = "levels=1:2 keys_zone=z:1m max_size=1g min_free=1g inactive=1h loader_files=9 loader_sleep=1s";
    assert!(remarks(&format!("proxy_cache_path /c {all};")).is_empty());
}

#[test]
fn a_cache_without_a_key_is_warned_of_once_for_each_protocol() {
    let check = |protocol: &str, rest: &str, expected: &[&str]| {
        let text = format!("{protocol}_cache_path /c keys_zone=z:1m;\n{rest}\n");
        let warnings = remarks(&text)
            .into_iter()
            .filter(|line| line.starts_with("[warn]"));
        let expected = expected
            .iter()
            .map(|said| format!("[warn] {said} in {PATH}:3"));
        assert!(warnings.eq(expected), "{:?}", remarks(&text));
    };
    let missing = "no \"fastcgi_cache_key\" for \"fastcgi_cache\"";
    check(
        "fastcgi",
        "server { location / { fastcgi_cache z; } location /b { fastcgi_cache z; } }",
        &[missing],
    );
    check(
        "fastcgi",
        "server { fastcgi_cache z; fastcgi_cache_key ''; location / { fastcgi_cache_key a; } }",
        &[],
    );
    check("fastcgi", "server { fastcgi_cache off; }", &[]);
    check("proxy", "server { proxy_cache z; }", &[]);
    check(
        "uwsgi",
        "server { location / { if ($arg_a) { } uwsgi_cache $arg_z; } }",
        &["no \"uwsgi_cache_key\" for \"uwsgi_cache\""],
    );
}

#[test]
fn an_empty_key_is_a_key() {
    let config =
        config("proxy_cache_path /c keys_zone=z:1m; server { proxy_cache z; proxy_cache_key ''; }");
    let key = location(&config, "/").proxy_cache.key.clone();
    assert_eq!(literal(&key.expect("it is written")), "");
}
