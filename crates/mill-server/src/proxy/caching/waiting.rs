//! Waiting for the answer to another request.

use super::look_up::Looking;
use super::{note, serve};
use crate::cache::note::CacheOutcome;
use crate::cache::{self, Kept, StoredAnswer};
use crate::exchange::Exchange;
use crate::local::{AnswerOf, Local};
use crate::proxy::target::Target;
use crate::request::Request;
use mill_cache::{Head, Waiting};
use mill_runtime::engine::Engine;
use mill_runtime::time::Instant;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// The result of waiting.
pub(super) enum Waited {
    Stored(Arc<Kept>),
    /// The one that was waited for is gone: another one takes its place.
    Again,
    /// The request goes on by itself, and its answer is not kept.
    Alone,
    ClientGone,
}

impl Looking {
    /// Waits for the answer to another request, as long as `…_cache_lock_timeout` and `…_cache_lock_age` say.
    pub(super) async fn wait<X: Exchange>(
        &self,
        mut waiting: Waiting<StoredAnswer>,
        begun: Instant,
        exchange: &mut X,
        local: &Local<X::Engine>,
    ) -> Waited {
        let scheduler = &local.scheduler;
        let waker = local.wakes.waker(scheduler.current());
        let asked_for = cache::now(local).saturating_sub(waiting.since());
        let age_left = self.settings.lock_age.saturating_sub(asked_for);
        let now = scheduler.now();
        let deadline = (begun + self.settings.lock_timeout).min(now + age_left);
        poll_fn(|_| {
            if let Poll::Ready(head) = waiting.poll_head(&waker) {
                return Poll::Ready(match head {
                    Head::Stored(kept) => Waited::Stored(kept),
                    Head::NotStored => Waited::Alone,
                    Head::Failed => Waited::Again,
                });
            }
            if exchange.is_abandoned() {
                return Poll::Ready(Waited::ClientGone);
            }
            scheduler.poll_deadline(deadline).map(|_| Waited::Alone)
        })
        .await
    }
}

/// Answers with what another request has brought: it was made for one that waited with this one, however short it is fresh.
pub(super) fn answer_collapsed<E: Engine>(
    kept: &Arc<Kept>,
    target: &Target,
    request: &mut Request,
    local: &Local<E>,
) -> Option<AnswerOf<E>> {
    let answer = serve::answer(kept, target, request, local)?;
    note(request, |note| {
        note.outcome = CacheOutcome::Hit;
        note.is_collapsed = true;
        note.found = Some(Arc::clone(kept));
    });
    request.pure = false;
    Some(answer)
}
