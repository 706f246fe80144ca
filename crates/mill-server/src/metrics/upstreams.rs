//! Groups of servers in the text format of Prometheus: families `millstream_upstream_…`, with the labels `upstream` and `server`.

use super::families::{Families, escaped};
use crate::upstreams::Upstreams;
use mill_config::config::upstream::ResponseTime;
use mill_runtime::time::Instant;
use mill_upstream::group::Group;
use mill_upstream::peer::load::PeerCounts;
use mill_upstream::peer::{Peer, PeerState};
use std::sync::Arc;

/// Appends all groups; nothing if there are none.
pub(super) fn render(groups: &Upstreams, now: Instant, out: &mut String) {
    let groups: Vec<&Arc<Group>> = groups.iter().collect();
    if groups.is_empty() {
        return;
    }
    let mut families = Families {
        prefix: "millstream_upstream_",
        out,
    };
    let help = "Idle connections to the group's servers.";
    families.head("idle_connections", "gauge", help);
    for group in &groups {
        let (name, idle) = (escaped(&group.label()), group.idle_connections());
        families.line(format_args!(
            "idle_connections{{upstream=\"{name}\"}} {idle}"
        ));
    }
    let servers: Vec<Server> = groups
        .iter()
        .flat_map(|group| servers(group, now))
        .collect();
    for family in &FAMILIES {
        families.head(family.name, family.kind, family.help);
        for server in &servers {
            let (labels, value) = (&server.labels, (family.value)(server));
            families.line(format_args!("{}{{{labels}}} {value}", family.name));
        }
    }
    let help = "Answers of the server, by the class of their status.";
    families.head("responses_total", "counter", help);
    for server in &servers {
        families.classes(&server.labels, server.counts.answers);
    }
    for (name, help, time) in HISTOGRAMS {
        families.head(name, "histogram", help);
        for server in &servers {
            let counts = server.peer.load().latency(time);
            families.histogram(name, &server.labels, &counts);
        }
    }
}

const HISTOGRAMS: [(&str, &str, ResponseTime); 2] = [
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
];

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

const FAMILIES: [Family; 10] = [
    Family {
        name: "up",
        kind: "gauge",
        help: "1 if requests are sent to the server.",
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
        help: "Requests and tunnels that use the server.",
        value: |server| u64::from(server.peer.active()),
    },
    Family {
        name: "requests_total",
        kind: "counter",
        help: "Requests that were sent to the server, each try counted.",
        value: |server| server.counts.requests,
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
