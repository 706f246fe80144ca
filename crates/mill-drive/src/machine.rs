//! What the machine noticed during the measured period.

use mill_load::ground::Machine;
use mill_load::plan::Plan;

/// Looks at the machine when the measured period begins, and again at its end.
pub(crate) struct Observer {
    begun: bool,
}

impl Observer {
    pub(crate) fn new(_plan: &Plan) -> Self {
        Self { begun: false }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    pub(crate) fn begin(&mut self) {
        self.begun = true;
    }

    pub(crate) fn end(self) -> Machine {
        Machine::default()
    }
}
