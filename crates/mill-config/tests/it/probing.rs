//! `health_check`, `match`, `status_zone`, `millstream_api`.

use std::sync::Arc;
use std::time::Duration;

use mill_config::config::health_check::{GrpcHealth, HeaderCondition, Match};
use mill_config::config::{
    Api, Config, Failover, HealthCheck, HealthCheckKind, Http, Instruction, Location, Template,
    Variable,
};
use mill_config::{Memory, Options, Text, load};

const PATH: &str = "/etc/nginx/nginx.conf";

fn config(http: &str) -> Config {
    let source = Memory::new().with(PATH, format!("events {{}} http {{ {http} }}"));
    match load(&source, &Options::default()) {
        Ok(loaded) => loaded.config,
        Err(failure) => panic!("{}", failure.error.render("nginx")),
    }
}

fn refused(http: &str) -> String {
    let source = Memory::new().with(PATH, format!("events {{}} http {{ {http} }}"));
    match load(&source, &Options::default()) {
        Ok(_) => panic!("{http} is accepted"),
        Err(failure) => failure.error.line(),
    }
}

fn http(config: &Config) -> &Http {
    config.http.as_ref().expect("there is an http block")
}

fn location(config: &Config, path: &str) -> Arc<Location> {
    let server = &http(config).servers[0];
    let found = server.locations.find(path.as_bytes(), &mut Vec::new());
    Arc::clone(found.expect("the location exists"))
}

fn check_of(parameters: &str, more: &str) -> HealthCheck {
    let config = config(&format!(
        "{more} server {{ location / {{ health_check {parameters}; proxy_pass http://127.0.0.1; }} }}"
    ));
    http(&config).probing[0].location.health_checks[0].clone()
}

#[test]
fn a_probe_has_defaults_and_parameters() {
    let plain = check_of("", "");
    assert_eq!(
        (plain.interval, plain.jitter),
        (Duration::from_secs(5), Duration::ZERO)
    );
    assert_eq!((plain.fails, plain.passes, plain.port), (1, 1, None));
    assert_eq!(plain.uri, "/");
    assert!(!plain.mandatory && !plain.persistent && plain.matching.is_none());
    assert_eq!(
        (plain.kind, plain.keepalive_time),
        (HealthCheckKind::Request, None)
    );
    let full = check_of(
        "interval=10 jitter=500ms fails=3 passes=2 uri=/up port=8080 mandatory persistent match=ok keepalive_time=60s",
        "match ok { status 200; }",
    );
    assert_eq!(full.interval, Duration::from_secs(10));
    assert_eq!(full.jitter, Duration::from_millis(500));
    assert_eq!((full.fails, full.passes, full.port), (3, 2, Some(8080)));
    assert_eq!(full.uri, "/up");
    assert!(full.mandatory && full.persistent);
    assert_eq!(
        full.matching.map(|found| found.name.clone()),
        Some(Text::from("ok"))
    );
    assert_eq!(full.keepalive_time, Some(Duration::from_secs(60)));
    assert_eq!(plain.method, "GET");
    assert_eq!(check_of("method=OPTIONS", "").method, "OPTIONS");
    let failing = check_of("failover=503:10:5s failover=500-599:100:1m", "").failovers;
    let expected = [(503..=503, 10, 5), (500..=599, 100, 60)];
    let expected = expected.map(|(statuses, answers, seconds)| Failover {
        statuses,
        answers,
        period: Duration::from_secs(seconds),
    });
    assert_eq!(failing, expected);
    assert_eq!(check_of("type=tcp", "").kind, HealthCheckKind::Tcp);
}

#[test]
fn a_probe_of_grpc_has_a_service_and_a_status() {
    let check_of = |parameters: &str| {
        let config = config(&format!(
            "server {{ location / {{ health_check {parameters}; grpc_pass 127.0.0.1; }} }}"
        ));
        http(&config).probing[0].location.health_checks[0].clone()
    };
    let plain = check_of("type=grpc");
    assert_eq!(plain.kind, HealthCheckKind::Grpc);
    assert_eq!(plain.grpc, GrpcHealth::default());
    let full = check_of("mandatory type=grpc grpc_service=a.B grpc_status=12");
    assert!(full.mandatory);
    assert_eq!(
        (full.grpc.service, full.grpc.accepted_status),
        (Text::from("a.B"), Some(12))
    );
    let refused = |parameters: &str, pass: &str| {
        refused(&format!(
            "server {{ location / {{ health_check {parameters}; {pass}; }} }}"
        ))
    };
    let needs = "\"health_check type=grpc\" requires \"grpc_pass\"";
    let with_proxy = refused("type=grpc", "proxy_pass http://127.0.0.1");
    assert!(with_proxy.contains(needs), "{with_proxy}");
    let without_type = refused("grpc_status=12", "grpc_pass 127.0.0.1");
    assert!(
        without_type.contains("require \"type=grpc\""),
        "{without_type}"
    );
    for status in ["0", "17", "x", ""] {
        let line = refused(
            &format!("type=grpc grpc_status={status}"),
            "grpc_pass 127.0.0.1",
        );
        assert!(line.contains("invalid parameter \"grpc_status="), "{line}");
    }
}

#[test]
fn the_method_of_a_probe_fits_what_it_asks_for() {
    let refused = |parameters: &str| {
        refused(&format!(
            "match text {{ body ~ ok; }} match status {{ status 200; }}
             server {{ location / {{ health_check {parameters}; proxy_pass http://127.0.0.1; }} }}"
        ))
    };
    for method in ["method=", "method=get", "method=CONNECT", "method=A/B"] {
        let line = refused(method);
        assert!(
            line.contains(&format!("invalid parameter \"{method}\"")),
            "{line}"
        );
    }
    let line = refused("type=tcp method=HEAD");
    assert!(line.contains("\"method\" is of requests"), "{line}");
    let line = refused("method=HEAD match=text");
    assert!(line.contains("the answer to HEAD has no content"), "{line}");
    assert_eq!(
        check_of("method=HEAD match=m", "match m { status 200; }").method,
        "HEAD"
    );
}

#[test]
fn locations_that_probe_are_found_wherever_they_stand() {
    let config = config(
        "upstream a { server 127.0.0.1; } server { location /a { location /a/b { proxy_pass http://a; health_check; \
         health_check port=81; } } location @n { proxy_pass http://a; health_check match=later; } location /c { } } \
         match later { require $upstream_status; }",
    );
    let counts: Vec<usize> = http(&config)
        .probing
        .iter()
        .map(|place| place.location.health_checks.len())
        .collect();
    assert_eq!(counts, [2, 1]);
    assert!(
        http(&config)
            .probing
            .iter()
            .all(|place| place.location.pass.is_some())
    );
}

fn matching(entries: &str) -> Arc<Match> {
    let check = check_of("match=m", &format!("match m {{ {entries} }}"));
    check.matching.expect("it is written")
}

#[test]
fn a_match_tests_the_status() {
    let check = |entry: &str, admitted: &[u16], others: &[u16]| {
        let matching = matching(entry);
        assert!(
            admitted
                .iter()
                .all(|&status| matching.admits_status(status)),
            "{entry}"
        );
        assert!(
            !others.iter().any(|&status| matching.admits_status(status)),
            "{entry}"
        );
    };
    check("status 200;", &[200], &[201, 500]);
    check("status ! 500;", &[200, 499, 501], &[500]);
    check("status 200-399;", &[200, 399], &[199, 400]);
    check("status 301-303 307;", &[301, 303, 307], &[304, 306, 308]);
    check("status ! 301 302;", &[300, 303], &[301, 302]);
    check("header A;", &[200, 500], &[]);
}

#[test]
fn a_match_tests_fields_content_and_variables() {
    let matching = matching(
        "header A; header ! B; header C = c; header D != d; header E ~ e; header F !~ f; body !~ \"no such\"; \
         require $upstream_http_a $upstream_status;",
    );
    let names: Vec<String> = matching
        .headers
        .iter()
        .map(|test| test.name.display().into_owned())
        .collect();
    assert_eq!(names, ["A", "B", "C", "D", "E", "F"]);
    let conditions: Vec<&HeaderCondition> = matching
        .headers
        .iter()
        .map(|test| &test.condition)
        .collect();
    let is_c = |value: &Template| value.as_literal() == Some(b"c");
    assert!(matches!(
        conditions[..],
        [
            HeaderCondition::Present,
            HeaderCondition::Absent,
            HeaderCondition::Equal(value),
            HeaderCondition::Unequal(_),
            HeaderCondition::Matches(_),
            HeaderCondition::Differs(_),
        ] if is_c(value)
    ));
    let body = matching.body.as_ref().expect("it is written");
    assert!(body.negated && body.pattern.is_match(b"there is no such page"));
    assert_eq!(
        matching.require,
        [
            Variable::UpstreamHttp(Text::from("a")),
            Variable::UpstreamStatus
        ]
    );
}

#[test]
fn faults_in_probes_are_told() {
    let told = |text: &str, expected: &str| {
        assert_eq!(
            refused(text),
            format!("[emerg] {expected} in {PATH}:1"),
            "{text}"
        );
    };
    let check = |parameters: &str, expected: &str| {
        let location = "proxy_pass http://127.0.0.1;";
        told(
            &format!("server {{ location / {{ {location} health_check {parameters}; }} }}"),
            expected,
        );
    };
    for parameter in [
        "interval=0",
        "interval=x",
        "jitter=x",
        "fails=0",
        "passes=0",
        "uri=a",
        "port=0",
        "port=65536",
        "match=",
        "type=udp",
        "failover=503",
        "failover=503:0:5s",
        "failover=503:3:0",
        "failover=99:3:5s",
        "failover=599-500:3:5s",
        "failover=503:3:5s:1",
        "often",
    ] {
        check(parameter, &format!("invalid parameter \"{parameter}\""));
    }
    check("persistent", "\"persistent\" requires \"mandatory\"");
    check("match=m", "match \"m\" is not found");
    let group = "\"health_check\" requires a directive such as \"proxy_pass\" without variables";
    told("server { location / { health_check; } }", group);
    told(
        "server { location / { health_check; proxy_pass http://$host; } }",
        group,
    );
    let entry = |entry: &str, expected: &str| told(&format!("match m {{ {entry} }}"), expected);
    entry(
        "status;",
        "invalid number of arguments in \"status\" directive",
    );
    entry(
        "status !;",
        "invalid number of arguments in \"status\" directive",
    );
    entry("status 20;", "invalid parameter \"20\"");
    entry("status 300-200;", "invalid parameter \"300-200\"");
    entry(
        "status 200; status 201;",
        "\"status\" directive is duplicate",
    );
    entry(
        "header;",
        "invalid number of arguments in \"header\" directive",
    );
    entry("header A > b;", "invalid parameter \">\"");
    entry("body = a;", "invalid parameter \"=\"");
    entry("body ~ a; body ~ b;", "\"body\" directive is duplicate");
    entry("require uri;", "invalid variable name \"uri\"");
    let without_client = "depends on a client, which a health check does not have";
    for variable in ["$remote_addr", "$arg_a", "$http_host", "$uri", "$status"] {
        let expected = format!("\"{variable}\" {without_client}");
        entry(&format!("require $upstream_status {variable};"), &expected);
        entry(&format!("header A = {variable};"), &expected);
        entry(&format!("header A != {variable};"), &expected);
    }
    entry("send a;", "unknown directive \"send\"");
    told("match m { } match m { }", "duplicate match \"m\"");
}

#[test]
fn zones_count_a_server_a_location_or_a_condition() {
    let config = config(
        "server { status_zone s; location /b { }
                  location /a { status_zone l; if ($arg_a) { status_zone i; }
                                location /a/b { location /a/b/c { status_zone off; location /a/b/c/d { } } } }
                  location /c { status_zone s; if ($arg_a) { } limit_except GET { deny all; } } }",
    );
    let server = &http(&config).servers[0];
    let zones = &http(&config).status_zones;
    let name = |zone: &Option<usize>| zone.map(|zone| zones[zone].display().into_owned());
    assert_eq!(name(&server.location.status_zone).as_deref(), Some("s"));
    let outer = location(&config, "/a");
    assert_eq!(name(&outer.status_zone).as_deref(), Some("l"));
    let [
        Instruction::If {
            location: Some(inner),
            ..
        },
    ] = &outer.instructions[..]
    else {
        panic!("{:?}", outer.instructions);
    };
    assert_eq!(name(&inner.status_zone).as_deref(), Some("i"));
    assert_eq!(location(&config, "/b").status_zone, None);
    for (path, expected) in [("/a/b", Some("l")), ("/a/b/c", None), ("/a/b/c/d", None)] {
        let zone = name(&location(&config, path).status_zone);
        assert_eq!(zone.as_deref(), expected, "{path}");
    }
    let shared = location(&config, "/c");
    assert_eq!(shared.status_zone, server.location.status_zone);
    let limit = shared.limit_except.as_ref().expect("there is one");
    assert_eq!(limit.location.status_zone, shared.status_zone);
    assert_eq!(zones.len(), 3);
}

#[test]
fn the_api_writes_only_where_it_is_told_to() {
    let check = |directives: &str, expected: Option<Api>| {
        let config = config(&format!("server {{ location / {{ {directives} }} }}"));
        assert_eq!(location(&config, "/").api, expected, "{directives}");
    };
    check("millstream_api;", Some(Api { write: false }));
    check("millstream_api write=off;", Some(Api { write: false }));
    check("millstream_api write=on;", Some(Api { write: true }));
    check("millstream_api; proxy_pass http://127.0.0.1;", None);
    check(
        "proxy_pass http://127.0.0.1; millstream_api;",
        Some(Api { write: false }),
    );
    assert_eq!(
        refused("server { location / { millstream_api write=yes; } }"),
        format!("[emerg] invalid parameter \"write=yes\" in {PATH}:1")
    );
}
