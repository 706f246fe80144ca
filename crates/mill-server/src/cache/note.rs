//! What a request and a cache had to do with each other: `$upstream_cache_status` and its like.

use super::{CacheZone, Kept};
use mill_http::caching::reuse::ForwardReason;
use mill_http::caching::storing::WhyNotStored;
use std::rc::Rc;
use std::sync::Arc;

/// nginx's word for what became of the look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheOutcome {
    Miss,
    Bypass,
    Expired,
    Stale,
    Updating,
    Revalidated,
    Hit,
}

impl CacheOutcome {
    /// In the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Miss,
        Self::Bypass,
        Self::Expired,
        Self::Stale,
        Self::Updating,
        Self::Revalidated,
        Self::Hit,
    ];

    /// nginx's word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Miss => "MISS",
            Self::Bypass => "BYPASS",
            Self::Expired => "EXPIRED",
            Self::Stale => "STALE",
            Self::Updating => "UPDATING",
            Self::Revalidated => "REVALIDATED",
            Self::Hit => "HIT",
        }
    }

    /// Whether the answer is one that was kept.
    pub const fn is_of_cache(self) -> bool {
        matches!(
            self,
            Self::Stale | Self::Updating | Self::Revalidated | Self::Hit
        )
    }
}

/// Kept with a request until it is logged.
#[derive(Debug)]
pub(crate) struct CacheNote {
    pub(crate) zone: Arc<CacheZone>,
    pub(crate) outcome: CacheOutcome,
    pub(crate) key: Rc<[u8]>,
    /// The answer that was found, whatever became of it.
    pub(crate) found: Option<Arc<Kept>>,
    /// The zone's purges before it was looked for.
    pub(crate) generation: u64,
    /// Why a server was asked.
    pub(crate) forwarded: Option<ForwardReason>,
    /// The request wants no server asked (`only-if-cached`), and nothing is kept that may be used.
    pub(crate) is_unavailable: bool,
    /// It waited for the answer to another request.
    pub(crate) is_collapsed: bool,
    /// What became of the server's answer; `None` where none came.
    pub(crate) storing: Option<Result<(), Unstored>>,
}

/// Why an answer is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unstored {
    /// The rules say so.
    By(WhyNotStored),
    /// `…_no_cache`.
    Refused,
    /// `cache_object_max`.
    TooLarge,
}

impl Unstored {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::By(why) => why.word(),
            Self::Refused => "configuration",
            Self::TooLarge => "too-large",
        }
    }
}

impl CacheNote {
    pub(crate) const fn new(zone: Arc<CacheZone>, key: Rc<[u8]>) -> Self {
        Self {
            zone,
            outcome: CacheOutcome::Miss,
            key,
            found: None,
            generation: 0,
            forwarded: None,
            is_unavailable: false,
            is_collapsed: false,
            storing: None,
        }
    }

    /// `$cache_decision`: `hit`, or why it was none, and what became of the answer.
    pub(crate) fn decision(&self) -> String {
        let mut text = String::from(match (self.outcome, self.forwarded) {
            (CacheOutcome::Hit, _) if self.is_collapsed => "hit collapsed",
            (CacheOutcome::Hit, _) => "hit",
            (CacheOutcome::Stale | CacheOutcome::Updating, _) => "hit stale",
            (CacheOutcome::Revalidated, _) => "hit revalidated",
            _ if self.is_unavailable => "only-if-cached",
            (_, Some(reason)) => reason.word(),
            (_, None) => "miss",
        });
        match self.storing {
            Some(Ok(())) => text.push_str(" stored"),
            Some(Err(why)) => {
                text.push_str(" not-stored=");
                text.push_str(why.word());
            }
            None => {}
        }
        text
    }
}
