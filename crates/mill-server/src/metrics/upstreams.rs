//! Groups of servers in the text format of Prometheus: families `millstream_upstream_…`, with the labels `upstream` and `server`.

use super::families::{Families, escaped};
use crate::upstreams::Upstreams;
use mill_config::config::upstream::ResponseTime;
use mill_runtime::time::Instant;
use mill_upstream::group::Group;
use mill_upstream::peer::load::PeerCounts;
use mill_upstream::peer::{Peer, PeerState};
use std::sync::Arc;

/// What a group's servers are given.
pub(super) struct Served {
    prefix: &'static str,
    requests: &'static str,
    requests_help: &'static str,
    /// They answer with a status, and are probed.
    is_http: bool,
    times: [(&'static str, &'static str, ResponseTime); 2],
}

/// Requests.
pub(super) const HTTP: Served = Served {
    prefix: "millstream_upstream_",
    requests: "requests_total",
    requests_help: "Requests that were sent to the server, each try counted.",
    is_http: true,
    times: [
        (
            "header_seconds",
            "Time until the head of an answer.",
            ResponseTime::Header,
        ),
        (
            "response_seconds",
            "Time until the end of an answer.",
            ResponseTime::LastByte,
        ),
    ],
};

/// Connections of `stream`.
pub(super) const STREAM: Served = Served {
    prefix: "millstream_stream_upstream_",
    requests: "connections_total",
    requests_help: "Connections that were opened to the server, each try counted.",
    is_http: false,
    times: [
        (
            "connect_seconds",
            "Time until the server has accepted a connection.",
            ResponseTime::Header,
        ),
        (
            "session_seconds",
            "Time until the end of a session.",
            ResponseTime::LastByte,
        ),
    ],
};

/// Appends all groups; nothing if there are none.
pub(super) fn render(groups: &Upstreams, served: &Served, now: Instant, out: &mut String) {
    let groups: Vec<&Arc<Group>> = groups.iter().collect();
    if groups.is_empty() {
        return;
    }
    let prefix = served.prefix;
    let mut families = Families { prefix, out };
    if served.is_http {
        let help = "Idle connections to the group's servers.";
        families.head("idle_connections", "gauge", help);
        for group in &groups {
            let (name, idle) = (escaped(&group.label()), group.idle_connections());
            families.line(format_args!(
                "idle_connections{{upstream=\"{name}\"}} {idle}"
            ));
        }
    }
    let servers: Vec<Server> = groups
        .iter()
        .flat_map(|group| servers(group, now))
        .collect();
    let mut render_family = |name: &str, kind, help, value: fn(&Server) -> u64| {
        families.head(name, kind, help);
        for server in &servers {
            let (labels, value) = (&server.labels, value(server));
            families.line(format_args!("{name}{{{labels}}} {value}"));
        }
    };
    for family in &FAMILIES {
        render_family(family.name, family.kind, family.help, family.value);
    }
    render_family(served.requests, "counter", served.requests_help, |server| {
        server.counts.requests
    });
    if served.is_http {
        for family in &PROBES {
            render_family(family.name, family.kind, family.help, family.value);
        }
        let help = "Answers of the server, by the class of their status.";
        families.head("responses_total", "counter", help);
        for server in &servers {
            families.classes(&server.labels, server.counts.answers);
        }
    }
    for (name, help, time) in served.times {
        families.head(name, "histogram", help);
        for server in &servers {
            let counts = server.peer.load().latency(time);
            families.histogram(name, &server.labels, &counts);
        }
    }
}

/// A server as of now.
struct Server {
    labels: String,
    peer: Arc<Peer>,
    state: PeerState,
    counts: PeerCounts,
}

struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&Server) -> u64,
}

const FAMILIES: [Family; 7] = [
    Family {
        name: "up",
        kind: "gauge",
        help: "1 if the server is used.",
        value: |server| u64::from(server.state == PeerState::Up),
    },
    Family {
        name: "weight",
        kind: "gauge",
        help: "Weight of the server.",
        value: |server| u64::from(server.peer.settings.weight),
    },
    Family {
        name: "active",
        kind: "gauge",
        help: "Requests, tunnels or sessions that use the server.",
        value: |server| u64::from(server.peer.active()),
    },
    Family {
        name: "sent_bytes_total",
        kind: "counter",
        help: "Octets that were sent to the server.",
        value: |server| server.counts.sent_bytes,
    },
    Family {
        name: "received_bytes_total",
        kind: "counter",
        help: "Octets that the server has sent.",
        value: |server| server.counts.received_bytes,
    },
    Family {
        name: "fails_total",
        kind: "counter",
        help: "Tries that failed.",
        value: |server| server.counts.failures,
    },
    Family {
        name: "unavailable_total",
        kind: "counter",
        help: "Times that the server became unavailable because of max_fails.",
        value: |server| server.counts.unavailable,
    },
];

/// Of servers that are probed.
const PROBES: [Family; 2] = [
    Family {
        name: "health_checks_total",
        kind: "counter",
        help: "Health checks of the server.",
        value: |server| server.counts.health_checks.checks,
    },
    Family {
        name: "health_check_fails_total",
        kind: "counter",
        help: "Health checks that did not pass.",
        value: |server| server.counts.health_checks.fails,
    },
];

fn servers(group: &Group, now: Instant) -> Vec<Server> {
    let name = escaped(&group.label());
    let peers = group.peers();
    let all = peers.all().map(|peer| Server {
        labels: format!(
            "upstream=\"{name}\",server=\"{}\"",
            escaped(&peer.name.display())
        ),
        state: peer.state(now),
        counts: peer.load().counts(now),
        peer: Arc::clone(peer),
    });
    all.collect()
}
