//! A topology drawn as text, for `lab show` and reports: the hosts, and the links between them.

use super::{Cpus, Topology, TopologyKind};

/// Columns of the client's side, of the link, and of the server's side: together 78, so that a terminal of 80 and a page
/// hold them.
const CLIENT_WIDTH: usize = 25;
const LINK_WIDTH: usize = 26;
const SERVER_WIDTH: usize = 27;

/// The drawing, lines of at most 78 columns, each with its newline.
pub fn diagram(topology: &Topology) -> String {
    let (client_title, server_title) = titles(topology);
    let server = box_of(
        SERVER_WIDTH,
        &server_title,
        &[
            String::from("the server under test"),
            server_cpus(&topology.cpus),
            String::new(),
        ],
    );
    let client = client_cpus(&topology.cpus);
    let hosts = match topology.kind {
        TopologyKind::Loopback | TopologyKind::Ssh | TopologyKind::Vm => 1,
        TopologyKind::Veth | TopologyKind::Macvlan => topology.clients.unwrap_or(1).max(1),
    };
    let (left, link) = if hosts == 1 {
        let lines = [String::from("clients"), client, String::new()];
        let left = box_of(CLIENT_WIDTH, &client_title, &lines);
        (left, straight_link(topology))
    } else {
        (client_boxes(hosts, &client), gathered_link(topology))
    };
    let server = centred(server, left.len());
    let mut text = String::new();
    for ((left, link), server) in left.iter().zip(&link).zip(&server) {
        text.push_str(format!("{left}{link}{server}").trim_end());
        text.push('\n');
    }
    text
}

fn titles(topology: &Topology) -> (String, String) {
    let remote = topology.remote.as_ref();
    match topology.kind {
        TopologyKind::Loopback => (String::from("this machine"), String::from("this machine")),
        TopologyKind::Veth | TopologyKind::Macvlan => (
            String::from("namespace net0"),
            String::from("server's namespace"),
        ),
        TopologyKind::Ssh => (
            remote.map_or_else(
                || String::from("client host"),
                |remote| remote.client.clone(),
            ),
            remote.map_or_else(
                || String::from("server host"),
                |remote| remote.server.clone(),
            ),
        ),
        TopologyKind::Vm => {
            let is_here = topology.guests == Some(1);
            let client = if is_here { "this machine" } else { "client VM" };
            (String::from(client), String::from("server VM"))
        }
    }
}

/// What the link is, above it.
fn link_name(topology: &Topology) -> String {
    match topology.kind {
        TopologyKind::Loopback => String::from("loopback (lo)"),
        TopologyKind::Veth => String::from("veth pair"),
        TopologyKind::Macvlan => match &topology.interface {
            Some(interface) => format!("macvlan on {interface}"),
            None => String::from("macvlan over veth"),
        },
        TopologyKind::Ssh => match (&topology.interface, &topology.remote) {
            (Some(interface), _) => format!("network, {interface}"),
            (None, Some(remote)) => format!("network, {}", remote.address),
            (None, None) => String::from("network"),
        },
        TopologyKind::Vm => String::from("virtio-net, bridge"),
    }
}

/// What it is like, below it.
fn link_facts(topology: &Topology) -> [String; 2] {
    let queues = topology.queues.map(|queues| match queues {
        1 => String::from("1 queue"),
        more => format!("{more} queues"),
    });
    let mtu = topology.mtu.map(|mtu| format!("MTU {mtu}"));
    let rate = topology
        .rate_gbit
        .map(|rate| format!("{rate} Gbit/s each way"));
    let shape: Vec<String> = [queues, mtu].into_iter().flatten().collect();
    let shape = shape.join(", ");
    match rate {
        Some(rate) => [rate, shape],
        None => [shape, String::new()],
    }
}

fn server_cpus(cpus: &Cpus) -> String {
    match (&cpus.server, cpus.server_count) {
        (Some(list), _) => format!("CPUs {list}"),
        (None, Some(1)) => String::from("1 CPU, the last"),
        (None, Some(count)) => format!("{count} CPUs, from the last"),
        (None, None) => String::from("CPUs: the upper half"),
    }
}

fn client_cpus(cpus: &Cpus) -> String {
    match (&cpus.client, &cpus.server, cpus.server_count) {
        (Some(list), ..) => format!("CPUs {list}"),
        (None, None, None) => String::from("CPUs: the lower half"),
        _ => String::from("CPUs: the others"),
    }
}

/// A box with its title in the upper border.
fn box_of(width: usize, title: &str, lines: &[String]) -> Vec<String> {
    let inner = width - 2;
    let title = fitted(title, inner - 4);
    let rest = inner - 3 - title.chars().count();
    let mut rows = vec![format!("┌─ {title} {}┐", "─".repeat(rest))];
    for (index, line) in lines.iter().enumerate() {
        // The link meets the boxes at the middle line.
        let meets = index == lines.len() / 2;
        let (left, right) = match (meets, width == SERVER_WIDTH) {
            (true, true) => ('┤', '│'),
            (true, false) => ('│', '├'),
            (false, _) => ('│', '│'),
        };
        rows.push(format!(
            "{left} {:<1$}{right}",
            fitted(line, inner - 2),
            inner - 1
        ));
    }
    rows.push(format!("└{}┘", "─".repeat(inner)));
    rows
}

/// The first and the last of several client hosts.
fn client_boxes(hosts: u32, cpus: &str) -> Vec<String> {
    let one = |index: u32| {
        let line = [String::from(cpus)];
        box_of(CLIENT_WIDTH, &format!("namespace net{index}"), &line)
    };
    let between = if hosts > 2 { "⋮" } else { "" };
    let mut rows = one(0);
    rows.push(format!("{between:^CLIENT_WIDTH$}"));
    rows.extend(one(hosts - 1));
    rows
}

/// Beside a box of five rows.
fn straight_link(topology: &Topology) -> Vec<String> {
    let [first, second] = link_facts(topology);
    vec![
        beside("", LINK_WIDTH),
        beside(&link_name(topology), LINK_WIDTH),
        "─".repeat(LINK_WIDTH),
        beside(&first, LINK_WIDTH),
        beside(&second, LINK_WIDTH),
    ]
}

/// Beside two boxes of three rows and one row between them.
fn gathered_link(topology: &Topology) -> Vec<String> {
    let [first, second] = link_facts(topology);
    // Two columns of dashes, and one where the hosts' links meet.
    let rest = LINK_WIDTH - 3;
    vec![
        beside("", LINK_WIDTH),
        format!("──┐{}", beside("", rest)),
        format!("  │{}", beside(&link_name(topology), rest)),
        format!("  ├{}", "─".repeat(rest)),
        format!("  │{}", beside(&first, rest)),
        format!("──┘{}", beside(&second, rest)),
        beside("", LINK_WIDTH),
    ]
}

fn beside(text: &str, width: usize) -> String {
    format!("{:^width$}", fitted(text, width - 2))
}

fn centred(rows: Vec<String>, height: usize) -> Vec<String> {
    let above = height.saturating_sub(rows.len()) / 2;
    let below = height.saturating_sub(rows.len() + above);
    let empty = |count| std::iter::repeat_n(String::new(), count);
    empty(above).chain(rows).chain(empty(below)).collect()
}

fn fitted(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return String::from(text);
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests;
