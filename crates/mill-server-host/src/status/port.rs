//! Facts about a port of DPDK: what is left to its card, and what it and the worker's queues have counted.

use super::snapshot::fact;
use mill_device::dpdk::DpdkLink;
use mill_status::tables::Fact;

/// Some calls of the driver.
pub(super) fn facts(link: &DpdkLink) -> Vec<Fact> {
    let (port, counted) = (link.port(), link.counters());
    let (info, settings, of_card) = (port.info(), port.settings(), port.counters());
    let spread = match (settings.queue_pairs, settings.hashes) {
        (1, _) => "one queue",
        (_, 0) => "as the driver chooses",
        _ => "by a hash of addresses and ports",
    };
    let link_state = match port.is_up() {
        Some(true) => "up",
        Some(false) => "down",
        None => "not told",
    };
    let mut facts = vec![
        fact("driver", &info.driver),
        fact("link", link_state),
        fact("queue_pairs", settings.queue_pairs),
        fact("flows", spread),
        fact("offloads", settings.offloads.words()),
        fact("offloads_possible", info.offloads.words()),
    ];
    for (name, value) in [
        ("received", counted.received),
        ("received_bytes", counted.received_bytes),
        ("received_verified", counted.verified),
        ("received_bad", counted.bad),
        ("transmitted", counted.transmitted),
        ("transmitted_bytes", counted.transmitted_bytes),
        ("transmitted_whole", counted.segments),
        ("transmitted_cut", counted.cut_here),
        ("transmit_waits", counted.waited),
        ("transmit_refused", counted.refused),
        ("transmit_no_memory", counted.no_memory),
        ("port_received", of_card.received),
        ("port_received_bytes", of_card.received_bytes),
        ("port_transmitted", of_card.transmitted),
        ("port_transmitted_bytes", of_card.transmitted_bytes),
        ("port_missed", of_card.missed),
        ("port_receive_errors", of_card.receive_errors),
        ("port_transmit_errors", of_card.transmit_errors),
        ("port_without_memory", of_card.without_memory),
    ] {
        facts.push(fact(name, value));
    }
    facts
}
