//! Limits of clients in the text format of Prometheus: `millstream_frang_…`. Violations are counters of the server.

use super::families::Families;
use crate::frang::Frang;
use mill_runtime::time::Instant;

/// Appends the sizes of the tables.
pub(super) fn render(frang: &Frang, now: Instant, out: &mut String) {
    let prefix = "millstream_frang_";
    let mut families = Families { prefix, out };
    let (clients, clients_evicted) = frang.client_counts();
    let (added, evicted) = frang.blocks.counts();
    let active = frang.blocks.all(now).len() as u64;
    for (name, kind, help, value) in [
        (
            "clients",
            "gauge",
            "Clients whose counts are kept.",
            clients,
        ),
        (
            "clients_evicted_total",
            "counter",
            "Clients whose counts were given up for others.",
            clients_evicted,
        ),
        ("blocks", "gauge", "Addresses that are blocked.", active),
        (
            "blocks_added_total",
            "counter",
            "Addresses that were blocked.",
            added,
        ),
        (
            "blocks_evicted_total",
            "counter",
            "Blocks that ended early, for want of room.",
            evicted,
        ),
    ] {
        families.head(name, kind, help);
        families.line(format_args!("{name} {value}"));
    }
}
