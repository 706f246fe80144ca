//! Response fields that the configuration adds: `add_header`, `add_trailer`, `expires`.

use super::Template;
use crate::Text;

/// `add_header NAME VALUE [always]`, and `add_trailer` alike.
#[derive(Debug, Clone)]
pub struct AddedHeader {
    /// Field name as written.
    pub name: Text,
    /// Field value; a value that evaluates to nothing adds no field.
    pub value: Template,
    /// Add it whatever the status; else only to 200, 201, 204, 206, 301, 302, 303, 304, 307, 308.
    pub always: bool,
}

/// `expires`: seconds are signed, as in `expires -1`.
#[derive(Debug, Clone)]
pub enum Expires {
    /// No Expires, no Cache-Control.
    Off,
    /// "Thu, 01 Jan 1970 00:00:01 GMT" and no-cache.
    Epoch,
    /// "Thu, 31 Dec 2037 23:55:55 GMT" and ten years.
    Max,
    /// That many seconds from now; negative ones mean no-cache, 0 is max-age=0.
    Access(i64),
    /// That many seconds after the last modification.
    Modified(i64),
    /// `@15h30m`: the next time that the local clock shows so many seconds after midnight.
    Daily(u32),
    /// With variables: evaluate, then give the result to [`Expires::parse`].
    Evaluated {
        /// The text of the time.
        value: Template,
        /// Written after the word `modified`.
        modified: bool,
    },
}
