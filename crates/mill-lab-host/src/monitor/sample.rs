//! One sample of all counters, and the sampler that takes it.

use super::Watched;
use super::cpu::{self, Times};
use super::namespace_files::{self, NamespaceFiles};
use super::network::Traffic;
use super::process::{self, Tree, Usage};
use super::tcp::Tcp;
use crate::host::Host;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::time::Duration;

/// The state at an instant. Counters run on; the difference of two samples is what happened between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// On the monotonic clock.
    pub at: Duration,
    pub stat: cpu::Stat,
    pub server: Side,
    pub client: Side,
    /// Microseconds in which some task waited for a CPU.
    pub pressure_us: Option<u64>,
    /// Free bytes by node.
    pub free_memory: BTreeMap<u32, u64>,
}

/// Of the server or of all clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Side {
    /// Their sum; none if none of them is on this machine.
    pub cpus: Option<Times>,
    pub usage: Usage,
    pub traffic: Option<Traffic>,
    pub tcp: Tcp,
    /// Interrupts of devices that its CPUs handled; updated at each search only.
    pub interrupts: Option<u64>,
    /// Sockets in use and waiting, of the fullest client host.
    pub fullest: u64,
}

/// What does not change during the samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Facts {
    /// Rate of each side's interface in 10⁶ bits/s.
    pub server_mbit: Option<f64>,
    pub client_mbit: Option<f64>,
    /// CPUs of either side, for figures of their own.
    pub cpus: Vec<u32>,
    /// Whether the sides share CPUs.
    pub shared_cpus: bool,
    /// Client and server in one namespace: sockets are counted twice, and TIME_WAIT may belong to either.
    pub shared_network: bool,
    /// The load does not pass through the server's interface.
    pub beside_interface: bool,
    /// The clients' share of TIME_WAIT in a namespace that they share with the server.
    pub client_waits: f64,
    /// Ports that a client host may take.
    pub ports: Option<f64>,
    /// Workers of the server that ended under load.
    pub ended: Vec<process::Ended>,
    /// Metric and reason.
    pub absent: Vec<(String, String)>,
}

/// Takes samples.
#[derive(Debug)]
pub(super) struct Sampler {
    stat: File,
    interrupts: Option<File>,
    pressure: Option<File>,
    nodes: BTreeMap<u32, File>,
    server: Vec<NamespaceFiles>,
    clients: Vec<NamespaceFiles>,
    server_interface: String,
    client_interface: String,
    server_cpus: Vec<u32>,
    client_cpus: Vec<u32>,
    server_tree: Tree,
    client_tree: Tree,
    looks: u32,
}

/// The number of samples from one search of the whole machine for new members of the trees to the next: a search
/// reads one file of each process. With the usual four samples a second that is once a second.
const LOOKS_A_SEARCH: u32 = 4;

impl Sampler {
    /// Opens what exists; the rest is among the facts' `absent`.
    pub(super) fn open(watched: &Watched) -> std::io::Result<(Self, Facts)> {
        let testbed = &watched.testbed;
        let mut facts = Facts {
            cpus: union(&testbed.server_cpus, &testbed.client_cpus),
            shared_cpus: testbed
                .server_cpus
                .iter()
                .any(|cpu| testbed.client_cpus.contains(cpu)),
            shared_network: testbed.clients.contains(&testbed.server),
            beside_interface: watched.beside_interface,
            client_waits: 1.0,
            ..Facts::default()
        };
        let server = places(
            std::slice::from_ref(&testbed.server),
            "server",
            &mut facts.absent,
        );
        let clients = places(&testbed.clients, "client", &mut facts.absent);
        facts.ports = clients
            .first()
            .and_then(|namespace_files| namespace_files.ports)
            .map(|(first, last)| f64::from(last - first + 1));
        speeds(watched, &mut facts);
        let here = |host: &Host| !matches!(host, Host::Remote(_));
        let near = |host: &Host, roots: Vec<u32>| if here(host) { roots } else { Vec::new() };
        let client_host = testbed.clients.first().unwrap_or(&Host::Local);
        let sampler = Self {
            stat: File::open("/proc/stat")?,
            interrupts: File::open("/proc/interrupts").ok(),
            pressure: File::open("/proc/pressure/cpu").ok(),
            nodes: nodes(),
            server,
            clients,
            server_interface: testbed.server_interface.clone(),
            client_interface: testbed.client_interface.clone(),
            server_cpus: near(&testbed.server, testbed.server_cpus.clone()),
            client_cpus: near(client_host, testbed.client_cpus.clone()),
            server_tree: Tree::new(near(&testbed.server, watched.server.clone())),
            client_tree: Tree::new(near(client_host, watched.clients.clone())),
            looks: 0,
        };
        if sampler.pressure.is_none() {
            facts.absent.push((
                String::from("pressure_share"),
                String::from("/proc/pressure is not there: needs a kernel with CONFIG_PSI, and psi=1 on some"),
            ));
        }
        Ok((sampler, facts))
    }

    /// Of `Facts::client_waits`, to be called once the load is over.
    pub(super) fn client_waits(&mut self) -> f64 {
        self.clients
            .first_mut()
            .map_or(1.0, NamespaceFiles::waits_of_clients)
    }

    /// Of `Facts::ended`, likewise.
    pub(super) fn ended(&self) -> Vec<process::Ended> {
        self.server_tree.ended().to_vec()
    }

    pub(super) fn take(&mut self) -> Sample {
        let searches = self.looks.is_multiple_of(LOOKS_A_SEARCH);
        let parents = searches.then(process::parents);
        self.looks += 1;
        let server_usage = self.server_tree.look(parents.as_ref());
        let client_usage = self.client_tree.look(parents.as_ref());
        let stat = namespace_files::again(&mut self.stat)
            .ok()
            .and_then(|text| cpu::parse(&text))
            .unwrap_or_default();
        let mut sample = Sample {
            at: mill_sys::clock::monotonic(),
            server: Side {
                cpus: together(&stat, &self.server_cpus),
                usage: server_usage,
                ..Side::default()
            },
            client: Side {
                cpus: together(&stat, &self.client_cpus),
                usage: client_usage,
                ..Side::default()
            },
            stat,
            ..Sample::default()
        };
        look_at_network(&mut self.server, &self.server_interface, &mut sample.server);
        look_at_network(
            &mut self.clients,
            &self.client_interface,
            &mut sample.client,
        );
        if let Some(file) = self.interrupts.as_mut().filter(|_| searches) {
            let by_cpu = interrupts(&namespace_files::again(file).unwrap_or_default());
            sample.server.interrupts = sum_of(&by_cpu, &self.server_cpus);
            sample.client.interrupts = sum_of(&by_cpu, &self.client_cpus);
        }
        sample.pressure_us = self
            .pressure
            .as_mut()
            .and_then(|file| pressure(&namespace_files::again(file).ok()?));
        for (node, file) in &mut self.nodes {
            if let Some(bytes) = namespace_files::again(file)
                .ok()
                .and_then(|text| free_memory(&text))
            {
                sample.free_memory.insert(*node, bytes);
            }
        }
        sample
    }
}

fn places(hosts: &[Host], side: &str, absent: &mut Vec<(String, String)>) -> Vec<NamespaceFiles> {
    let mut places = Vec::new();
    for host in hosts {
        match NamespaceFiles::open(host) {
            Ok(namespace_files) => places.push(namespace_files),
            Err(reason) => {
                for stem in ["interface", "tcp"] {
                    absent.push((format!("{stem}.{side}"), reason.clone()));
                }
                if matches!(host, Host::Remote(_)) {
                    for stem in ["cpu", "process_cpu"] {
                        absent.push((format!("{stem}.{side}"), reason.clone()));
                    }
                }
            }
        }
    }
    places
}

fn speeds(watched: &Watched, facts: &mut Facts) {
    let testbed = &watched.testbed;
    let said = watched.link_mbit.or(testbed.link_mbit);
    let mut find = |side: &str, host: Option<&Host>, interface: &str| {
        let found = said.map_or_else(
            || namespace_files::speed(host.unwrap_or(&Host::Local), interface),
            Ok,
        );
        found
            .map_err(|reason| {
                let name = format!("interface.{side}.utilisation_percent");
                facts.absent.push((name, reason));
            })
            .ok()
    };
    facts.server_mbit = find("server", Some(&testbed.server), &testbed.server_interface);
    facts.client_mbit = find("client", testbed.clients.first(), &testbed.client_interface);
}

/// Traffic and TCP of all places: clients on one link share its rate.
fn look_at_network(places: &mut [NamespaceFiles], interface: &str, side: &mut Side) {
    for namespace_files in places {
        if let Some(traffic) = namespace_files.traffic(interface) {
            side.traffic = Some(side.traffic.unwrap_or_default().plus(&traffic));
        }
        let tcp = namespace_files.tcp();
        side.fullest = side.fullest.max(tcp.in_use + tcp.time_wait);
        side.tcp.add(&tcp);
    }
}

fn together(stat: &cpu::Stat, cpus: &[u32]) -> Option<Times> {
    cpus.iter()
        .filter_map(|cpu| stat.cpus.get(cpu).copied())
        .reduce(|all, one| all.plus(&one))
}

fn sum_of(by_cpu: &BTreeMap<u32, u64>, cpus: &[u32]) -> Option<u64> {
    let counts: Vec<u64> = cpus
        .iter()
        .filter_map(|cpu| by_cpu.get(cpu).copied())
        .collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

/// /proc/interrupts by CPU: interrupts of devices and between CPUs; a row of counts per source.
fn interrupts(text: &str) -> BTreeMap<u32, u64> {
    let mut lines = text.lines();
    let cpus: Vec<u32> = lines
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect();
    let mut sums: BTreeMap<u32, u64> = cpus.iter().map(|cpu| (*cpu, 0)).collect();
    for line in lines {
        let counts = line.split_ascii_whitespace().skip(1).map(str::parse::<u64>);
        // Rows such as ERR have fewer counts than there are CPUs, and belong to none.
        let counts: Vec<u64> = counts.map_while(Result::ok).take(cpus.len()).collect();
        if counts.len() == cpus.len() {
            for (cpu, count) in cpus.iter().zip(counts) {
                *sums.entry(*cpu).or_insert(0) += count;
            }
        }
    }
    sums
}

fn union(left: &[u32], right: &[u32]) -> Vec<u32> {
    let all: std::collections::BTreeSet<u32> = left.iter().chain(right).copied().collect();
    all.into_iter().collect()
}

/// Each node's file; without nodes, the machine's as node 0.
fn nodes() -> BTreeMap<u32, File> {
    let folder = fs::read_dir("/sys/devices/system/node").ok();
    let mut nodes: BTreeMap<u32, File> = folder
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let number = entry.file_name().to_str()?.strip_prefix("node")?.parse();
            Some((number.ok()?, File::open(entry.path().join("meminfo")).ok()?))
        })
        .collect();
    if nodes.is_empty()
        && let Ok(file) = File::open("/proc/meminfo")
    {
        nodes.insert(0, file);
    }
    nodes
}

/// `Node 0 MemFree:  23708160 kB`, or without the node.
fn free_memory(text: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (_, rest) = line.split_once("MemFree:")?;
        let kib: u64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
        Some(kib * 1024)
    })
}

/// `some avg10=0.00 avg60=8.28 avg300=11.47 total=5764293334`.
fn pressure(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split_once("total=")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_added_up_by_cpu() {
        let text = "           CPU0       CPU2
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
122:     500000          7  PCI-MSI 524288-edge      eth0-TxRx-0
LOC:         10         20   Local timer interrupts
ERR:          9
";
        let found = interrupts(text);
        assert_eq!(found, BTreeMap::from([(0, 500_011), (2, 27)]));
        assert_eq!(sum_of(&found, &[0, 2]), Some(500_038));
        assert_eq!(sum_of(&found, &[1]), None);
        assert_eq!(interrupts(""), BTreeMap::new());
    }

    #[test]
    fn free_memory_and_pressure_are_read() {
        let node = "Node 0 MemTotal:  24684084 kB\nNode 0 MemFree:  23708160 kB\n";
        assert_eq!(free_memory(node), Some(24_277_155_840));
        assert_eq!(free_memory("MemFree: 1 kB"), Some(1024));
        let waiting = "some avg10=0.00 avg60=8.28 avg300=11.47 total=5764293334\nfull total=0\n";
        assert_eq!(pressure(waiting), Some(5_764_293_334));
        for text in ["", "MemFree:", "some total=x", "full total=0"] {
            assert_eq!(
                (free_memory(text), pressure(text)),
                (None, None),
                "{text:?}"
            );
        }
    }
}
