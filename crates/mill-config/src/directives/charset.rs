//! Character sets: the charset in Content-Type. No content is converted.

use crate::Text;
use crate::config::Variable;
use crate::config::settings::{SettingsDraft, group};
use crate::directive::{ANY_LEVEL, ANY_LEVEL_AND_IF, Apply, Arity, Directive, many, once};
use crate::directives::mime::MimeSet;
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};

group! {
    /// Character sets.
    CharsetSettings {
        /// `charset`: the charset in Content-Type.
        name: Charset = Charset::Off,
        /// `source_charset`: the charset of the content.
        source: Charset = Charset::Off,
        /// `override_charset`: also if the content itself has a known one.
        overrides: bool = false,
        /// `charset_types`.
        types: MimeSet = default_types(),
    }
}

/// The value of `charset` and `source_charset`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Charset {
    /// None.
    Off,
    /// This one, as it is written at its first occurrence.
    Named(Text),
    /// The one in a variable.
    Evaluated(Variable),
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "charset",
        ANY_LEVEL_AND_IF,
        Arity::Exactly(1),
        "off",
        Apply::With(|r, s| {
            if s.arg(1).bytes == b"off" {
                r.level.settings.charset.name = Some(Charset::Off);
                return Ok(());
            }
            named(r, s, |settings| &mut settings.charset.name)
        }),
        "The character set that Content-Type names, or a variable that names it.",
    ),
    once(
        "source_charset",
        ANY_LEVEL_AND_IF,
        Arity::Exactly(1),
        "",
        Apply::With(|r, s| named(r, s, |settings| &mut settings.charset.source)),
        "The character set of the content; as it is not recoded, it must be that of charset.",
    ),
    once(
        "override_charset",
        ANY_LEVEL_AND_IF,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.charset.overrides),
        "Name the character set of charset also for content that has one of its own.",
    ),
    many(
        "charset_types",
        ANY_LEVEL,
        Arity::AtLeast(1),
        Apply::With(|r, s| {
            let earlier = r.level.settings.charset.types.take();
            r.level.settings.charset.types = Some(r.media_types(s, earlier));
            Ok(())
        }),
        "Media types besides text/html whose character set is named, or *.",
    ),
];

/// A name, or one variable: a `$` later in the word is an ordinary byte, as in nginx.
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

/// As in nginx, names are compared without case, and sent as written at their first occurrence.
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

/// The default of `charset_types`: nginx's types.
fn default_types() -> MimeSet {
    let kinds = [
        "application/javascript",
        "application/rss+xml",
        "text/html",
        "text/plain",
        "text/vnd.wap.wml",
        "text/xml",
    ];
    MimeSet::Only(kinds.map(Text::from).to_vec())
}
