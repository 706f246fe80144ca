//! Which side was the limit of a trial: a figure of a server means something only if the server was.

use crate::record::Figures;
use serde::{Deserialize, Serialize};

/// The word, and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    pub side: Side,
    /// One sentence with figures.
    pub evidence: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The server's CPUs were busy and the client's were not.
    Server,
    Client,
    /// Both sides' CPUs were busy: the figure is of the pair.
    Both,
    Link,
    /// Ephemeral ports or TIME_WAIT.
    Ports,
    /// Listen queues overflowed.
    Backlog,
    /// The server's CPUs were busy, which they are with or without work because it looks for packets while it waits.
    Polling,
    /// Nothing was busy: latency, locks, or a rate that was asked for.
    Nothing,
    /// The figures are no good: errors, too few connections.
    Invalid,
}

impl Side {
    pub fn word(self) -> &'static str {
        match self {
            Self::Server => "server-bound",
            Self::Client => "client-bound",
            Self::Both => "both sides busy",
            Self::Link => "link-bound",
            Self::Ports => "port-bound",
            Self::Backlog => "backlog-bound",
            Self::Polling => "server polls",
            Self::Nothing => "not saturated",
            Self::Invalid => "invalid",
        }
    }
}

/// Judges by what the monitors saw in the steady part; none if they saw too little. A server that polls looks for packets while it
/// waits for them: that its CPUs are busy tells nothing.
pub fn judge(figures: &Figures, server_polls: bool) -> Option<Limit> {
    let figure = |name: &str| figures.get(name).copied();
    let limit = |side, evidence| Some(Limit { side, evidence });
    let failed = figure("failed_share").unwrap_or(0.0);
    if failed > FAILED_SHARE_MAX {
        return limit(
            Side::Invalid,
            format!("{:.2} % of the requests failed", failed * 100.0),
        );
    }
    if let Some(percent) = figure("interface.server.utilisation_percent")
        && percent >= LINK_BUSY
    {
        return limit(Side::Link, format!("the link was used to {percent:.1} %"));
    }
    if let Some(share) = figure("ports_share")
        && share >= PORTS_BUSY
    {
        return limit(
            Side::Ports,
            format!("{:.0} % of the client's ports were taken", share * 100.0),
        );
    }
    let server = 100.0 - figure("cpu.server.idle")?;
    let client = 100.0 - figure("cpu.client.idle")?;
    let evidence = format!("CPUs of the server {server:.0} % busy, of the client {client:.0} %");
    let unloaded = figure("process_cpu_unloaded.server").unwrap_or(0.0);
    let tells_nothing = server_polls || unloaded >= CPU_SPINNING;
    if tells_nothing && server >= CPU_BUSY && client < CPU_BUSY {
        let why = format!(
            "; the server looks for packets while it waits, and takes {unloaded:.0} % of a CPU without load"
        );
        return limit(Side::Polling, evidence + &why);
    }
    match (server >= CPU_BUSY, client >= CPU_BUSY) {
        (true, false) => limit(Side::Server, evidence),
        (false, true) => limit(Side::Client, evidence),
        (true, true) => limit(Side::Both, evidence),
        (false, false) if figure("tcp.server.listen_overflows").unwrap_or(0.0) > 0.0 => limit(
            Side::Backlog,
            String::from("the listen queue overflowed while CPUs were idle"),
        ),
        (false, false) => limit(Side::Nothing, evidence),
    }
}

/// Percent of its CPUs from which a side counts as saturated.
const CPU_BUSY: f64 = 95.0;

/// Percent of a CPU that nobody takes without load but who looks for packets without end.
const CPU_SPINNING: f64 = 50.0;

/// Percent of the link's rate; frame overhead takes the rest.
const LINK_BUSY: f64 = 95.0;

/// Share of the ephemeral range.
const PORTS_BUSY: f64 = 0.95;

/// Share of requests from which a closed loop's figure is not a server's any more; RFC 9411 7.1.3.4 asks for far less, and reports show
/// the share.
const FAILED_SHARE_MAX: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(figures: &[(&str, f64)], expected: Option<Side>) {
        let figures = figures
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect();
        assert_eq!(
            judge(&figures, false).map(|limit| limit.side),
            expected,
            "{figures:?}"
        );
    }

    #[test]
    fn the_busy_side_is_the_limit() {
        let idle = |server, client| [("cpu.server.idle", server), ("cpu.client.idle", client)];
        check(&idle(0.5, 40.0), Some(Side::Server));
        check(&idle(40.0, 5.0), Some(Side::Client));
        check(&idle(40.0, 5.1), Some(Side::Nothing));
        check(&idle(1.0, 1.0), Some(Side::Both));
        check(&[], None);
    }

    #[test]
    fn a_server_that_polls_is_not_known_to_be_the_limit() {
        let check = |unloaded: f64, polls: bool, idle: [f64; 2], expected: Side| {
            let figures = [
                ("process_cpu_unloaded.server", unloaded),
                ("cpu.server.idle", idle[0]),
                ("cpu.client.idle", idle[1]),
            ];
            let figures = figures.map(|(name, value)| (name.to_owned(), value)).into();
            let side = judge(&figures, polls).map(|limit| limit.side);
            assert_eq!(side, Some(expected), "{figures:?} {polls}");
        };
        check(99.0, false, [0.0, 40.0], Side::Polling);
        check(50.0, false, [5.0, 5.1], Side::Polling);
        check(49.9, false, [0.0, 40.0], Side::Server);
        check(0.0, true, [0.0, 40.0], Side::Polling);
        check(99.0, true, [0.0, 5.0], Side::Both);
        check(99.0, true, [5.1, 40.0], Side::Nothing);
        check(99.0, true, [5.1, 5.0], Side::Client);
    }

    #[test]
    fn a_full_link_is_said_before_busy_cpus() {
        let full = ("interface.server.utilisation_percent", 97.0);
        check(
            &[full, ("cpu.server.idle", 0.0), ("cpu.client.idle", 50.0)],
            Some(Side::Link),
        );
    }

    #[test]
    fn failures_make_a_figure_invalid() {
        check(&[("failed_share", 0.2)], Some(Side::Invalid));
    }
}
