//! Directives about a cache that mean the same where there is none. `…_cache` with a zone is refused, so there is none.

use crate::directive::{ANY_LEVEL, Apply, Arity, Directive, Notice, many, once};
use crate::lexer::Statement;
use crate::resolve::unsupported::Feature;
use crate::resolve::{Applied, Resolver};

/// Why they have no effect.
const NO_CACHE: &str = "without a cache nothing is taken from it or kept in it";

macro_rules! cache_table {
    ($name:ident, $prefix:literal) => {
        pub(crate) const $name: &[Directive] = &[
            once(
                concat!($prefix, "_cache"),
                ANY_LEVEL,
                Arity::Exactly(1),
                "off",
                Apply::With(cache),
                "The cache of answers: only off.",
            )
            .unread(NO_CACHE, Notice::Spared),
            many(
                concat!($prefix, "_cache_bypass"),
                ANY_LEVEL,
                Arity::AtLeast(1),
                Apply::With(conditions),
                "Conditions on which an answer is not taken from a cache.",
            )
            .unread(NO_CACHE, Notice::Spared),
            many(
                concat!($prefix, "_no_cache"),
                ANY_LEVEL,
                Arity::AtLeast(1),
                Apply::With(conditions),
                "Conditions on which an answer is not kept in a cache.",
            )
            .unread(NO_CACHE, Notice::Spared),
        ];
    };
}

cache_table!(PROXY, "proxy");
cache_table!(FASTCGI, "fastcgi");
cache_table!(UWSGI, "uwsgi");
cache_table!(SCGI, "scgi");

fn cache(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    if word.bytes != b"off" {
        let name = statement.name().display();
        let feature = Feature {
            label: name.to_string(),
            subject: format!("directive \"{name}\" is"),
            note: String::from("caches"),
            help: String::from("a cache comes in a later version; \"off\" is accepted"),
        };
        resolver.not_yet(feature, statement, statement.name());
    }
    Ok(())
}

fn conditions(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    for word in statement.args() {
        resolver.template(&word.bytes, statement, word)?;
    }
    Ok(())
}
