//! `map`: a variable whose value is looked up by another value.

use super::{Pattern, Template};
use crate::Text;

/// One `map SOURCE $NAME { … }`.
///
/// Lookup order: the exact value, the longest wildcard (only with `hostnames`: `.example.org`
/// and `*.example.org`, then `example.*`), the regular expressions in their order, `default`.
#[derive(Debug)]
pub struct Map {
    /// What is looked up, case-insensitively except by regular expressions.
    pub source: Template,
    /// Index into [`super::Http::user_variables`] of the variable it defines.
    pub variable: usize,
    /// Lower-cased values and what they give, sorted by value.
    pub exact: Vec<(Text, MapValue)>,
    /// `*.example.org` as `example.org` (and only below it), sorted; `hostnames` only.
    pub suffixes: Vec<(Text, MapValue)>,
    /// `www.example.*` as `www.example`, sorted; `hostnames` only.
    pub prefixes: Vec<(Text, MapValue)>,
    /// Regular expressions in their order.
    pub patterns: Vec<(Pattern, MapValue)>,
    /// `default`; the empty string when absent.
    pub default: MapValue,
    /// `hostnames`.
    pub hostnames: bool,
    /// `volatile`: look it up each time, keep no value for the request.
    pub volatile: bool,
}

/// What a map entry yields.
#[derive(Debug, Clone)]
pub struct MapValue(
    /// Evaluated when looked up; captures refer to the entry's regular expression.
    pub Template,
);
