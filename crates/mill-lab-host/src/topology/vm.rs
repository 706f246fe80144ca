//! Virtual machines: described and checked, not made. Two existing ones are named under `ssh`.

use mill_lab::recipe::Topology;
use std::path::Path;

/// What it needs, and the layout, in one paragraph for a report's cell.
pub(super) fn needs(topology: &Topology) -> String {
    needs_below(topology, Path::new("/"))
}

fn needs_below(topology: &Topology, root: &Path) -> String {
    let there = |path: &str| root.join(path).exists();
    let mut missing = Vec::new();
    if !there("dev/kvm") {
        missing.push("/dev/kvm");
    }
    if !there("usr/bin/virsh") && !there("usr/sbin/libvirtd") {
        missing.push("libvirt");
    }
    missing.push("a guest image");
    format!("needs {}; {}", listed(&missing), layout(topology))
}

/// The layout for libvirt.
fn layout(topology: &Topology) -> String {
    let count = topology.cpus.server_count.or(topology.queues).unwrap_or(1);
    let queues = topology.queues.unwrap_or(count);
    let pinned = match &topology.cpus.server {
        Some(list) => format!("on host CPUs {list}"),
        None => String::from("vcpu n on host CPU n"),
    };
    let link = match &topology.interface {
        Some(interface) => format!("macvtap private on {interface}"),
        None => String::from("libvirt's routed network on the host"),
    };
    format!(
        "the server's guest has {count} vCPU{}, pinned one to one ({pinned}), virtio-net by vhost with {queues} \
         queue{} ({link}); a guest that is up is measured over ssh: topology.kind=ssh",
        plural(count),
        plural(queues),
    )
}

fn plural(count: u32) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn listed(words: &[&str]) -> String {
    match words {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => words.join(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_lab::recipe::{Cpus, TopologyKind};

    #[test]
    fn what_is_missing_and_the_layout_are_said() {
        let topology = Topology {
            kind: TopologyKind::Vm,
            cpus: Cpus {
                server_count: Some(4),
                ..Cpus::default()
            },
            interface: Some(String::from("eth2")),
            ..Topology::default()
        };
        assert_eq!(
            needs_below(&topology, Path::new("/nonexistent")),
            "needs /dev/kvm, libvirt and a guest image; the server's guest has 4 vCPUs, pinned one to one \
             (vcpu n on host CPU n), virtio-net by vhost with 4 queues (macvtap private on eth2); a guest that \
             is up is measured over ssh: topology.kind=ssh"
        );
        assert_eq!(listed(&["a guest image"]), "a guest image");
    }
}
