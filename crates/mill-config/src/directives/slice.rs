//! `slice`: a large answer is asked for and kept in pieces.

use crate::config::settings::group;
use crate::directive::{ANY_LEVEL, Apply, Arity, Directive, once};

group! {
    /// How answers are cut into pieces.
    SliceSettings {
        /// `slice`: bytes of a piece, which `$slice_range` names; 0 is off.
        size: u64 = 0,
    }
}

pub(crate) const DIRECTIVES: &[Directive] = &[once(
    "slice",
    ANY_LEVEL,
    Arity::Exactly(1),
    "0",
    Apply::Size(|s| &mut s.slice.size),
    "Bytes of the pieces in which a large answer is asked for and kept, each named by $slice_range. 0 is off.",
)];
