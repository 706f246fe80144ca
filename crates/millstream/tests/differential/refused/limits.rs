//! `limit_req` and `limit_conn`.

use super::say;
use crate::server::Program;

/// Each in the main context.
const TEXTS: &[&str] = &[
    "http { limit_req_zone $remote_addr zone=a:1m; }",
    "http { limit_req_zone $remote_addr zone=a:1m rate=1r/s sync; }",
    "http { limit_req_zone $remote_addr zone=a:1m sync; }",
    "http { limit_req_zone $remote_addr zone=a:1m nosuch=1; }",
    "http { limit_req_zone $remote_addr rate=1r/s rate=2r/s; }",
    "http { limit_req_zone $remote_addr zone=a rate=1r/s; }",
    "http { limit_req_zone $remote_addr zone= rate=1r/s; }",
    "http { limit_req_zone $remote_addr zone=:1m rate=1r/s; }",
    "http { limit_req_zone $remote_addr zone=a: rate=1r/s; }",
    "http { limit_req_zone $remote_addr zone=a:x rate=1r/s; }",
    "http { limit_req_zone $remote_addr zone=a:1g rate=1r/s; }",
    "http { limit_req_zone $remote_addr zone=a:32767 rate=1r/s; }",
    "http { limit_req_zone $remote_addr zone=a:31k rate=1r/s; }",
    "http { limit_req_zone $remote_addr zone=a:1m rate=0r/s; }",
    "http { limit_req_zone $remote_addr zone=a:1m rate=0.5r/s; }",
    "http { limit_req_zone $remote_addr zone=a:1m rate=r/s; }",
    "http { limit_req_zone $remote_addr zone=a:1m rate=; }",
    "http { limit_req_zone $remote_addr zone=a:1m rate=1r/h; }",
    "http { limit_req_zone $remote_addr zone=a:1m rate=-1r/m; }",
    "http { limit_req_zone $nosuch zone=a:1m rate=1r/s; }",
    "http { limit_req_zone $ zone=a:1m rate=1r/s; }",
    "http { limit_req_zone a$remote_addr zone=a:1m rate=1r/s; limit_req_zone $uri zone=a:1m rate=1r/s; }",
    "http { limit_req_zone $remote_addr zone=a:1m rate=1r/s; limit_req_zone $remote_addr zone=a:2m rate=1r/s; }",
    "http { limit_req_zone $remote_addr zone=a:1m rate=1r/s; limit_conn_zone $remote_addr zone=a:1m; }",
    "http { limit_conn_zone $remote_addr zone=a:1m; limit_req zone=a; }",
    "http { limit_req; }",
    "http { limit_req a; }",
    "http { limit_req burst=1; }",
    "http { limit_req zone=a; }",
    "http { limit_req zone=; }",
    "http { limit_req zone=a burst=1 nodelay x; }",
    "http { limit_req zone=a burst=0; }",
    "http { limit_req zone=a burst=; }",
    "http { limit_req zone=a burst=1.5; }",
    "http { limit_req zone=a delay=0; }",
    "http { limit_req zone=a delay=x; }",
    "http { limit_req zone=a nodelay=1; }",
    "http { limit_req zone=a Nodelay; }",
    "http { limit_req zone=a; limit_req zone=a burst=2; }",
    "http { limit_req zone=a; limit_req zone=b; limit_req zone=b; }",
    "http { limit_req zone=a; server { limit_req zone=a; location / { limit_req zone=a; limit_req zone=a; } } }",
    "http { server { location / { if ($uri) { limit_req zone=a; } } } }",
    "http { server { location / { limit_except GET { limit_req zone=a; } } } }",
    "http { server { limit_req_zone $remote_addr zone=a:1m rate=1r/s; } }",
    "limit_req zone=a;",
    "http { limit_req_status 399; }",
    "http { limit_req_status 600; }",
    "http { limit_req_status x; }",
    "http { limit_req_status 400; limit_req_status 401; }",
    "http { limit_req_log_level crit; }",
    "http { limit_req_log_level debug; }",
    "http { limit_req_log_level; }",
    "http { limit_req_dry_run maybe; }",
    "http { limit_req_dry_run on; limit_req_dry_run on; }",
    "http { limit_conn_zone $remote_addr; }",
    "http { limit_conn_zone $remote_addr zone=a:1m rate=1r/s; }",
    "http { limit_conn_zone $remote_addr zone=a; }",
    "http { limit_conn_zone $remote_addr zone=:1m; }",
    "http { limit_conn_zone $remote_addr zone=a:x; }",
    "http { limit_conn_zone $remote_addr zone=a:31k; }",
    "http { limit_conn_zone $remote_addr nosuch; }",
    "http { limit_conn_zone $remote_addr zone=a:1m; limit_conn_zone $uri zone=a:1m; }",
    "http { limit_conn_zone $remote_addr zone=a:1m; limit_conn_zone $remote_addr zone=a:2m; }",
    "http { limit_conn_zone $nosuch zone=a:1m; }",
    "http { limit_conn a; }",
    "http { limit_conn a 1; }",
    "http { limit_conn a 0; }",
    "http { limit_conn a x; }",
    "http { limit_conn a 65536; }",
    "http { limit_conn a 1; limit_conn a x; }",
    "http { limit_conn a 1; limit_conn a 2; }",
    "http { limit_conn_status 200; }",
    "http { limit_conn_log_level emerg; }",
    "http { limit_conn_dry_run 1; }",
    "http { server { location / { if ($uri) { limit_conn a 1; } } } }",
    "stream { limit_conn_zone $remote_addr zone=:1m; }",
    "stream { limit_conn_zone $remote_addr zone=a:1m; limit_conn_zone $remote_addr zone=a:2m; }",
    "stream { limit_conn a 1; limit_conn a x; }",
    "stream { limit_conn_status 503; }",
    "stream { limit_req_zone $remote_addr zone=a:1m rate=1r/s; }",
    // And some that are taken.
    "http { limit_req_zone $remote_addr zone=a:32k rate=1; limit_req_zone $uri zone=b:1M rate=30r/m; server { listen 1; limit_req zone=a; limit_req zone=b burst=1 delay=2; } }",
    "http { limit_req zone=a nodelay burst=1; limit_req_zone $remote_addr rate=1r/s zone=a:32k; server { listen 1; limit_req_status 400; } }",
    "http { limit_conn a 65535; limit_conn_zone $remote_addr$uri zone=a:32k; limit_conn_status 599; limit_conn_log_level INFO; server { listen 1; } }",
];

#[test]
fn limits_are_refused_in_the_words_of_nginx() {
    let module = crate::stream::load_module();
    let all = |program| say(program, &module, TEXTS);
    let (nginx, millstream) = (all(Program::Nginx), all(Program::Millstream));
    let pairs = nginx.iter().zip(&millstream);
    // Where nginx does not tell a place, Millstream does.
    let is_same = |expected: &str, got: &str| {
        got == expected || got.strip_suffix(" in CONF:2") == Some(expected)
    };
    let differing = pairs.filter(|((_, expected), (_, got))| {
        expected.len() != got.len()
            || !expected
                .iter()
                .zip(got)
                .all(|(expected, got)| is_same(expected, got))
    });
    let shown: Vec<String> = differing
        .map(|(expected, got)| format!("nginx: {expected:?}\nMillstream: {got:?}"))
        .collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    let taken = nginx.iter().filter(|(_, said)| said.is_empty());
    assert_eq!(taken.count(), 3);
}
