//! Replacements of errors: `error_page`.

use crate::Text;
use crate::config::Template;
use crate::config::settings::group;
use crate::directive::{ANY_LEVEL, ANY_LEVEL_AND_IF, Apply, Arity, Directive, many, once};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver, templates};
use crate::value;

group! {
    /// Replacements of errors.
    ErrorPageSettings {
        /// `error_page`, the first entry with the status counts.
        pages: Vec<ErrorPage> = Vec::new(),
        /// `recursive_error_pages`.
        recursive: bool = false,
        /// `msie_padding`: error pages long enough for Internet Explorer and Chrome to show them.
        msie_padding: bool = true,
        /// `msie_refresh`: pages instead of redirects for Internet Explorer.
        msie_refresh: bool = false,
    }
}

/// The replacement of one status.
#[derive(Debug, Clone)]
pub struct ErrorPage {
    /// The status that is replaced.
    pub status: u16,
    /// The status that the client gets.
    pub answer: ErrorPageStatus,
    /// If it evaluates to text that begins with `/`: an internal redirect (as GET, or HEAD). With `@`: a named
    /// location, the method kept. Else: a redirect to it, with 302 unless `answer` is another redirect's status.
    pub target: Template,
    /// Arguments written after `?` in a target without variables.
    pub args: Option<Text>,
}

/// The `=` of `error_page`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorPageStatus {
    /// None: the original status.
    Keep,
    /// `=`: the status of the target's answer.
    OfTarget,
    /// `=N`.
    Set(u16),
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "error_page",
        ANY_LEVEL_AND_IF,
        Arity::AtLeast(2),
        Apply::With(error_page),
        "What answers in place of an error: a path, a named location, or a redirect.",
    ),
    once(
        "recursive_error_pages",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.error_page.recursive),
        "Errors of error pages have error pages.",
    ),
    once(
        "msie_padding",
        ANY_LEVEL,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.error_page.msie_padding),
        "Comments after error pages for Internet Explorer and Chrome, which would not show short ones.",
    ),
    once(
        "msie_refresh",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.error_page.msie_refresh),
        "Pages that lead on, in the place of redirects for Internet Explorer.",
    ),
];

/// nginx's own statuses that a client sees as 400: 494 to 497.
const SEEN_AS_BAD_REQUEST: std::ops::RangeInclusive<u16> = 494..=497;

fn error_page(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let Some((target, rest)) = statement.args().split_last() else {
        return Ok(());
    };
    let invalid = |resolver: &Resolver<'_>, word: &crate::lexer::Word| {
        resolver.emerg(
            statement,
            word,
            format!("invalid value \"{}\"", word.display()),
        )
    };
    let (answer, codes) = match rest.split_last() {
        Some((word, codes)) if word.bytes.first() == Some(&b'=') => {
            if codes.is_empty() {
                return Err(invalid(resolver, word));
            }
            let answer = match word.bytes.get(1..).unwrap_or_default() {
                [] => ErrorPageStatus::OfTarget,
                code => {
                    let status = value::number(code).and_then(|code| u16::try_from(code).ok());
                    ErrorPageStatus::Set(status.ok_or_else(|| invalid(resolver, word))?)
                }
            };
            (answer, codes)
        }
        _ => (ErrorPageStatus::Keep, rest),
    };
    let text = target.bytes.as_slice();
    let cut = text
        .iter()
        .position(|&byte| byte == b'?')
        .filter(|_| text.first() == Some(&b'/') && !templates::has_variables(text));
    let (path, args) = match cut.and_then(|at| text.split_at_checked(at)) {
        Some((path, args)) => (path, args.get(1..).map(Text::from)),
        None => (text, None),
    };
    let path = resolver.template(path, statement, target)?;
    let mut pages = Vec::new();
    for word in codes {
        let status = value::number(&word.bytes).and_then(|code| u16::try_from(code).ok());
        let status = status
            .filter(|&code| code != 499)
            .ok_or_else(|| invalid(resolver, word))?;
        if !(300..=599).contains(&status) {
            let message = format!("value \"{}\" must be between 300 and 599", word.display());
            return Err(resolver.emerg(statement, word, message));
        }
        let answer = match answer {
            ErrorPageStatus::Keep if SEEN_AS_BAD_REQUEST.contains(&status) => {
                ErrorPageStatus::Set(400)
            }
            answer => answer,
        };
        pages.push(ErrorPage {
            status,
            answer,
            target: path.clone(),
            args: args.clone(),
        });
    }
    let list = resolver
        .level
        .settings
        .error_page
        .pages
        .get_or_insert_default();
    list.extend(pages);
    Ok(())
}
