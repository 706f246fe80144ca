//! A Millstream network stack below a system or a client: whether it is available here, when its device is ready, and
//! whether the load really used it. Without the last check, a figure of the kernel's stack could appear under our
//! stack.

/// The stack's own counters.
pub(crate) mod counted;

use crate::client;
use crate::host::Host;
use crate::journal::errand;
use crate::monitor::tcp::Tcp;
use crate::needs;
use mill_lab::recipe::{Setup, TopologyKind, Tune};
use mill_lab::record::Figures;
use mill_sys::dpdk::environment;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

/// The part of `--stack` with the source of packets: `af_xdp:ms0` of `af_xdp:ms0,polling=spin`.
fn device(stack: &str) -> (&str, &str) {
    let device = stack.split(',').next().unwrap_or(stack);
    device.split_once(':').unwrap_or((device, ""))
}

/// Whether the load passes through memory, or through a device made for it, and not through the interface of the
/// topology.
pub(crate) fn is_beside_interface(setup: &Setup) -> bool {
    let stacks = [&setup.system.stack, &setup.load.stack];
    stacks
        .map(|stack| device(stack).0)
        .iter()
        .any(|kind| ["memif", "tap"].contains(kind))
}

/// Why a stack is unavailable on this host, as the text of a report's cell; none if it is available, or if only the
/// host itself can tell.
pub(crate) fn unmet(stack: &str, host: &Host) -> Option<String> {
    if stack.is_empty() || matches!(host, Host::Remote(_)) {
        return None;
    }
    let rights = Rights::of_this_process();
    match device(stack).0 {
        "af_xdp" => {
            let protocols = std::fs::read_to_string("/proc/net/protocols").unwrap_or_default();
            rights.lacks_for_xdp(&protocols)
        }
        "tap" if !Path::new("/dev/net/tun").exists() => {
            Some(String::from("not on this machine: needs /dev/net/tun"))
        }
        "tap" => rights.lacks(&[CAP_NET_ADMIN]),
        "dpdk" if stack.split(',').any(|word| word == "bridge=on") => {
            let is_there = needs::program(BRIDGE).is_some();
            (!is_there).then(|| format!("not on this machine: needs {BRIDGE} (dpdk-dev)"))
        }
        "dpdk" => {
            let missing = environment::check().err();
            missing.map(|why| format!("not on this machine: {why}"))
        }
        _ => None,
    }
}

/// The program that carries frames to and from a port of DPDK with `bridge=on`.
const BRIDGE: &str = "dpdk-testpmd";

/// The tuning of a setup. Ports of DPDK don't say that a frame which has not left the machine lacks its checksum, or is longer than
/// the link carries: both ends complete their frames.
pub(crate) fn tuning(setup: &Setup) -> Tune {
    let mut tune = setup.tune.clone();
    let is_dpdk = |stack: &String| device(stack).0 == "dpdk";
    let over_veth = setup.topology.kind == TopologyKind::Veth;
    if over_veth
        && [&setup.system.stack, &setup.load.stack]
            .into_iter()
            .any(is_dpdk)
    {
        for name in ["tx", "tso", "gso"] {
            tune.interface.offloads.insert(String::from(name), false);
        }
    }
    tune
}

/// What stands before the command line of a program that is not changed, to put it on a stack.
pub(crate) fn run_words(
    runner: Option<&str>,
    stack: &str,
    host: &Host,
) -> Result<Vec<String>, String> {
    let binary = client::millstream(runner, host)?;
    Ok([binary.as_str(), "run", "--stack", stack, "--"]
        .map(String::from)
        .to_vec())
}

/// Why `millstream run` can't start programs on this host, as the text of a report's cell; none if it can, or if only the host
/// itself can tell.
pub(crate) fn unmet_runner(runner: Option<&str>, host: &Host) -> Option<String> {
    if matches!(host, Host::Remote(_)) {
        return None;
    }
    let binary = match client::millstream(runner, host) {
        Ok(binary) => needs::program(&binary),
        Err(problem) => return Some(problem),
    };
    let Some(binary) = binary.and_then(|path| path.canonicalize().ok()) else {
        let name = runner.unwrap_or("millstream");
        return Some(format!("not on this machine: needs {name}"));
    };
    let folder = binary.parent().unwrap_or(Path::new("/"));
    let has_library = |folder: &Path| folder.join(LIBRARY).is_file();
    let is_there = has_library(folder) || has_library(&folder.join("../lib"));
    (!is_there).then(|| format!("not on this machine: needs {LIBRARY} beside millstream"))
}

/// What `millstream run` loads into programs.
const LIBRARY: &str = "libmillstream.so";

/// Whether the device is ready, so that no connection begins on the kernel's stack.
pub(crate) fn is_there(stack: &str, host: &Host) -> bool {
    let (kind, name) = device(stack);
    match kind {
        "af_xdp" => shown(name, host).is_some_and(|text| text.contains("xdp")),
        "tap" => shown(name, host).is_some(),
        // The process that connects to the socket makes the other end.
        "memif" if stack.contains("role=master") => Path::new(name).exists(),
        _ => true,
    }
}

/// Whether a connection from a client's host ends on the stack: after the device is up and before its ports are taken
/// over, the kernel accepts connections for a moment, and keeps them. `process` is one of the server's.
pub(crate) fn takes_connections(
    stack: &str,
    client: Option<&Host>,
    process: u32,
    address: &str,
    port: u16,
) -> bool {
    let is_namespace =
        |host: &&Host| matches!(host, Host::Namespace(_)) && device(stack).0 == "af_xdp";
    let Some(client) = client.filter(is_namespace) else {
        return true;
    };
    let Ok(address) = address
        .parse()
        .map(|address| SocketAddr::new(address, port))
    else {
        return true;
    };
    let before = accepted_by_kernel(process);
    let connected =
        client.within(|| TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).map(drop));
    connected.is_ok() && accepted_by_kernel(process) == before
}

/// A SYN that is lost is sent again after a second.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(300);

fn accepted_by_kernel(process: u32) -> Option<u64> {
    let snmp = std::fs::read_to_string(format!("/proc/{process}/net/snmp")).ok()?;
    Tcp::parse(&snmp, "", "")
        .counters
        .get("passive_opens")
        .copied()
}

fn shown(interface: &str, host: &Host) -> Option<String> {
    errand::run(host, &["ip", "-o", "link", "show", "dev", interface], None).ok()
}

/// Evidence that a side's connections were the kernel's although it has a stack of its own.
pub(crate) fn astray(setup: &Setup, server: &Host, figures: &Figures) -> Option<String> {
    // The machine's own namespace has unrelated connections, and the kernel's end of a TAP device.
    if !matches!(server, Host::Namespace(_)) {
        return None;
    }
    // Counting segments would be less certain: the kernel answers those that are in flight when a client ends.
    let sides = [
        ("server", "accepted", "passive_opens", &setup.system.stack),
        ("client", "opened", "active_opens", &setup.load.stack),
    ];
    sides.into_iter().find_map(|(side, did, counter, stack)| {
        let opens = figures.get(&format!("tcp.{side}.{counter}"))?;
        let is_astray = !stack.is_empty() && *opens > 0.0;
        is_astray.then(|| {
            format!("the kernel's TCP of the {side} {did} {opens:.0} connections: not all of the load went over the stack of our own")
        })
    })
}

/// Effective capabilities, and whether they are those of the initial user namespace.
#[derive(Clone, Copy, Debug)]
struct Rights {
    capabilities: u64,
    is_first_user_namespace: bool,
}

/// A capability: its bit (linux/capability.h) and name.
type Capability = (u32, &'static str);

const CAP_NET_ADMIN: Capability = (12, "CAP_NET_ADMIN");
const CAP_NET_RAW: Capability = (13, "CAP_NET_RAW");
const CAP_SYS_ADMIN: Capability = (21, "CAP_SYS_ADMIN");
const CAP_PERFMON: Capability = (38, "CAP_PERFMON");
const CAP_BPF: Capability = (39, "CAP_BPF");

impl Rights {
    fn of_this_process() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        Self::parse(&status, &map)
    }

    fn parse(status: &str, user_map: &str) -> Self {
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
        let map: Vec<&str> = user_map.split_whitespace().collect();
        Self {
            capabilities: effective.unwrap_or(0),
            // user_namespaces(7): the first one maps all users to themselves.
            is_first_user_namespace: map == ["0", "0", "4294967295"],
        }
    }

    fn has(self, (bit, _): Capability) -> bool {
        self.capabilities & (1 << bit) != 0
    }

    fn lacks(self, wanted: &[Capability]) -> Option<String> {
        let lacking: Vec<&str> = wanted
            .iter()
            .filter(|capability| !self.has(**capability))
            .map(|(_, name)| *name)
            .collect();
        (!lacking.is_empty()).then(|| format!("not on this machine: needs {}", lacking.join(", ")))
    }

    /// `protocols` is /proc/net/protocols.
    fn lacks_for_xdp(self, protocols: &str) -> Option<String> {
        if !protocols.lines().any(|line| line.starts_with("XDP ")) {
            let reason = "not on this machine: needs a kernel with AF_XDP (CONFIG_XDP_SOCKETS)";
            return Some(String::from(reason));
        }
        if needs::program("ip").is_none() {
            return Some(String::from("not on this machine: needs ip (iproute2)"));
        }
        // CAP_SYS_ADMIN includes the two for programs in the kernel.
        let mut wanted = vec![CAP_NET_RAW, CAP_NET_ADMIN];
        if !self.has(CAP_SYS_ADMIN) {
            wanted.extend([CAP_BPF, CAP_PERFMON]);
        }
        self.lacks(&wanted).or_else(|| {
            let reason = "not on this machine: needs the first user namespace, \
                 since programs in the kernel are for it alone";
            (!self.is_first_user_namespace).then(|| String::from(reason))
        })
    }
}

#[cfg(test)]
mod tests;
