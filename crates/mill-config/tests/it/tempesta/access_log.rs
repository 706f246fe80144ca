//! `access_log mmap`, and the rows of nginx's language that it becomes.

use super::{PATH, options};
use mill_config::config::{LogEscape, LogPath};
use mill_config::{Failure, Loaded, Memory, Options, load, tempesta};

const LOGGER: &str = r#"{ "access_log": { "host": "10.0.0.9", "port": 8123, "db_name": "logs", "table_name": "hits",
    "user": "writer", "password": "secret", "max_events": 500, "max_wait_ms": 250 } }"#;

fn source(text: &str, logger: &str) -> Memory {
    let source = Memory::new().with(PATH, text);
    source.with("/etc/tempesta/tfw_logger.json", logger)
}

fn loaded(text: &str, logger: &str) -> Result<Loaded, Box<Failure>> {
    load(&source(text, logger), &options())
}

/// A text of nginx's language.
fn nginx(directive: &str) -> Result<Loaded, Box<Failure>> {
    let mut options = Options::default();
    options.paths.conf = PATH.as_bytes().to_vec();
    let text = format!("events {{}} http {{ server {{ {directive} }} }}");
    load(&Memory::new().with(PATH, text), &options)
}

/// The rows of the first server: their table, its account and times, and the format's index.
fn rows(loaded: &Loaded) -> Vec<(String, String, usize)> {
    let http = loaded.config.http.as_ref().expect("there is one");
    let logs = &http.servers[0].location.log.access_logs;
    let tables = logs.iter().filter_map(|log| match &log.path {
        LogPath::Table(table) => {
            let wait = table.max_wait.as_millis();
            let (user, password) = (table.user.display(), table.password.display());
            let account = format!("{user} {password} {} {wait}", table.max_events);
            assert_eq!(http.log_formats[log.format].escape, LogEscape::Row);
            Some((table.to_string(), account, log.format))
        }
        _ => None,
    });
    tables.collect()
}

#[test]
fn mmap_is_the_table_of_the_loggers_file() {
    let text = "access_log mmap logger_config=/etc/tempesta/tfw_logger.json;";
    let found = loaded(text, LOGGER).unwrap();
    assert!(found.remarks.is_empty(), "{:?}", found.remarks);
    let (table, account, _) = &rows(&found)[0];
    assert_eq!(table, "clickhouse:10.0.0.9:8123/logs.hits");
    assert_eq!(account, "writer secret 500 250");
    // Without a file, that of the distribution; beside it, the kernel's log.
    let text = "access_log dmesg mmap; srv_group g { server 10.0.0.1; } vhost v { proxy_pass g; } http_chain { -> v; }";
    let found = tempesta::nginx_text(&source(text, LOGGER), &options()).unwrap();
    for (line, times) in [
        (
            "access_log clickhouse:/etc/tempesta/tfw_logger.json vhost=;",
            1,
        ),
        (
            "access_log clickhouse:/etc/tempesta/tfw_logger.json vhost=v;",
            1,
        ),
        ("access_log /dev/kmsg;", 2),
    ] {
        assert_eq!(found.matches(line).count(), times, "{line}\n{found}");
    }
}

#[test]
fn what_is_wrong_in_the_loggers_file_has_the_place_of_the_directive() {
    for (logger, message) in [
        ("", "EOF while parsing a value at line 1 column 0 in"),
        ("{}", "no object \"access_log\" in"),
        (r#"{"access_log":{"port":"http"}}"#, "invalid \"port\" in"),
    ] {
        let failure = loaded("\naccess_log mmap;", logger).unwrap_err();
        let line = failure.error.line();
        let expected = format!("[emerg] {message} \"/etc/tempesta/tfw_logger.json\" in {PATH}:2");
        assert_eq!(line, expected);
        assert!(failure.error.help.is_some());
    }
    let text = "access_log mmap logger_config=/none.json;";
    let line = loaded(text, LOGGER).unwrap_err().error.line();
    assert!(line.contains("open() \"/none.json\" failed (2: "), "{line}");
}

#[test]
fn the_port_of_the_other_protocol_is_a_notice() {
    let text = "access_log mmap; srv_group g { server 10.0.0.1; } vhost v { proxy_pass g; } http_chain { -> v; }";
    let logger = r#"{ "access_log": { "host": "localhost", "port": 9000 } }"#;
    let found = loaded(text, logger).unwrap();
    assert_eq!(
        rows(&found)[0].0,
        "clickhouse:localhost:8123/default.access_log"
    );
    let lines: Vec<String> = found.remarks.iter().map(|remark| remark.line()).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("[notice] port 9000 in"), "{lines:?}");
}

#[test]
fn tables_of_nginxs_language() {
    let check = |directive: &str, expected: &[(&str, &str)]| {
        let found = nginx(directive).unwrap_or_else(|failure| panic!("{}", failure.error.line()));
        let found = rows(&found);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(table, account, _)| (table.as_str(), account.as_str()))
            .collect();
        assert_eq!(found, expected, "{directive}");
    };
    check(
        "access_log clickhouse:db.example/logs.hits;",
        &[("clickhouse:db.example:8123/logs.hits", "  1000 100")],
    );
    check(
        "access_log clickhouse:[::1]:8124/a.b user=u password=p=q max_events=1 max_wait=2s if=$arg_x;",
        &[("clickhouse:::1:8124/a.b", "u p=q 1 2000")],
    );
    check("access_log clickhouse:h/a.b; access_log off;", &[]);
    // One format for one host, another one for another.
    let text = "access_log clickhouse:h/a.b vhost=x; access_log clickhouse:h/a.c vhost=x; access_log clickhouse:h/a.d vhost=$host;";
    let formats: Vec<usize> = rows(&nginx(text).unwrap())
        .iter()
        .map(|row| row.2)
        .collect();
    assert!(formats[0] == formats[1] && formats[1] != formats[2]);
}

#[test]
fn tables_that_cannot_be() {
    for (directive, message) in [
        ("access_log clickhouse:;", "invalid table \"clickhouse:\""),
        ("access_log clickhouse:h;", "invalid table"),
        ("access_log clickhouse:h/a;", "invalid table"),
        ("access_log clickhouse:h/a.b.c;", "invalid table"),
        ("access_log clickhouse:h:0/a.b;", "invalid table"),
        ("access_log clickhouse:h:70000/a.b;", "invalid table"),
        ("access_log clickhouse:h/a.`b;", "invalid table"),
        (
            "access_log clickhouse:h/a.b combined;",
            "invalid parameter \"combined\"",
        ),
        (
            "access_log clickhouse:h/a.b buffer=1m;",
            "invalid parameter \"buffer=1m\"",
        ),
        (
            "access_log clickhouse:h/a.b max_events=0;",
            "invalid parameter \"max_events=0\"",
        ),
        (
            "access_log clickhouse:h/a.b max_wait=61s;",
            "invalid parameter \"max_wait=61s\"",
        ),
        (
            "access_log clickhouse:h/a.b \"password=a\nb\";",
            "invalid parameter",
        ),
        (
            "access_log clickhouse:h/a.b vhost=$nosuch;",
            "unknown \"nosuch\" variable",
        ),
    ] {
        let line = nginx(directive).unwrap_err().error.line();
        assert!(line.contains(message), "{directive}: {line}");
    }
}
