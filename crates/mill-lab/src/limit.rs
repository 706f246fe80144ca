//! Which side was the limit of a trial: a figure of a server means something only if the server was.
//!
//! That a side's CPUs were busy does not make it the limit: others may have used them. A side is named only if its own processes, with
//! the softirq done on its CPUs, used them; CPU time that others took is a verdict of its own.

use crate::record::Figures;
use serde::{Deserialize, Serialize};

/// The limit, and the evidence for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    pub side: Side,
    /// One sentence with figures.
    pub evidence: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The server used up its CPUs and the client did not.
    Server,
    Client,
    /// Both used up theirs, or together those that they share: the figure is of the pair.
    Both,
    Link,
    /// Ephemeral ports or TIME_WAIT.
    Ports,
    /// Listen queues overflowed.
    Backlog,
    /// The server used up its CPUs, which it does with or without work because it looks for packets while it waits.
    Polling,
    /// Nothing was busy: latency, locks, or a fixed rate of requests.
    Nothing,
    /// Other programs, or the hypervisor, took CPU time from a side that did not use up its CPUs itself.
    Foreign,
    /// CPUs were busy, or not measured, and the owner of the work is unknown.
    Unknown,
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
            Self::Foreign => "foreign CPU",
            Self::Unknown => "limit not known",
            Self::Invalid => "invalid",
        }
    }
}

/// Judges by the monitors' figures of the steady part; none for a trial without a load. A server that polls uses its
/// CPUs also while it waits for packets: their use tells nothing.
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
    let seen = (Use::of(figures, "server"), Use::of(figures, "client"));
    let (Some(server), Some(client)) = seen else {
        // Without a load nothing has a limit.
        return figure("requests_per_s").and_then(|_| {
            let evidence = String::from("the CPUs of a side were not seen");
            limit(Side::Unknown, evidence)
        });
    };
    let evidence = format!("{}; {}", server.told("server"), client.told("client"));
    let side = match (server.state(), client.state()) {
        (State::Unknown, _) | (_, State::Unknown) => Side::Unknown,
        (State::Full, State::Full) => Side::Both,
        (State::Full, _) => {
            let unloaded = figure("process_cpu_unloaded.server").unwrap_or(0.0);
            if server_polls || unloaded >= CPU_SPINNING {
                let why = format!(
                    "; the server looks for packets while it waits, and takes {unloaded:.0} % of a CPU without load"
                );
                return limit(Side::Polling, evidence + &why);
            }
            Side::Server
        }
        (_, State::Full) => Side::Client,
        (State::FullTogether, _) | (_, State::FullTogether) => Side::Both,
        (State::Taken, _) | (_, State::Taken) => Side::Foreign,
        _ if figure("tcp.server.listen_overflows").unwrap_or(0.0) > 0.0 => {
            return limit(
                Side::Backlog,
                String::from("the listen queue overflowed while CPUs were idle"),
            );
        }
        _ => Side::Nothing,
    };
    limit(side, evidence)
}

/// What a side's CPUs did, in percent of them.
#[derive(Clone, Copy, Debug)]
struct Use {
    busy: f64,
    /// With its own processes and softirq; None if which those are is not known.
    own: Option<f64>,
    /// With the other side's processes, where the sides share CPUs.
    other_side: Option<f64>,
    /// With processes of neither side, and the hypervisor's.
    others: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Used up by the side itself.
    Full,
    /// Used up by both sides, neither of them alone.
    FullTogether,
    /// Others had a part that the side could have used.
    Taken,
    Unknown,
    Free,
}

impl Use {
    fn of(figures: &Figures, side: &str) -> Option<Self> {
        let class = |class: &str| figures.get(&format!("cpu.{side}.{class}")).copied();
        // A CPU that waits for a disk has time for others.
        let idle = class("idle")? + class("iowait").unwrap_or(0.0);
        Some(Self {
            busy: 100.0 - idle,
            own: class("own"),
            other_side: class("other_side"),
            others: class("others").unwrap_or(0.0) + class("steal").unwrap_or(0.0),
        })
    }

    fn state(self) -> State {
        let is_busy = self.busy >= CPU_BUSY;
        match self.own {
            None if is_busy => State::Unknown,
            Some(own) if is_busy && own >= CPU_OWN => State::Full,
            Some(own) if is_busy && own + self.other_side.unwrap_or(0.0) >= CPU_OWN => {
                State::FullTogether
            }
            // Busy time of no process counts for others too: interrupts of neither side.
            _ if is_busy || self.others >= CPU_TAKEN => State::Taken,
            _ => State::Free,
        }
    }

    /// "the server's CPUs were 99 % busy, 23 % with its own work, 75 % with others'".
    fn told(self, side: &str) -> String {
        let mut text = format!("the {side}'s CPUs were {:.0} % busy", self.busy);
        match self.own {
            Some(own) => text.push_str(&format!(", {own:.0} % with its own work")),
            None => text.push_str(", with whose work is not known"),
        }
        if let Some(other) = self.other_side {
            text.push_str(&format!(", {other:.0} % with the other side's"));
        }
        if self.others >= 1.0 {
            text.push_str(&format!(", {:.0} % with others'", self.others));
        }
        text
    }
}

/// Percent of its CPUs from which they count as used up.
const CPU_BUSY: f64 = 95.0;

/// Percent of its CPUs that a side's own processes and softirq have to use for the side to be called the limit. Below `CPU_BUSY`: the
/// kernel's threads and the lab's own looks at /proc take a few percent of a quiet machine.
pub const CPU_OWN: f64 = 90.0;

/// Percent of a side's CPUs that others may take before the side counts as short of them.
const CPU_TAKEN: f64 = 10.0;

/// Percent of a CPU that only a polling server takes without load.
const CPU_SPINNING: f64 = 50.0;

/// Percent of the link's rate; frame overhead takes the rest.
const LINK_BUSY: f64 = 95.0;

/// Share of the ephemeral range.
const PORTS_BUSY: f64 = 0.95;

/// Share of failed requests from which a closed loop's figure is no longer a server's; RFC 9411 7.1.3.4 allows far
/// less, and reports show the share.
const FAILED_SHARE_MAX: f64 = 0.01;

#[cfg(test)]
mod tests;
