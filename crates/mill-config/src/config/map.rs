//! `map`: a variable whose value is looked up by another value.

use super::{Captures, GeoTable, Pattern, Template};
use crate::Text;

/// One `map SOURCE $NAME { … }`, or a `split_clients` or `geo`, which look up by other means.
///
/// Lookup order: the exact value, the longest wildcard (only with `hostnames`: `.example.org`
/// and `*.example.org`, then `example.*`), the regular expressions in their order, `default`.
#[derive(Debug)]
pub struct Map {
    /// The value that is looked up, case-insensitively except by regular expressions.
    pub source: Template,
    /// Index into [`super::Http::user_variables`] of the variable it defines.
    pub variable: usize,
    /// Lower-cased values and their results, sorted by value.
    pub exact: Vec<(Text, MapValue)>,
    /// `*.example.org` as `example.org` (and only below it), sorted; `hostnames` only.
    pub suffixes: Vec<(Text, MapValue)>,
    /// `www.example.*` as `www.example`, sorted; `hostnames` only.
    pub prefixes: Vec<(Text, MapValue)>,
    /// Regular expressions in their order.
    pub patterns: Vec<(Pattern, MapValue)>,
    /// `default`; if absent, the empty string.
    pub default: Option<MapValue>,
    /// `hostnames`.
    pub hostnames: bool,
    /// How the value is looked up.
    pub lookup: MapLookup,
    /// `volatile`: evaluated at each use, not kept for the request.
    pub volatile: bool,
}

/// How a value is looked up.
#[derive(Debug)]
pub enum MapLookup {
    /// `map`: in its tables.
    Tables,
    /// `split_clients`: shares of all hashes in hundredths of a percent, in their order; 0 is the rest.
    Shares(Vec<(u32, MapValue)>),
    /// `geo`: as an address.
    Networks {
        table: GeoTable,
        /// `ranges`.
        is_of_ranges: bool,
    },
}

impl Map {
    /// The entry for a value; `None` yields the empty string. `captures` receives the captures if a regular expression
    /// decides.
    pub fn find(&self, value: &[u8], captures: &mut Captures) -> Option<&MapValue> {
        match &self.lookup {
            MapLookup::Tables => {}
            MapLookup::Shares(shares) => return share(shares, value),
            MapLookup::Networks { table, .. } => {
                let address = std::str::from_utf8(value).ok();
                let address = address.and_then(|text| text.parse().ok());
                let found = address.and_then(|address| table.find(address));
                return found.or(self.default.as_ref());
            }
        }
        let name = match value.strip_suffix(b".") {
            Some(name) if self.hostnames => name,
            _ => value,
        };
        if let Some(found) = lookup(&self.exact, name) {
            return Some(found);
        }
        let mut rest = if self.suffixes.is_empty() { &[] } else { name };
        while let Some(dot) = rest.iter().position(|&byte| byte == b'.') {
            rest = rest.get(dot + 1..).unwrap_or_default();
            if let Some(found) = lookup(&self.suffixes, rest) {
                return Some(found);
            }
        }
        let mut rest = if self.prefixes.is_empty() { &[] } else { name };
        while let Some(dot) = rest.iter().rposition(|&byte| byte == b'.') {
            rest = rest.get(..dot).unwrap_or_default();
            if let Some(found) = lookup(&self.prefixes, rest) {
                return Some(found);
            }
        }
        let found = self
            .patterns
            .iter()
            .find(|(pattern, _)| pattern.captures(value, captures));
        found.map(|(_, value)| value).or(self.default.as_ref())
    }
}

/// The share in which the hash of a value lies.
fn share<'a>(shares: &'a [(u32, MapValue)], value: &[u8]) -> Option<&'a MapValue> {
    let hash = u64::from(murmur_hash2(value));
    let mut end = 0;
    let found = shares.iter().find(|(share, _)| {
        end += u64::from(*share) * u64::from(u32::MAX) / 10_000;
        *share == 0 || hash < end
    });
    found.map(|(_, value)| value)
}

/// MurmurHash2 of 32 bits with seed 0 (Austin Appleby, public domain), so that shares are the same as with nginx.
fn murmur_hash2(bytes: &[u8]) -> u32 {
    const FACTOR: u32 = 0x5bd1_e995;
    let mixed = |word: u32| {
        let word = word.wrapping_mul(FACTOR);
        (word ^ (word >> 24)).wrapping_mul(FACTOR)
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the length is taken modulo 2^32"
    )]
    let mut hash = bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        hash = hash.wrapping_mul(FACTOR) ^ mixed(u32::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        for (index, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(FACTOR);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(FACTOR);
    hash ^ (hash >> 15)
}

fn lookup<'a>(table: &'a [(Text, MapValue)], value: &[u8]) -> Option<&'a MapValue> {
    let order = |known: &Text| {
        known
            .iter()
            .copied()
            .cmp(value.iter().map(u8::to_ascii_lowercase))
    };
    let index = table.binary_search_by(|(known, _)| order(known)).ok()?;
    table.get(index).map(|(_, value)| value)
}

/// The value of a map entry.
#[derive(Debug, Clone)]
pub struct MapValue(
    /// Evaluated when looked up; captures refer to the entry's regular expression.
    pub Template,
);
