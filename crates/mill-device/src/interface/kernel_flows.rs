//! Connections that the kernel had on a port before it was served: they go on there.

use super::taken;
use crate::steering::Table;
use mill_stack::config::Prefix;
use mill_stack::link::Service;
use mill_sys::clock;
use std::collections::BTreeSet;
use std::time::Duration;

/// The ports of which the kernel has connections still. While there are any the steering looks each segment up, which
/// costs it twice as much again.
#[derive(Debug, Default)]
pub(super) struct PreexistingKernelFlows {
    ports: BTreeSet<u16>,
    /// When it is looked again whether they are needed, on the monotonic clock.
    look_at: Duration,
}

impl PreexistingKernelFlows {
    /// Another process has served the table, perhaps not these: the kernel may have connections on any of them.
    pub(super) fn inherited(services: &[Service], table: &Table) -> Self {
        let mut kernel_flows = Self::default();
        for service in services {
            kernel_flows.begin(service.address.port(), table);
        }
        kernel_flows
    }

    /// A port is served from now on, the table does not know it yet. Until it does the kernel may get another connection,
    /// and is asked only afterwards.
    pub(super) fn begin(&mut self, port: u16, table: &Table) {
        self.ports.insert(port);
        self.look_at = clock::monotonic() + FIRST_LOOK;
        table.set_kernel_flows(true);
    }

    /// Ends it once the kernel has no connections left at these addresses. Cheap when there were none.
    pub(super) fn look(&mut self, table: &Table, addresses: &[Prefix]) {
        if self.ports.is_empty() {
            return;
        }
        let now = clock::monotonic();
        if now < self.look_at {
            return;
        }
        self.look_at = now + LOOK_INTERVAL;
        let is_own = |address| addresses.iter().any(|prefix| prefix.address == address);
        // Who can't be asked may have some.
        if let Ok(connected) = taken::connected_ports(is_own) {
            self.ports.retain(|port| connected.contains(port));
            table.set_kernel_flows(!self.ports.is_empty());
        }
    }
}

/// Before the first look: frames that were on their way have arrived by then.
const FIRST_LOOK: Duration = Duration::from_millis(5);

/// How rarely the kernel's table is read, which takes it 0.1 ms for some hundred connections.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
