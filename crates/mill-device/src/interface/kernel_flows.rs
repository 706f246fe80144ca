//! Connections that the kernel had on a port before this process served it: they stay the kernel's.

use super::taken;
use crate::steering::Table;
use mill_stack::config::Prefix;
use mill_stack::link::Service;
use mill_sys::clock;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

/// Ports on which the kernel still has connections. While there are any, the steering program looks each segment up in
/// the kernel's table, which triples its cost.
#[derive(Debug, Default)]
pub(super) struct PreexistingKernelFlows {
    ports: BTreeSet<u16>,
    /// The request to look up that was there last.
    known: Option<NonZeroU32>,
    /// When to check again, on the monotonic clock.
    look_at: Duration,
}

impl PreexistingKernelFlows {
    /// For a table that another process has served, perhaps on other ports: the kernel may have connections on any of
    /// them.
    pub(super) fn inherited(services: &[Service], table: &Table) -> Self {
        let mut kernel_flows = Self::default();
        for service in services {
            kernel_flows.begin(service.address.port(), table);
        }
        kernel_flows
    }

    /// Called before `port` is entered into the table. Until it is, the kernel may accept further connections, so the
    /// check comes later.
    pub(super) fn begin(&mut self, port: u16, table: &Table) {
        self.ports.insert(port);
        self.look_at = clock::monotonic() + FIRST_LOOK;
        table.look_up_kernel_flows();
    }

    /// Stops the lookups once the kernel has no connections left at these addresses, also where another process that listens has asked
    /// for them.
    pub(super) fn look(&mut self, table: &Table, addresses: &[Prefix]) {
        let now = clock::monotonic();
        if now < self.look_at {
            return;
        }
        self.look_at = now + LOOK_INTERVAL;
        let Some(request) = table.kernel_flows() else {
            return;
        };
        // The kernel may still accept connections at the port of which it is.
        if self.known.replace(request) != Some(request) {
            self.look_at = now + FIRST_LOOK;
            return;
        }
        let is_own = |address| addresses.iter().any(|prefix| prefix.address == address);
        // If the kernel's table cannot be read, there may be some.
        if let Ok(connected) = taken::connected_ports(is_own) {
            self.ports.retain(|port| connected.contains(port));
            if self.ports.is_empty() && !table.serves_any(&connected) {
                table.end_kernel_flows(request);
            }
        }
    }
}

/// Before the first check: frames that were under way have been processed by then.
const FIRST_LOOK: Duration = Duration::from_millis(5);

/// Interval of the checks. Each takes the kernel a walk through its table of connections.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
