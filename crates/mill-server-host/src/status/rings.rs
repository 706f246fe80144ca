//! Facts about a worker's device: rings, and frames that take other ways.

use super::port;
use super::snapshot::fact;
use mill_device::AnyLink;
use mill_device::interface::InterfaceLink;
use mill_device::relay::RelayCounters;
use mill_stack::link::Link;
use mill_status::tables::Fact;

/// Facts about the rings of a device: a few system calls.
pub(super) fn rings(link: &mut AnyLink) -> Vec<Fact> {
    let mut facts = vec![fact("device", link.kind())];
    let mtu = Link::properties(link).mtu;
    facts.push(fact("mtu", mtu));
    if let Some(interface) = link.interface_mut() {
        let xdp = interface.queues_mut();
        let copying = match xdp.is_zero_copy() {
            true => "no: frames lie where the device puts them",
            false => "yes: the kernel copies frames in and out",
        };
        facts.push(fact("copies", copying));
        let long = match xdp.has_outlet() {
            true => "left to the device, by a packet socket",
            false => "cut into frames here",
        };
        facts.push(fact("long_segments", long));
        let (waiting, unsent, senders) = xdp.ring_depths();
        facts.push(fact("received_waiting", waiting));
        facts.push(fact("transmit_waiting", unsent));
        facts.push(fact("transmit_places", senders));
        let counted = xdp.counters();
        for (name, value) in [
            ("received", counted.received),
            ("received_bytes", counted.received_bytes),
            ("received_in_pieces", counted.gathered),
            ("received_dropped", counted.dropped),
            ("transmitted", counted.transmitted),
            ("transmitted_bytes", counted.transmitted_bytes),
            ("transmitted_whole", counted.segments),
            ("transmit_kicks", counted.kicks),
            ("transmit_waits", counted.waited),
            ("transmit_lost", counted.lost),
            ("transmit_refused", counted.refused),
        ] {
            facts.push(fact(name, value));
        }
        if let Ok(of_kernel) = xdp.statistics() {
            for (name, value) in [
                ("rx_dropped", of_kernel.dropped),
                ("rx_ring_full", of_kernel.ring_full),
                ("rx_fill_ring_empty_descs", of_kernel.no_place),
                ("rx_invalid_descs", of_kernel.strange_filled),
                ("tx_invalid_descs", of_kernel.strange_transmitted),
                ("tx_ring_empty_descs", of_kernel.nothing_to_send),
            ] {
                facts.push(fact(name, value));
            }
        }
    }
    if let Some(apart) = link.standby() {
        let counted = apart.relayed();
        let how = match counted {
            Some(_) => {
                "another process has it: frames pass through that one, and its rings are there"
            }
            None => "another process has it: this one waits for it",
        };
        facts.push(fact("interface", how));
        let counted = counted.unwrap_or_default();
        facts.extend(relayed(
            ["received", "transmitted", "transmit_no_room"],
            counted,
        ));
    }
    if let Some(counted) = link.interface().and_then(InterfaceLink::relayed) {
        let how = "another process, which sends and receives through this one";
        facts.push(fact("behind", how));
        facts.extend(relayed(
            ["behind_transmitted", "behind_received", "behind_no_room"],
            counted,
        ));
    }
    if let Some(forwarding) = link.forwarding() {
        let counted = forwarding.counters();
        facts.push(fact("handed_on", counted.given));
        facts.push(fact("handed_here", counted.received));
        facts.push(fact("handed_no_room", counted.lost));
    }
    if let Some(memif) = link.memif() {
        facts.push(fact(
            "peer",
            if memif.is_up() { "connected" } else { "absent" },
        ));
        let counted = memif.counters();
        for (name, value) in [
            ("received", counted.received),
            ("received_bytes", counted.received_bytes),
            ("received_refused", counted.refused),
            ("transmitted", counted.transmitted),
            ("transmitted_bytes", counted.transmitted_bytes),
            ("transmit_unconnected", counted.unconnected),
            ("transmit_untaken", counted.untaken),
            ("transmit_no_room", counted.no_room),
            ("wakeups", counted.wakeups),
            ("connected", counted.connected),
            ("failed", counted.failed),
        ] {
            facts.push(fact(name, value));
        }
    }
    if let Some(port) = link.dpdk() {
        facts.extend(port::facts(port));
    }
    facts
}

/// Frames relayed between two processes, with the names of both directions.
fn relayed(names: [&str; 3], counted: RelayCounters) -> impl Iterator<Item = Fact> {
    let counts = [counted.received, counted.transmitted, counted.lost];
    let named = names.into_iter().zip(counts);
    named.map(|(name, count)| fact(name, count))
}
