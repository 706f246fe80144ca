//! The configuration that both servers get: the tuned static one of the published measurements.

use std::path::Path;

use super::case::{Case, Connections};

/// What differs between two servers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// Holds the pid file and the logs.
    pub(super) run: &'a Path,
    /// Holds what is served.
    pub(super) content: &'a Path,
    pub(super) port: u16,
    pub(super) cpu: u16,
}

pub(super) fn text(case: &Case, place: Place<'_>) -> String {
    let run = place.run.display();
    let content = place.content.display();
    let Place { port, cpu, .. } = place;
    // nginx's masks are binary, the first CPU last.
    let mask = format!("1{}", "0".repeat(usize::from(cpu)));
    let requests = match case.connections {
        Connections::OfRequests(count) => count,
        Connections::KeepAlive | Connections::PerRequest => 10_000_000,
    };
    let gzip = if case.gzip { "on" } else { "off" };
    let access_log = if case.access_log {
        format!("{run}/access.log combined")
    } else {
        "off".to_owned()
    };
    format!(
        "\
daemon off;
master_process on;
worker_processes 1;
worker_cpu_affinity {mask};
worker_rlimit_nofile 20000;
pid {run}/pid;
error_log {run}/error.log crit;

events {{
    worker_connections 16384;
    use epoll;
    multi_accept on;
    accept_mutex off;
}}

http {{
    types {{ text/html html; }}
    keepalive_timeout 600;
    keepalive_requests {requests};
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    gzip {gzip};
    access_log {access_log};

    open_file_cache max=1000 inactive=3600s;
    open_file_cache_valid 3600s;
    open_file_cache_min_uses 2;
    open_file_cache_errors off;

    server {{
        listen 127.0.0.1:{port} backlog=65535 deferred reuseport;

        location / {{
            root {content};
        }}
    }}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Place, text};
    use crate::bench::serve::case::full;

    /// Whether the configuration of the case called `name` holds `line`.
    fn check(name: &str, line: &str, expected: bool) {
        let case = full().into_iter().find(|case| case.name == name).unwrap();
        let place = Place {
            run: Path::new("/r"),
            content: Path::new("/c"),
            port: 81,
            cpu: 2,
        };
        let held = text(&case, place).lines().any(|held| held.trim() == line);
        assert_eq!(held, expected, "{name}: {line}");
    }

    #[test]
    fn a_case_changes_its_own_lines_only() {
        check("keep-alive-0", "worker_cpu_affinity 100;", true);
        check("keep-alive-0", "keepalive_requests 10000000;", true);
        check("keep-alive-0", "access_log off;", true);
        check(
            "keep-alive-0",
            "listen 127.0.0.1:81 backlog=65535 deferred reuseport;",
            true,
        );
        check("close-after-14-600", "keepalive_requests 14;", true);
        check("gzip-10k", "gzip on;", true);
        check(
            "log-keep-alive-600",
            "access_log /r/access.log combined;",
            true,
        );
        check("log-keep-alive-600", "gzip on;", false);
    }
}
