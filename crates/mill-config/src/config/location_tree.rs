//! Which location answers a path.

use std::sync::Arc;

use super::{Captures, Location, LocationName};
use crate::Text;

/// The locations of a server, or those inside a location.
#[derive(Debug, Default)]
pub struct LocationTree {
    /// `= /path`, sorted.
    exact: Vec<(Text, Arc<Location>)>,
    /// `/path` and `^~ /path`, sorted by path.
    prefixes: Vec<Prefix>,
    /// `~` and `~*`, in the order of the text.
    patterns: Vec<Arc<Location>>,
    /// Some location [takes the path without its slash](Location::wants_slash).
    redirects: bool,
}

#[derive(Debug)]
struct Prefix {
    path: Text,
    final_match: bool,
    /// Index of the longest other prefix that this path begins with.
    shorter: Option<usize>,
    location: Arc<Location>,
}

impl LocationTree {
    /// Builds the tree from locations in the order of the text. Names are unique.
    pub(crate) fn new(locations: impl IntoIterator<Item = Arc<Location>>) -> Self {
        let mut tree = Self::default();
        for location in locations {
            tree.redirects |= location.redirects();
            match &location.name {
                LocationName::Exact(path) => tree.exact.push((path.clone(), location)),
                LocationName::Prefix { path, final_match } => tree.prefixes.push(Prefix {
                    path: path.clone(),
                    final_match: *final_match,
                    shorter: None,
                    location,
                }),
                LocationName::Pattern(_) => tree.patterns.push(location),
                LocationName::Named(_) | LocationName::Condition | LocationName::Server => {}
            }
        }
        tree.exact.sort_by(|(a, _), (b, _)| a.cmp(b));
        tree.prefixes.sort_by(|a, b| a.path.cmp(&b.path));
        let mut open: Vec<(usize, Text)> = Vec::new();
        for (index, prefix) in tree.prefixes.iter_mut().enumerate() {
            while open
                .last()
                .is_some_and(|(_, path)| !prefix.path.starts_with(path))
            {
                open.pop();
            }
            prefix.shorter = open.last().map(|(index, _)| *index);
            open.push((index, prefix.path.clone()));
        }
        tree
    }

    /// The location of a decoded, normalised path, nested ones included; `None` leaves the request with the settings of
    /// the enclosing block. If a regular expression decides, its captures are stored in `captures`, else those are not
    /// changed.
    ///
    /// Order, as in nginx: an exact name; the longest prefix, and locations nested in it; then, unless that prefix has
    /// `^~`, the regular expressions of this level in their order, and locations nested in the first that matches.
    /// A location that passes requests on and whose name is the path and a slash precedes shorter prefixes: the caller
    /// redirects to it ([`Location::wants_slash`]).
    pub fn find(&self, path: &[u8], captures: &mut Captures) -> Option<&Arc<Location>> {
        self.search(path, captures).location()
    }

    /// All locations directly in this tree: exact, prefixes, patterns.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Location>> {
        self.exact
            .iter()
            .map(|(_, location)| location)
            .chain(self.prefixes.iter().map(|prefix| &prefix.location))
            .chain(&self.patterns)
    }

    fn search(&self, path: &[u8], captures: &mut Captures) -> Found<'_> {
        if let Ok(index) = self.exact.binary_search_by(|(name, _)| (**name).cmp(path))
            && let Some((_, location)) = self.exact.get(index)
        {
            return Found::Settled(location);
        }
        let longest = self.longest_prefix(path);
        if self.redirects
            && longest.is_none_or(|prefix| *prefix.path != *path)
            && let Some(location) = self.with_slash(path)
        {
            return Found::Settled(location);
        }
        let mut found = Found::Nothing;
        let mut try_patterns = true;
        if let Some(prefix) = longest {
            try_patterns = !prefix.final_match;
            found = match prefix.location.locations.search(path, captures) {
                settled @ Found::Settled(_) => return settled,
                Found::Open(nested) => Found::Open(nested),
                Found::Nothing => Found::Open(&prefix.location),
            };
        }
        if !try_patterns {
            return found;
        }
        for location in &self.patterns {
            let LocationName::Pattern(pattern) = &location.name else {
                continue;
            };
            if pattern.captures(path, captures) {
                let nested = location.locations.search(path, captures).location();
                return Found::Settled(nested.unwrap_or(location));
            }
        }
        found
    }

    /// The location that the path with a slash names, if it wants it.
    fn with_slash(&self, path: &[u8]) -> Option<&Arc<Location>> {
        let compare = |name: &[u8]| name.iter().cmp(path.iter().chain(b"/"));
        let exact = self.exact.binary_search_by(|(name, _)| compare(name)).ok();
        let prefix = self
            .prefixes
            .binary_search_by(|prefix| compare(&prefix.path))
            .ok();
        let exact = exact.and_then(|index| self.exact.get(index));
        let prefix = prefix.and_then(|index| self.prefixes.get(index));
        let mut named = exact.map(|(_, location)| location).into_iter();
        let mut named = named.by_ref().chain(prefix.map(|prefix| &prefix.location));
        named.find(|location| location.redirects())
    }

    fn longest_prefix(&self, path: &[u8]) -> Option<&Prefix> {
        let after = self
            .prefixes
            .partition_point(|prefix| *prefix.path <= *path);
        let mut candidate = self.prefixes.get(after.checked_sub(1)?)?;
        while !path.starts_with(&candidate.path) {
            candidate = self.prefixes.get(candidate.shorter?)?;
        }
        Some(candidate)
    }
}

/// The result of one level.
enum Found<'a> {
    /// No location matches.
    Nothing,
    /// A prefix matches; an outer level's regular expressions may still take precedence.
    Open(&'a Arc<Location>),
    /// An exact name or a regular expression matches: the search is over.
    Settled(&'a Arc<Location>),
}

impl<'a> Found<'a> {
    fn location(self) -> Option<&'a Arc<Location>> {
        match self {
            Self::Nothing => None,
            Self::Open(location) | Self::Settled(location) => Some(location),
        }
    }
}
