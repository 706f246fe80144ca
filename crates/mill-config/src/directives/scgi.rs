//! `scgi_pass` and what SCGI alone has.

use crate::config::PassProtocol;
use crate::config::settings::group;
use crate::directive::{ANY_LEVEL, Apply, Arity, Contexts, Directive, LOCATION, many, once};
use crate::directives::pass::{PassParam, target, value};

group! {
    /// What only `scgi_pass` has.
    ScgiSettings {
        /// `scgi_param`.
        params: Vec<PassParam> = Vec::new(),
    }
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "scgi_pass",
        LOCATION.and(Contexts::IF_IN_LOCATION),
        Arity::Exactly(1),
        "",
        Apply::With(|r, s| target::gateway_pass(r, s, PassProtocol::Scgi)),
        "Passes requests to an SCGI server or a group of them: host:port, or unix:path.",
    ),
    many(
        "scgi_param",
        ANY_LEVEL,
        Arity::Between(2, 3),
        Apply::With(|r, s| {
            let param = value::param(r, s)?;
            let params = &mut r.level.settings.scgi_params.params;
            params.get_or_insert_default().push(param);
            Ok(())
        }),
        "A parameter of requests, with if_not_empty only if it has a value.",
    ),
];
