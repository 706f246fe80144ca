//! How listeners and closed connections of an engine end.

use crate::bypass::{BypassEngine, BypassLink, FileOf};
use crate::file_bytes::FileBytes;
use mill_runtime::engine::{DrainListener, ListenerId, Orphans};
use mill_stack::host::Host;
use mill_stack::host::status::ConnectionStatus;
use mill_tcp::state::State;

impl<L: BypassLink + 'static, I: DrainListener> DrainListener for BypassEngine<L, I>
where
    FileOf<I>: FileBytes,
{
    fn drain_listener(&self, listener: ListenerId) -> bool {
        let Some(stack_half) = &self.stack_half else {
            return self.inner.drain_listener(listener);
        };
        let mut listeners = stack_half.listeners.borrow_mut();
        let Some(entry) = listeners.entry(listener) else {
            return true;
        };
        entry.is_inner_waiting = true;
        let is_inner_drained = entry.inner.is_none_or(|id| self.inner.drain_listener(id));
        let is_stack_drained = entry.stack.is_none_or(|id| stack_half.drain_listener(id));
        is_inner_drained && is_stack_drained
    }

    fn keep_listener(&self, listener: ListenerId) {
        let Some(stack_half) = &self.stack_half else {
            return self.inner.keep_listener(listener);
        };
        let mut listeners = stack_half.listeners.borrow_mut();
        let Some(entry) = listeners.entry(listener) else {
            return;
        };
        if let Some(inner) = entry.inner {
            self.inner.keep_listener(inner);
        }
        if let Some(id) = entry.stack {
            stack_half.keep_listener(id);
        }
    }
}

impl<L: BypassLink + 'static, I: Orphans> Orphans for BypassEngine<L, I>
where
    FileOf<I>: FileBytes,
{
    fn has_lingering_orphans(&self) -> bool {
        let stack_half = self.stack_half.as_ref();
        stack_half.is_some_and(|stack_half| stack_half.stack.borrow_mut().has_lingering_orphans())
            || self.inner.has_lingering_orphans()
    }

    fn carries_for_others(&self) -> bool {
        let stack_half = self.stack_half.as_ref();
        stack_half.is_some_and(|stack_half| stack_half.stack.borrow().link.carries_for_others())
    }

    fn orphans(&self) -> usize {
        self.with_host(Host::unfinished).unwrap_or(0) + self.inner.orphans()
    }

    fn abort_orphans(&self) -> bool {
        let stack_half = self.stack_half.as_ref();
        let has_more =
            stack_half.is_some_and(|stack_half| stack_half.stack.borrow_mut().abort_orphans());
        self.inner.abort_orphans() || has_more
    }
}

/// Whether a closed connection has bytes or a FIN that its peer has not acknowledged, and the peer answers. A peer
/// whose
/// window is closed does.
pub(crate) fn is_under_way(status: &ConnectionStatus) -> bool {
    let is_gone = status.info.backoff >= BACKOFF_OF_THE_GONE && status.info.snd_wnd > 0;
    let is_finishing = matches!(
        status.info.state,
        State::FinWait1 | State::Closing | State::LastAck
    );
    status.is_orphan && !is_gone && (status.queued > 0 || is_finishing)
}

/// After so many consecutive retransmissions without an answer an engine that ends waits for the peer no longer: with
/// the least
/// timeout of 200 ms, three seconds.
const BACKOFF_OF_THE_GONE: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::IpAddr;
    use mill_stack::flow::Flow;
    use mill_tcp::info::Info;

    #[test]
    fn an_engine_that_ends_waits_for_closed_connections_whose_peers_answer() {
        let any_address = IpAddr::from([10, 0, 0, 1]);
        let check = |state, queued, is_orphan, backoff, snd_wnd, expected| {
            let status = ConnectionStatus {
                flow: Flow {
                    local: any_address,
                    remote: any_address,
                    local_port: 80,
                    remote_port: 80,
                },
                token: 0,
                info: Info {
                    state,
                    backoff,
                    snd_wnd,
                    ..Info::default()
                },
                unread: 0,
                queued,
                acked: 0,
                is_orphan,
            };
            assert_eq!(is_under_way(&status), expected, "{status:?}");
        };
        check(State::Established, 1, true, 0, 100, true);
        check(State::Established, 1, false, 0, 100, false);
        check(State::FinWait2, 0, true, 0, 100, false);
        check(State::LastAck, 0, true, 3, 100, true);
        check(State::LastAck, 0, true, 4, 100, false);
        check(State::FinWait1, 1, true, 9, 0, true);
    }
}
