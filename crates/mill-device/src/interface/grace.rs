//! Connections that the kernel had on a port before it was served: they go on there.

use super::taken;
use crate::steering::Table;
use mill_stack::link::Service;
use std::collections::BTreeSet;

/// The ports of which the kernel has connections still. While there are any the steering looks each segment up, which
/// costs it twice as much again.
#[derive(Debug, Default)]
pub(super) struct Grace {
    ports: BTreeSet<u16>,
    /// Until it is looked again whether they are needed.
    looks_left: u32,
}

impl Grace {
    /// Another process has served the table, perhaps not these: the kernel may have connections on any of them.
    pub(super) fn inherited(services: &[Service], table: &Table) -> Self {
        let mut grace = Self::default();
        for service in services {
            grace.begin(service.address.port(), table);
        }
        grace
    }

    /// A port is served from now on, the table does not know it yet. Until it does the kernel may get another connection,
    /// and is asked only afterwards.
    pub(super) fn begin(&mut self, port: u16, table: &Table) {
        self.ports.insert(port);
        self.looks_left = FIRST_LOOKS;
        table.set_grace(true);
    }

    /// Ends it once the kernel has no connections left. Cheap as long as there were none.
    pub(super) fn look(&mut self, table: &Table) {
        if self.ports.is_empty() {
            return;
        }
        if let Some(left) = self.looks_left.checked_sub(1) {
            self.looks_left = left;
            return;
        }
        self.looks_left = LOOKS;
        let connected = taken::connected_ports();
        self.ports.retain(|port| connected.contains(port));
        table.set_grace(!self.ports.is_empty());
    }
}

/// Looks before the first one: frames that were on their way have arrived by then.
const FIRST_LOOKS: u32 = 64;

/// How rarely the kernel's table is read, in looks: in a worker that spins, some hundred milliseconds.
const LOOKS: u32 = 8192;
