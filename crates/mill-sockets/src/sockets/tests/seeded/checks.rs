//! What holds in every world at every moment.

use super::call::Call;
use super::world::World;
use mill_stack::host::status::Usage;

impl World {
    /// After every step.
    pub(super) fn check(&self) {
        for side in &self.sides {
            for entry in &side.entries {
                let found = side.owed(entry.target);
                let is_due = entry.is_due(found);
                assert!(
                    !is_due || side.is_ready(entry.set),
                    "a set does not tell of what is {found:?}: {entry:?}"
                );
            }
        }
        for thread in &self.threads {
            let side = &self.sides[thread.side];
            let Some(call) = thread.asleep() else {
                continue;
            };
            assert!(
                !call.is_due(side, &self.exchanges),
                "a thread sleeps over what its call would give: {thread:?}"
            );
            if let Call::Wait(set, _) = call {
                let mut entries = side.entries.iter();
                let is_due =
                    entries.any(|entry| entry.set == *set && entry.is_due(side.owed(entry.target)));
                assert!(!is_due, "a lost wake-up: {thread:?}");
            }
        }
    }

    /// Nothing is on its way, and nothing is due.
    pub(super) fn check_idle(&self) {
        for side in &self.sides {
            let link = &side.sockets.link;
            assert!(link.sent.is_empty() && link.arrived.is_empty());
        }
    }

    /// All is closed, and all waits are over.
    pub(super) fn check_empty(&mut self) {
        for side in &mut self.sides {
            let sockets = &mut side.sockets;
            assert_eq!(sockets.host.usage(), Usage::default(), "{:?}", side.index);
            assert_eq!((sockets.host.listeners(), sockets.count()), (0, 0));
            assert_eq!(sockets.link.held(), 0);
            assert!(sockets.listeners.is_empty() && sockets.served.is_empty());
            for set in &side.sets {
                let watches = sockets.sets.get(*set).unwrap();
                let nested = side.entries.iter().filter(|entry| entry.set == *set);
                assert_eq!(watches.sockets(), nested.count(), "only sets are left");
            }
            for set in side.sets.drain(..) {
                sockets.remove_set(set);
            }
            assert_eq!(sockets.sets.len(), 0);
        }
        for exchange in self.exchanges.iter().filter(|it| !it.may_reset) {
            let is_whole = exchange.ends.iter().all(|end| {
                end.read == exchange.total && end.written == exchange.total && end.saw_end
            });
            assert!(is_whole, "{exchange:?}");
        }
    }
}
