//! Which policy counts for a location: its own, that of its vhost, or that outside of vhosts.
//!
//! As in Tempesta FW, a location that says nothing about a matter takes all that its vhost says about it, and a vhost what
//! is written outside.

use super::site::{CacheRule, Limit, Nonidempotent, Pass, Policy, Site, Vhost};
use crate::resolve::draft::Origin;

/// The policies of one place, innermost first.
pub(super) struct Policies<'a> {
    levels: Vec<&'a Policy>,
    /// What is written outside is no more than defaults of others: its `proxy_pass` does not count.
    own: usize,
}

/// Those of a location of a vhost, or of the vhost itself.
pub(super) fn of<'a>(site: &'a Site, vhost: &'a Vhost, location: Option<usize>) -> Policies<'a> {
    let location = location.and_then(|index| vhost.locations.get(index));
    let mut levels: Vec<&Policy> = location
        .map(|location| &location.policy)
        .into_iter()
        .collect();
    levels.push(&vhost.policy);
    let own = levels.len();
    if let Some(default) = site.vhosts.first()
        && !std::ptr::eq(default, vhost)
    {
        levels.push(&default.policy);
    }
    Policies { levels, own }
}

impl<'a> Policies<'a> {
    /// Where requests go.
    pub(super) fn pass(&self) -> Option<&'a Pass> {
        let mut own = self.levels.iter().take(self.own);
        own.find_map(|policy| policy.pass.as_ref())
    }

    /// The rules of caching in the order in which they are asked: those of the location, then those of the vhost, or, if it
    /// has none, those outside.
    pub(super) fn cache(&self) -> Vec<&'a CacheRule> {
        let (inner, outer) = match self.own {
            2 => self.levels.split_at(1),
            _ => self.levels.split_at(0),
        };
        let outer = outer.iter().find(|policy| !policy.cache.is_empty());
        let levels = inner.iter().chain(outer);
        levels.flat_map(|policy| &policy.cache).collect()
    }

    pub(super) fn nonidempotent(&self) -> impl Iterator<Item = &'a Nonidempotent> + use<'a, '_> {
        self.levels.iter().flat_map(|policy| &policy.nonidempotent)
    }

    /// Which directives of `Cache-Control` are ignored.
    pub(super) fn ignores(&self) -> Option<&'a (Origin, Vec<&'static str>)> {
        self.levels
            .iter()
            .find_map(|policy| policy.ignores.as_ref())
    }

    /// The innermost entry of each name in `frang_limits`, those that stand outside of vhosts not counted.
    pub(super) fn limits(&self) -> Vec<&'a Limit> {
        let mut found: Vec<&Limit> = Vec::new();
        for limit in self.levels.iter().flat_map(|policy| &policy.limits.0) {
            if !found.iter().any(|known| known.name == limit.name) {
                found.push(limit);
            }
        }
        found
    }

    /// The innermost list of a kind that has an entry.
    pub(super) fn list<T>(&self, of: fn(&Policy) -> &Vec<T>) -> &'a [T] {
        let lists = self.levels.iter().map(|policy| of(policy));
        lists
            .map(Vec::as_slice)
            .find(|list| !list.is_empty())
            .unwrap_or_default()
    }
}
