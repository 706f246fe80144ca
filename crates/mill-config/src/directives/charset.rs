//! Character sets: what Content-Type says of text. Nothing is recoded.

use std::sync::Arc;

use crate::Text;
use crate::config::settings::{Charset, SettingsDraft};
use crate::directive::{ANY_LEVEL, ANY_LEVEL_AND_IF, Apply, Arity, Directive, many, once};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "charset",
        ANY_LEVEL_AND_IF,
        Arity::Exactly(1),
        "off",
        Apply::With(|r, s| {
            if s.arg(1).bytes == b"off" {
                r.level.settings.charset = Some(Charset::Off);
                return Ok(());
            }
            named(r, s, |settings| &mut settings.charset)
        }),
        "The character set that Content-Type names, or a variable that names it.",
    ),
    once(
        "source_charset",
        ANY_LEVEL_AND_IF,
        Arity::Exactly(1),
        "",
        Apply::With(|r, s| named(r, s, |settings| &mut settings.source_charset)),
        "The character set of the content; as it is not recoded, it must be that of charset.",
    ),
    once(
        "override_charset",
        ANY_LEVEL_AND_IF,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.override_charset),
        "Name the character set of charset also for content that has one of its own.",
    ),
    many(
        "charset_types",
        ANY_LEVEL,
        Arity::AtLeast(1),
        Apply::With(|r, s| {
            let earlier = r.level.settings.charset_types.take();
            let kinds = r.media_types(s, earlier.map(Arc::unwrap_or_clone));
            r.level.settings.charset_types = Some(Arc::new(kinds));
            Ok(())
        }),
        "Media types besides text/html whose character set is named, or *.",
    ),
];

/// A name, or one variable: a `$` further on in the word is an ordinary byte, as in nginx.
fn named(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    place: fn(&mut SettingsDraft) -> &mut Option<Charset>,
) -> Applied {
    let word = statement.arg(1);
    let charset = match word.bytes.strip_prefix(b"$") {
        None => Charset::Named(first_spelling(resolver, &word.bytes)),
        Some([]) => {
            return Err(resolver.emerg(statement, word, "invalid variable name \"$\""));
        }
        Some(name) => Charset::Evaluated(resolver.variable(name, statement, word)),
    };
    *place(&mut resolver.level.settings) = Some(charset);
    Ok(())
}

/// As in nginx, a name is the same in any case, and is sent as it stands where it stands first.
fn first_spelling(resolver: &mut Resolver<'_>, name: &[u8]) -> Text {
    let Some(http) = &mut resolver.http else {
        return Text::from(name);
    };
    let mut known = http.charsets.iter();
    if let Some(known) = known.find(|known| known.eq_ignore_ascii_case(name)) {
        return known.clone();
    }
    http.charsets.push(Text::from(name));
    Text::from(name)
}
