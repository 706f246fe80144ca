//! What is to be done with an answer that is kept.

use super::Looking;
use crate::cache::note::CacheOutcome;
use crate::cache::{Kept, StoredAnswer};
use crate::local::Local;
use mill_config::config::settings::NextUpstream;
use mill_http::caching::reuse::{ForwardReason, Reuse, ReuseRules, StaleReuse, may_reuse};
use mill_runtime::engine::Engine;

/// What is to be done with an answer that is kept.
pub(super) enum Judgement {
    /// It answers, or nothing does.
    Now(CacheOutcome),
    Unavailable,
    /// It answers, and is asked for anew behind it.
    WhileUpdating(StaleReuse),
    /// A server is asked.
    Ask(ForwardReason, Option<StaleReuse>),
}

impl Looking {
    fn reuse<E: Engine>(&self, stored: &StoredAnswer, local: &Local<E>) -> Reuse {
        let is_nginx = !self.follows_rfc();
        let use_stale = self.settings.use_stale;
        let rules = ReuseRules {
            ignores_request_directives: is_nginx,
            ignores_must_revalidate: is_nginx,
            uses_stale_while_revalidating: use_stale.contains(NextUpstream::UPDATING),
            uses_stale_on_error: self.settings.uses_stale(),
        };
        let now = local.scheduler.wall_clock().seconds;
        may_reuse(&stored.freshness, &self.directives, now, rules)
    }

    /// Whether it answers, and no server is asked.
    pub(in crate::proxy::caching) fn finds_fresh<E: Engine>(
        &self,
        stored: &StoredAnswer,
        local: &Local<E>,
    ) -> bool {
        matches!(self.reuse(stored, local), Reuse::Fresh { .. })
    }

    pub(super) fn judge<E: Engine>(&self, kept: &Kept, local: &Local<E>) -> Judgement {
        let reuse = self.reuse(kept.meta(), local);
        if kept.is_invalidated() {
            return Judgement::Ask(ForwardReason::Stale, None);
        }
        match reuse {
            Reuse::Fresh { .. } => Judgement::Now(CacheOutcome::Hit),
            Reuse::Stale(stale) if stale.may_serve => Judgement::Now(CacheOutcome::Stale),
            Reuse::Stale(stale) if stale.may_serve_while_revalidating => {
                Judgement::WhileUpdating(stale)
            }
            Reuse::Stale(stale) => Judgement::Ask(ForwardReason::Stale, Some(stale)),
            Reuse::Validate { reason, .. } => Judgement::Ask(reason, None),
            Reuse::Unavailable => Judgement::Unavailable,
        }
    }
}
