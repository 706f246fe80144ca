//! `memcached_pass` and what memcached alone has.

use crate::config::PassProtocol;
use crate::config::settings::group;
use crate::directive::{ANY_LEVEL, Apply, Arity, Contexts, Directive, LOCATION, once};
use crate::directives::pass::target;

group! {
    /// What only `memcached_pass` has. `$memcached_key` is in [`crate::config::Pass`].
    MemcachedSettings {
        /// `memcached_gzip_flag`: answers whose flags have one of these bits are compressed by gzip.
        gzip_flag: u64 = 0,
    }
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "memcached_pass",
        LOCATION.and(Contexts::IF_IN_LOCATION),
        Arity::Exactly(1),
        "",
        Apply::With(|r, s| target::gateway_pass(r, s, PassProtocol::Memcached)),
        "Answers with the value of $memcached_key in a memcached server or a group of them: host:port, or unix:path.",
    ),
    once(
        "memcached_gzip_flag",
        ANY_LEVEL,
        Arity::Exactly(1),
        "0",
        Apply::Number(|s| &mut s.memcached_content.gzip_flag),
        "Flags of values that are compressed by gzip.",
    ),
];
