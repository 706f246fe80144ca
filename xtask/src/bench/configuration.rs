//! The configuration that compared servers get: the tuned static one of the published measurements.

use std::net::SocketAddr;
use std::path::Path;

/// What differs between two measurements, or two servers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'a> {
    /// Holds the pid file and the logs.
    pub(super) run: &'a Path,
    /// Holds what is served.
    pub(super) content: &'a Path,
    pub(super) listen: SocketAddr,
    pub(super) cpu: u16,
    /// After so many the server closes; `None` for never.
    pub(super) requests_per_connection: Option<u32>,
    /// Open at any time.
    pub(super) connections_max: u32,
    pub(super) gzip: bool,
    pub(super) access_log: bool,
}

/// Where connections end by themselves, more than any of them makes.
const REQUESTS_MAX: u32 = 10_000_000;

pub(super) fn text(site: Site<'_>) -> String {
    let run = site.run.display();
    let content = site.content.display();
    let Site {
        listen,
        cpu,
        connections_max,
        ..
    } = site;
    // nginx's masks are binary, the first CPU last.
    let mask = format!("1{}", "0".repeat(usize::from(cpu)));
    let requests = site.requests_per_connection.unwrap_or(REQUESTS_MAX);
    let gzip = if site.gzip { "on" } else { "off" };
    let access_log = if site.access_log {
        format!("{run}/access.log combined")
    } else {
        "off".to_owned()
    };
    // The server's own files besides.
    let descriptors = connections_max + 3616;
    format!(
        "\
daemon off;
master_process on;
worker_processes 1;
worker_cpu_affinity {mask};
worker_rlimit_nofile {descriptors};
pid {run}/pid;
error_log {run}/error.log crit;

events {{
    worker_connections {connections_max};
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
        listen {listen} backlog=65535 deferred reuseport;

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

    use super::{Site, text};

    fn site() -> Site<'static> {
        Site {
            run: Path::new("/r"),
            content: Path::new("/c"),
            listen: ([127, 0, 0, 1], 81).into(),
            cpu: 2,
            requests_per_connection: None,
            connections_max: 16_384,
            gzip: false,
            access_log: false,
        }
    }

    /// Whether the site's configuration holds `line`.
    fn check(site: Site<'_>, line: &str, expected: bool) {
        let held = text(site).lines().any(|held| held.trim() == line);
        assert_eq!(held, expected, "{site:?}: {line}");
    }

    #[test]
    fn a_site_changes_its_own_lines_only() {
        check(site(), "worker_cpu_affinity 100;", true);
        check(site(), "keepalive_requests 10000000;", true);
        check(site(), "worker_connections 16384;", true);
        check(site(), "worker_rlimit_nofile 20000;", true);
        check(site(), "access_log off;", true);
        check(
            site(),
            "listen 127.0.0.1:81 backlog=65535 deferred reuseport;",
            true,
        );
        let fourteen = Site {
            requests_per_connection: Some(14),
            ..site()
        };
        check(fourteen, "keepalive_requests 14;", true);
        let gzip = Site {
            gzip: true,
            ..site()
        };
        check(gzip, "gzip on;", true);
        let logged = Site {
            access_log: true,
            ..site()
        };
        check(logged, "access_log /r/access.log combined;", true);
        check(logged, "gzip on;", false);
    }
}
