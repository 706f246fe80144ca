//! Spurious timeouts found without options (RFC 5682).

use super::{Phase, Progress};
use crate::connection::{Cold, Connection};
use crate::env::Env;

/// Where the algorithm is (RFC 5682 2.1, 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Frto {
    /// Not at work: conventional recovery.
    #[default]
    Off,
    /// Step 1: the first segment was sent again; the first acknowledgement decides.
    FirstAck,
    /// Step 2: new data is sent in place of retransmissions; the second acknowledgement decides.
    SecondAck,
}

impl Connection {
    /// An acknowledgement after a timeout.
    pub(super) fn on_ack_in_frto(
        &mut self,
        cold: &mut Cold,
        progress: &Progress,
        env: &mut Env<'_>,
    ) {
        if cold.recovery.phase != Phase::Loss {
            return;
        }
        let is_all = cold.recovery.is_over(progress.ack);
        let has_advanced = progress.acked_bytes > 0;
        cold.recovery.frto = match cold.recovery.frto {
            // Step 2 (b): a part was acknowledged. (a): a duplicate, or all: nothing can be told.
            Frto::FirstAck if has_advanced && !is_all => Frto::SecondAck,
            Frto::SecondAck => {
                // Step 3 (b): something arrived that was sent only once, before the timeout.
                let original_end = progress.delivery.original_end;
                let is_spurious =
                    original_end.is_some_and(|end| end.is_at_or_before(cold.recovery.end));
                if is_spurious {
                    self.undo(cold, env);
                } else if !has_advanced {
                    // Step 3 (a): the original was lost, so what was acknowledged is the retransmission, and the path
                    // is no longer than it was. Without timestamps nothing else would say so while all is sent again.
                    self.timer.end_backoff();
                }
                Frto::Off
            }
            Frto::Off | Frto::FirstAck => Frto::Off,
        };
    }
}
