//! Two network namespaces with a veth pair between them, one queue a side: as two machines on a cable, on one machine.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};

use mill_sys::namespace::enter_network;

use crate::bench::failure::{Failure, Result};
use crate::bench::lab::Lab;

/// Vanishes with the lab, whose caretaker removes it.
#[derive(Debug)]
pub(super) struct Topology {
    server: End,
    client: End,
}

/// One machine of the two.
#[derive(Debug)]
pub(super) struct End {
    namespace: String,
    pub(super) interface: &'static str,
    pub(super) cpu: u16,
}

/// Those of the two interfaces, in a network that documentation has for examples (RFC 2544).
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// What the two kernels are tuned to, below /proc/sys/net. Missing ones are left out by this kernel.
const SETTINGS: [(&str, &str); 5] = [
    // IPv6 sends of itself, into the raw frames' path too.
    ("ipv6/conf/all/disable_ipv6", "1"),
    // As many waiting connections as the servers' backlog asks for.
    ("core/somaxconn", "65535"),
    ("ipv4/tcp_max_syn_backlog", "65535"),
    // 50 000 connections of one client.
    ("ipv4/ip_local_port_range", "1024 65535"),
    // Full after half a second of connections, so that the first block is like the later ones.
    ("ipv4/tcp_max_tw_buckets", "16384"),
];

impl Topology {
    pub(super) fn lay(lab: &Lab) -> Result<Self> {
        let process = std::process::id();
        let end = |side: &str, interface, cpu| End {
            namespace: format!("mill-bypass-{process}-{side}"),
            interface,
            cpu,
        };
        let server = end("server", "veth-s", lab.server_cpu);
        let client = end("client", "veth-c", lab.client_cpu);
        for end in [&server, &client] {
            lab.caretaker.adopt_namespace(&end.namespace)?;
            ip(&["netns", "add", &end.namespace])?;
            end.within(tune)?;
        }
        let queues = ["numrxqueues", "1", "numtxqueues", "1"];
        let first = ["-n", &server.namespace, "link", "add", server.interface];
        let peer = ["type", "veth", "peer", "name", client.interface];
        let place = ["netns", &client.namespace];
        ip(&[&first[..], &queues, &peer, &queues, &place].concat())?;
        for (end, address) in [(&server, SERVER), (&client, CLIENT)] {
            let address = format!("{address}/24");
            end.ip(&["addr", "add", &address, "dev", end.interface])?;
            end.ip(&["link", "set", "lo", "up"])?;
            end.ip(&["link", "set", end.interface, "up"])?;
        }
        Ok(Self { server, client })
    }

    pub(super) fn set_mtu(&self, mtu: u16) -> Result<()> {
        let mtu = mtu.to_string();
        for end in [&self.server, &self.client] {
            end.ip(&["link", "set", end.interface, "mtu", &mtu])?;
        }
        Ok(())
    }

    pub(super) fn server(&self) -> &End {
        &self.server
    }

    pub(super) fn client(&self) -> &End {
        &self.client
    }
}

impl End {
    /// What runs a program in the namespace, on its CPU only.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace]).args([
            "taskset",
            "-c",
            &self.cpu.to_string(),
        ]);
        command
    }

    /// Acts in a thread whose network is the namespace's.
    pub(super) fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T> {
        let path = Path::new("/run/netns").join(&self.namespace);
        let namespace = File::open(&path).map_err(Failure::during(path.display()))?;
        let result = std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                enter_network(&namespace)?;
                Ok(act())
            });
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        result.map_err(Failure::during(&self.namespace))
    }

    fn ip(&self, arguments: &[&str]) -> Result<()> {
        ip(&[&["-n", &self.namespace], arguments].concat())
    }
}

/// Sets what the calling thread's network has of the settings.
fn tune() {
    for (name, value) in SETTINGS {
        let path = Path::new("/proc/sys/net").join(name);
        if let Err(error) = fs::write(&path, value) {
            eprintln!("  {name} stays as it is: {error}");
        }
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(Failure::during("ip"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure(format!(
        "ip {}: {}",
        arguments.join(" "),
        said.trim()
    )))
}
