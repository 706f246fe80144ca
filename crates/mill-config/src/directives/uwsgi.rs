//! `uwsgi_pass` and what uwsgi alone has.

use crate::Text;
use crate::config::PassProtocol;
use crate::config::settings::group;
use crate::directive::{ANY_LEVEL, Apply, Arity, Contexts, Directive, LOCATION, many, once};
use crate::directives::pass::{PassParam, target, value};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};

group! {
    /// What only `uwsgi_pass` has.
    UwsgiSettings {
        /// `uwsgi_param`.
        params: Vec<PassParam> = Vec::new(),
        /// `uwsgi_modifier1`.
        modifier1: u8 = 0,
        /// `uwsgi_modifier2`.
        modifier2: u8 = 0,
        /// `uwsgi_string`: follows the parameters.
        string: Text = Text::default(),
    }
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "uwsgi_pass",
        LOCATION.and(Contexts::IF_IN_LOCATION),
        Arity::Exactly(1),
        "",
        Apply::With(|r, s| target::gateway_pass(r, s, PassProtocol::Uwsgi)),
        "Passes requests to a uwsgi server or a group of them: host:port, or unix:path.",
    ),
    many(
        "uwsgi_param",
        ANY_LEVEL,
        Arity::Between(2, 3),
        Apply::With(|r, s| {
            let param = value::param(r, s)?;
            let params = &mut r.level.settings.uwsgi_params.params;
            params.get_or_insert_default().push(param);
            Ok(())
        }),
        "A parameter of requests, with if_not_empty only if it has a value.",
    ),
    once(
        "uwsgi_modifier1",
        ANY_LEVEL,
        Arity::Exactly(1),
        "0",
        Apply::With(|r, s| {
            r.level.settings.uwsgi_params.modifier1 = Some(modifier(r, s)?);
            Ok(())
        }),
        "The first modifier of packets: what kind of request it is.",
    ),
    once(
        "uwsgi_modifier2",
        ANY_LEVEL,
        Arity::Exactly(1),
        "0",
        Apply::With(|r, s| {
            r.level.settings.uwsgi_params.modifier2 = Some(modifier(r, s)?);
            Ok(())
        }),
        "The second modifier of packets.",
    ),
    once(
        "uwsgi_string",
        ANY_LEVEL,
        Arity::Exactly(1),
        "",
        Apply::With(|r, s| {
            let string = Text::from(s.arg(1).bytes.as_slice());
            r.level.settings.uwsgi_params.string = Some(string);
            Ok(())
        }),
        "Text behind the parameters.",
    ),
];

fn modifier(resolver: &Resolver<'_>, statement: &Statement) -> Applied<u8> {
    let modifier = resolver.number(statement)?;
    u8::try_from(modifier).map_err(|_| {
        let word = statement.arg(1);
        resolver.emerg(statement, word, "value must be between 0 and 255")
    })
}
