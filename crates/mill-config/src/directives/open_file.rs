//! How files are opened: `open_file_cache`, `disable_symlinks`.

use std::time::Duration;

use crate::config::Template;
use crate::config::settings::group;
use crate::directive::{ANY_LEVEL, Apply, Arity, Directive, Value, once};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};
use crate::value;

group! {
    /// How files are opened, and how long results are cached.
    OpenFileSettings {
        /// `open_file_cache`; `None` is off.
        cache: Option<OpenFileCache> = None,
        /// `open_file_cache_valid`: after it an entry is checked again.
        valid: Duration = Duration::from_secs(60),
        /// `open_file_cache_min_uses` within `inactive` for a file to stay open.
        min_uses: u64 = 1,
        /// `open_file_cache_errors`: cache failures too.
        errors: bool = false,
        /// `disable_symlinks`.
        disable_symlinks: DisableSymlinks = DisableSymlinks::Off,
    }
}

/// `open_file_cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFileCache {
    /// `max=` entries.
    pub max: u64,
    /// `inactive=`: an entry is removed if unused for so long.
    pub inactive: Duration,
}

/// `disable_symlinks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DisableSymlinks {
    /// Follow links.
    Off,
    /// A link anywhere in the path is refused.
    On {
        /// `from=`: this initial part of the path is not checked.
        from: Option<Template>,
    },
    /// A link is refused when it and what it points to have different owners.
    IfNotOwner {
        /// `from=`.
        from: Option<Template>,
    },
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "open_file_cache",
        ANY_LEVEL,
        Arity::Between(1, 2),
        "off",
        Apply::With(open_file_cache),
        "Keeps descriptors, sizes and times of files.",
    ),
    once(
        "open_file_cache_valid",
        ANY_LEVEL,
        Arity::Exactly(1),
        "60s",
        Apply::Seconds(|s| &mut s.open_file.valid),
        "After this an entry is checked again.",
    ),
    once(
        "open_file_cache_min_uses",
        ANY_LEVEL,
        Arity::Exactly(1),
        "1",
        Apply::Number(|s| &mut s.open_file.min_uses),
        "Uses within inactive for a file to stay open.",
    ),
    once(
        "open_file_cache_errors",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.open_file.errors),
        "Remember that files are missing.",
    ),
    once(
        "open_file_cache_events",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::WithoutEffect(Value::Flag, "works with kqueue only, in nginx too"),
        "Watch files instead of checking them.",
    ),
    once(
        "disable_symlinks",
        ANY_LEVEL,
        Arity::Between(1, 2),
        "off",
        Apply::With(disable_symlinks),
        "Refuse symbolic links: on, if_not_owner, with from= the part that is not checked.",
    ),
];

fn open_file_cache(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let mut cache = OpenFileCache {
        max: 0,
        inactive: Duration::from_secs(60),
    };
    let mut off = false;
    for word in statement.args() {
        let text = word.bytes.as_slice();
        let read = if let Some(text) = text.strip_prefix(b"max=") {
            value::number(text)
                .filter(|&max| max > 0)
                .map(|max| cache.max = max)
        } else if let Some(text) = text.strip_prefix(b"inactive=") {
            value::seconds(text).map(|time| cache.inactive = time)
        } else {
            (text == b"off").then(|| off = true)
        };
        read.ok_or_else(|| {
            let message = format!(
                "invalid \"open_file_cache\" parameter \"{}\"",
                word.display()
            );
            resolver.emerg(statement, word, message)
        })?;
    }
    if !off && cache.max == 0 {
        let message = "\"open_file_cache\" must have the \"max\" parameter";
        return Err(resolver.emerg(statement, statement.name(), message));
    }
    resolver.level.settings.open_file.cache = Some((!off).then_some(cache));
    Ok(())
}

fn disable_symlinks(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let mut from = None;
    let mut mode = None;
    for word in statement.args() {
        let text = word.bytes.as_slice();
        let is_new = match text {
            b"off" | b"on" | b"if_not_owner" => mode.replace(text).is_none(),
            _ => match text.strip_prefix(b"from=") {
                Some(path) => {
                    let path = resolver.template(path, statement, word)?;
                    from.replace(path).is_none()
                }
                None => {
                    let message = format!("invalid parameter \"{}\"", word.display());
                    return Err(resolver.emerg(statement, word, message));
                }
            },
        };
        if !is_new {
            let first = statement.arg(1);
            let message = format!(
                "duplicate parameters \"{} {}\"",
                first.display(),
                word.display()
            );
            return Err(resolver.emerg(statement, word, message));
        }
    }
    let setting = match mode {
        Some(b"off") if from.is_some() => {
            let message = "\"from=\" cannot be used with \"off\" parameter";
            return Err(resolver.emerg(statement, statement.arg(1), message));
        }
        Some(b"off") => DisableSymlinks::Off,
        Some(b"on") => DisableSymlinks::On { from },
        Some(_) => DisableSymlinks::IfNotOwner { from },
        None => {
            let message =
                "\"disable_symlinks\" must have \"off\", \"on\" or \"if_not_owner\" parameter";
            return Err(resolver.emerg(statement, statement.name(), message));
        }
    };
    resolver.level.settings.open_file.disable_symlinks = Some(setting);
    Ok(())
}
