//! What one trial needs: a topology, tuning, content, one system under test, a load, probes.
//! Every value has been through substitution; nothing here contains `${…}` any more, except `url` and other names
//! that are known on the machine only (`Load::args`, `System`): see `Where`.

use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// One trial's setup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    #[serde(default)]
    pub topology: Topology,
    #[serde(default)]
    pub tune: Tune,
    /// Files below the document root, by name.
    #[serde(default)]
    pub content: BTreeMap<String, Content>,
    pub system: System,
    pub load: Load,
    #[serde(default)]
    pub monitors: Monitors,
    /// Passes under the same load whose rates never enter a table, because looking costs.
    #[serde(default)]
    pub probe: Vec<Probe>,
}

/// The hosts of client and server, and the link between them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Topology {
    pub kind: TopologyKind,
    /// Receive and transmit queues of each end (veth, vm).
    pub queues: Option<u32>,
    /// What tbf lets through each way, in 10⁹ bits/s; none is unlimited.
    pub rate_gbit: Option<f64>,
    pub mtu: Option<u32>,
    /// Hosts of clients: namespaces `net0`, `net1`… (macvlan: one macvlan interface each).
    pub clients: Option<u32>,
    /// The interface that macvlan or a remote host uses; without it a veth pair is made.
    pub interface: Option<String>,
    pub cpus: Cpus,
    /// For ssh.
    pub remote: Option<Remote>,
    /// For vm: 1 if the server alone is in a guest, and its clients on this machine; 2 (the default) if both are.
    pub guests: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TopologyKind {
    /// Client and server in the machine's own namespace, over lo.
    #[default]
    Loopback,
    /// Two namespaces joined by a veth pair.
    Veth,
    /// Client namespaces with a macvlan interface each, on one link to the server's namespace.
    Macvlan,
    /// Client and server on other machines.
    Ssh,
    /// Guests of QEMU on a bridge.
    Vm,
}

/// Which CPUs each side may use, as `taskset -c` takes them (`0`, `0-3`, `1,3`). None: the lab splits the machine's CPUs,
/// the server's from the top.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cpus {
    pub server: Option<String>,
    pub client: Option<String>,
    /// How many the server needs: a point that needs more than there are is not run, and its cell shows "needs N
    /// cores".
    pub server_count: Option<u32>,
}

/// Hosts over ssh, as ssh(1) takes them (`user@host`), and the address that clients connect to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remote {
    pub server: String,
    pub client: String,
    pub address: String,
}

/// Changes to the system, made before the servers start and undone at the end. Keys that do not exist are
/// reported as absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tune {
    /// `net.*` on both sides' namespaces; other keys on the machine.
    pub sysctl: BTreeMap<String, toml::Value>,
    /// `net.*` of one side only.
    pub server_sysctl: BTreeMap<String, toml::Value>,
    pub client_sysctl: BTreeMap<String, toml::Value>,
    /// Files to be written, by path: /sys/kernel/mm/…, /sys/devices/system/….
    pub files: BTreeMap<String, toml::Value>,
    pub interface: Interface,
    pub affinity: Affinity,
    /// Services that may disturb: stopped if running (irqbalance), started again at the end.
    pub stop_services: Vec<String>,
    /// Content is on a tmpfs of this size (`512m`).
    pub tmpfs: Option<String>,
    pub limits: Limits,
}

/// What ethtool(8) and ip(8) set on the link between client and server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Interface {
    /// `ethtool -G`.
    pub rings: BTreeMap<String, u32>,
    /// `ethtool -C`.
    pub coalesce: BTreeMap<String, toml::Value>,
    /// `ethtool -K`.
    pub offloads: BTreeMap<String, bool>,
    /// `/sys/class/net/IF/` files: threaded, napi_defer_hard_irqs, gro_flush_timeout.
    pub files: BTreeMap<String, toml::Value>,
    /// `ip route change … initcwnd N` on the server's route to the client.
    pub initcwnd: Option<u32>,
}

/// The CPUs that handle interrupts and packets: CPU lists.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Affinity {
    /// Of the interface's interrupts.
    pub irq: Option<String>,
    /// rps_cpus, by queue number, or `all`.
    pub rps: BTreeMap<String, String>,
    /// xps_cpus, by queue number, or `all`.
    pub xps: BTreeMap<String, String>,
}

/// Limits of the started processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    pub nofile: Option<u64>,
}

/// One file of the document root.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// Decimal, as `dd bs=1KB` makes them.
    pub bytes: u64,
    /// What it is filled with; a file that compresses like text, or zeros as `dd if=/dev/zero`.
    #[serde(default)]
    pub text: bool,
}

/// A system under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// In `[system.NAME]` this is NAME.
    #[serde(default)]
    pub name: String,
    pub title: String,
    pub kind: SystemKind,
    /// nginx, millstream: the binary; none finds it (`nginx` in PATH, the running millstream).
    pub binary: Option<String>,
    /// nginx, millstream: nginx.conf. `${root}`, `${port}`, `${run}` (a private folder) are the machine's.
    pub config: Option<String>,
    /// Further arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// The network stack that it serves over, as `--stack` takes it; empty is the kernel's. Others than millstream are on it by
    /// `millstream run`.
    #[serde(default)]
    pub stack: String,
    /// nginx, command: the millstream whose `run` puts it on the stack; none is the running one. An empty name is none.
    #[serde(default, deserialize_with = "unless_empty")]
    pub runner: Option<String>,
    /// The address at which clients reach it, if it is another than the topology's: of a TAP device, of a memif.
    pub host: Option<String>,
    /// command: how it is started and stopped.
    pub start: Option<Start>,
    /// Of a CPU that it gets from its start on: by a control group.
    pub cpu_share: Option<f64>,
    #[serde(default = "http_port")]
    pub port: u16,
    #[serde(default)]
    pub allocator: Allocator,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Requirements; if one is not met, the column shows "not on this machine" and its text.
    /// `program:onload`, `file:/opt/…`, `module:tempesta_fw`, `open-files:50000`, `memory:4096000000`, `not-built:…`, `out-of-scope:…`.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The system of the document that this one replaces, if it is another.
    pub stands_for: Option<String>,
    /// What makes it differ: `server = "nginx"`, `stack = "kernel"`, `allocator = "glibc"`. Two systems that are compared
    /// differ in exactly one.
    #[serde(default)]
    pub factors: BTreeMap<String, String>,
    /// A system that has to run behind it: a name of `[system]` (Tempesta's upstream). An empty name is none.
    #[serde(default, deserialize_with = "unless_empty")]
    pub upstream: Option<String>,
    /// Of a system behind another: the side whose host and CPUs it runs on, and whose processes it counts with.
    #[serde(default)]
    pub side: Side,
}

/// A side of the topology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    #[default]
    Server,
    Client,
}

impl System {
    /// Whether it polls for packets while it waits, as Millstream's own stacks do unless configured to sleep.
    pub fn polls(&self) -> bool {
        let sleeps = |option: &str| matches!(option, "polling=interrupt" | "profile=safe");
        !self.stack.is_empty() && !self.stack.split(',').any(sleeps)
    }

    /// Whether it is a program that is not changed, on our stack by `millstream run`.
    pub fn is_run(&self) -> bool {
        !self.stack.is_empty() && self.kind != SystemKind::Millstream
    }
}

fn http_port() -> u16 {
    80
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SystemKind {
    Nginx,
    Millstream,
    /// Anything that `start` starts and that listens on `port`.
    Command,
}

/// How a command is started. It either stays in the foreground, or `stop` ends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    pub argv: Vec<String>,
    #[serde(default)]
    pub stop: Vec<String>,
    pub folder: Option<String>,
    /// Files to be written into `${run}` first, by name.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

/// Preloaded, and looked for in /proc/PID/maps before anything is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Allocator {
    /// What the program was linked with: on Debian glibc's.
    #[default]
    Glibc,
    Jemalloc,
    Mimalloc,
}

/// What the clients do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    pub tool: Tool,
    /// As in a shell: quotes group. `${url}`, `${host}`, `${port}`, `${run}` and `${index}` (of the process) are the machine's.
    pub args: String,
    /// The path that `${url}` ends in.
    #[serde(default = "root_path")]
    pub path: String,
    /// How many run at once, summed up: the cookbook's 32. Process i runs on client host i modulo hosts, and on client CPU i modulo CPUs.
    #[serde(default = "one")]
    pub processes: u32,
    /// The network stack of each process, as `--stack` takes it; empty is the kernel's. Other tools than millstream's are on it by
    /// `millstream run`.
    #[serde(default)]
    pub stack: String,
    /// wrk, wrk2, ab, h2load: the millstream whose `run` puts them on the stack; none is the running one. An empty name is none.
    #[serde(default, deserialize_with = "unless_empty")]
    pub runner: Option<String>,
    /// The binary, if not the one in PATH; of ours, if not the running one. An empty name is none.
    #[serde(default, deserialize_with = "unless_empty")]
    pub binary: Option<String>,
    /// Of each process: what a library that is preloaded reads (the cookbook's EF_… of Onload).
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The same program with other arguments, run before and discarded: fills caches and warms up a JIT.
    pub prime: Option<String>,
    /// About how long it takes, for the estimate, where its arguments give no duration but a number of requests.
    /// Where neither does, 10 s are assumed.
    pub seconds: Option<f64>,
    /// At the start and the end of the load what monitors saw is not counted, because clients begin and end one by one.
    #[serde(default = "half_second")]
    pub ramp_s: f64,
    /// Bytes that a whole answer has, head included, are the same for all answers of a trial, and differ between
    /// systems: the lint on swapped labels needs no more. Content bytes, if the document says them.
    pub content_bytes: Option<u64>,
    /// Field lines of the requests that the lab makes itself, as those of the tool: `Connection: close`.
    #[serde(default)]
    pub fields: Vec<String>,
    /// One response is compared with the file before each load, decompressed if it was requested compressed. Not of
    /// commands.
    #[serde(default)]
    pub check: bool,
    /// Kernels that the tool needs and that may be missing are listed in `needs`, as of systems.
    #[serde(default)]
    pub needs: Vec<String>,
}

/// A text that a variable fills in at some points only.
fn unless_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()))
}

fn root_path() -> String {
    String::from("/")
}
fn one() -> u32 {
    1
}
fn half_second() -> f64 {
    0.5
}

impl Load {
    /// Whether it is a program that is not changed, on our stack by `millstream run`.
    pub fn is_run(&self) -> bool {
        !self.stack.is_empty() && !self.tool.is_ours()
    }
}

/// Whose command line and whose output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tool {
    #[serde(rename = "wrk")]
    Wrk,
    #[serde(rename = "wrk2")]
    Wrk2,
    #[serde(rename = "ab")]
    Ab,
    #[serde(rename = "h2load")]
    H2load,
    #[serde(rename = "millstream wrk")]
    MillstreamWrk,
    #[serde(rename = "millstream wrk2")]
    MillstreamWrk2,
    #[serde(rename = "millstream ab")]
    MillstreamAb,
    /// Run with `--json`.
    #[serde(rename = "millstream load")]
    MillstreamLoad,
    #[serde(rename = "dpdk-httperf")]
    DpdkHttperf,
    /// No load: the probes of the recipe are all there is.
    #[serde(rename = "none")]
    None,
}

/// What is looked at while the load runs. All of it costs little and is always on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Monitors {
    pub interval_ms: u64,
    /// Rate of the link for %ifutil where the interface has none (veth), in 10⁶ bits/s.
    pub link_mbit: Option<f64>,
}

impl Default for Monitors {
    fn default() -> Self {
        Self {
            interval_ms: 250,
            link_mbit: None,
        }
    }
}

/// A look that costs, in a pass of its own under the same load, or without load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    pub kind: ProbeKind,
    /// How long it looks.
    #[serde(default = "three_seconds")]
    pub seconds: f64,
    /// counters: which.
    #[serde(default)]
    pub counters: Vec<Counter>,
    /// profile: which side of the kernel's border.
    #[serde(default)]
    pub profile: Profile,
    /// Only for these systems; empty means all.
    #[serde(default)]
    pub systems: Vec<String>,
    /// Only at points with these values.
    #[serde(default)]
    pub points: BTreeMap<String, toml::Value>,
    /// strace: arguments of the loads.
    #[serde(default)]
    pub loads: Vec<String>,
    /// The processes it observes.
    #[serde(default)]
    pub at: Where,
}

fn three_seconds() -> f64 {
    3.0
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// perf stat: system calls, calls of malloc in the allocator that is mapped, contention, TLB, caches.
    Counters,
    /// perf record, folded, drawn as a flame graph.
    Profile,
    /// A capture on the server's interface: retransmissions, reordering, duplicates.
    Capture,
    /// Round trips and bulk TCP between the two sides, without the server.
    Path,
    /// What runs on the machine: services, interrupts by CPU, NUMA nodes, the busiest processes.
    Environment,
    /// `perf kvm stat`.
    VmExits,
    /// One line a second, `12:37:40 eth0 DOWN:3925 Mb/s   UP:767 Mb/s`.
    Rate,
    /// CPU by process, as `top -b`.
    Top,
    /// strace: system calls per request, of a server or of the clients, exactly; those of the first of `loads` are taken
    /// off those of the second.
    Strace,
    /// valgrind: heap allocations per request, as the difference of two counts of requests.
    Valgrind,
    /// Memory of the server for each connection that made one request and stays.
    IdleConnections,
}

impl ProbeKind {
    /// Whether its pass starts a server afresh.
    pub fn has_own_server(self) -> bool {
        matches!(self, Self::Strace | Self::Valgrind | Self::IdleConnections)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counter {
    SystemCalls,
    Malloc,
    TcpReceive,
    LockContention,
    ContextSwitches,
    PageFaults,
    Tlb,
    Cache,
    Cycles,
    MemoryAccess,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    #[default]
    All,
    AllKernel,
    AllUser,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Where {
    #[default]
    Server,
    Client,
    Machine,
}

impl Tool {
    /// Whether it is one of Millstream's own, which takes `--stack` itself.
    pub fn is_ours(self) -> bool {
        self.name().starts_with("millstream ")
    }

    /// As a recipe spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wrk => "wrk",
            Self::Wrk2 => "wrk2",
            Self::Ab => "ab",
            Self::H2load => "h2load",
            Self::MillstreamWrk => "millstream wrk",
            Self::MillstreamWrk2 => "millstream wrk2",
            Self::MillstreamAb => "millstream ab",
            Self::MillstreamLoad => "millstream load",
            Self::DpdkHttperf => "dpdk-httperf",
            Self::None => "none",
        }
    }
}
