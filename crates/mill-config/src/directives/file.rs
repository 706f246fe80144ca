//! Where files are and what is done with them: `root`, `alias`, `index`, `try_files`,
//! `error_page`, `autoindex`, `open_file_cache`, `sendfile`.

use std::sync::Arc;
use std::time::Duration;

use crate::Text;
use crate::config::location::{
    Document, ErrorPage, ErrorPageStatus, LocationName, TryCandidate, TryFallback, TryFiles,
};
use crate::config::settings::{AutoindexFormat, DisableSymlinks, OpenFileCache};
use crate::directive::{
    ANY_LEVEL, ANY_LEVEL_AND_IF, Apply, Arity, Directive, LOCATION, Notice, SERVER_LOCATION, Value,
    many, once,
};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver, templates};
use crate::value;

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "root",
        ANY_LEVEL_AND_IF,
        Arity::Exactly(1),
        Apply::With(document),
        "Directory that the path of a request is appended to.",
    ),
    many(
        "alias",
        LOCATION,
        Arity::Exactly(1),
        Apply::With(document),
        "Path that stands for the location's name.",
    ),
    many(
        "index",
        ANY_LEVEL,
        Arity::AtLeast(1),
        Apply::With(index),
        "Files that answer for a directory.",
    ),
    once(
        "try_files",
        SERVER_LOCATION,
        Arity::AtLeast(2),
        "",
        Apply::With(try_files),
        "The first of these paths that exists; the last is a redirect, a named location, or =status.",
    ),
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
        Apply::Flag(|s| &mut s.recursive_error_pages),
        "Errors of error pages have error pages.",
    ),
    once(
        "autoindex",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.autoindex),
        "List directories.",
    ),
    once(
        "autoindex_format",
        ANY_LEVEL,
        Arity::Exactly(1),
        "html",
        Apply::With(|r, s| {
            let choices = [
                ("html", AutoindexFormat::Html),
                ("json", AutoindexFormat::Json),
                ("jsonp", AutoindexFormat::Jsonp),
                ("xml", AutoindexFormat::Xml),
            ];
            r.level.settings.autoindex_format = Some(r.choice(s, s.arg(1), &choices)?);
            Ok(())
        }),
        "Format of lists of directories.",
    ),
    once(
        "autoindex_exact_size",
        ANY_LEVEL,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.autoindex_exact_size),
        "Sizes in bytes.",
    ),
    once(
        "autoindex_localtime",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.autoindex_localtime),
        "Times in the local zone.",
    ),
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
        Apply::Seconds(|s| &mut s.open_file_cache_valid),
        "After this an entry is checked again.",
    ),
    once(
        "open_file_cache_min_uses",
        ANY_LEVEL,
        Arity::Exactly(1),
        "1",
        Apply::Number(|s| &mut s.open_file_cache_min_uses),
        "Uses within inactive for a file to stay open.",
    ),
    once(
        "open_file_cache_errors",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.open_file_cache_errors),
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
        "sendfile",
        ANY_LEVEL_AND_IF,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.sendfile),
        "Let the kernel send files.",
    ),
    once(
        "sendfile_max_chunk",
        ANY_LEVEL,
        Arity::Exactly(1),
        "2m",
        Apply::Size(|s| &mut s.sendfile_max_chunk),
        "Most bytes of one sendfile call.",
    )
    .unread(
        "what one connection sends in a turn is bounded for all alike",
        Notice::Spared,
    ),
    once(
        "disable_symlinks",
        ANY_LEVEL,
        Arity::Between(1, 2),
        "off",
        Apply::With(disable_symlinks),
        "Refuse symbolic links: on, if_not_owner, with from= the part that is not checked.",
    ),
    once(
        "aio",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::WithoutEffect(
            Value::Text,
            "workers read files themselves, through the page cache",
        ),
        "Asynchronous reading of files.",
    ),
    once(
        "aio_write",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::WithoutEffect(Value::Flag, "no temporary files are written"),
        "Asynchronous writing of files.",
    ),
    once(
        "directio",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::WithoutEffect(Value::Text, "files are always read through the page cache"),
        "Read large files past the page cache.",
    ),
    once(
        "directio_alignment",
        ANY_LEVEL,
        Arity::Exactly(1),
        "512",
        Apply::WithoutEffect(Value::Size, "files are always read through the page cache"),
        "Alignment for directio.",
    ),
    once(
        "read_ahead",
        ANY_LEVEL,
        Arity::Exactly(1),
        "0",
        Apply::WithoutEffect(Value::Size, "the kernel's own read-ahead is left alone"),
        "Read-ahead of the kernel.",
    ),
    once(
        "output_buffers",
        ANY_LEVEL,
        Arity::Exactly(2),
        "2 32k",
        Apply::WithoutEffect(
            Value::Buffers,
            "it changes how files are read, not what is sent",
        ),
        "Buffers for reading files.",
    ),
    once(
        "postpone_output",
        ANY_LEVEL,
        Arity::Exactly(1),
        "1460",
        Apply::WithoutEffect(Value::Size, "it changes when bytes leave, not which"),
        "Collect so much before sending.",
    ),
    once(
        "subrequest_output_buffer_size",
        ANY_LEVEL,
        Arity::Exactly(1),
        "4k",
        Apply::WithoutEffect(Value::Size, "no subrequest keeps its answer in memory"),
        "Buffer for answers of subrequests.",
    ),
];

/// `root` and `alias`.
fn document(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let is_alias = statement.name().bytes == b"alias";
    let name = if is_alias { "alias" } else { "root" };
    match &resolver.level.settings.document {
        None => {}
        Some(earlier) => {
            let earlier = if matches!(earlier, Document::Root(_)) {
                "root"
            } else {
                "alias"
            };
            if earlier == name {
                return Err(resolver.refused(statement, "is duplicate"));
            }
            let message = format!(
                "\"{name}\" directive is duplicate, \"{earlier}\" directive was specified earlier"
            );
            return Err(resolver.emerg(statement, statement.name(), message));
        }
    }
    if is_alias && matches!(resolver.level.name, Some(LocationName::Named(_))) {
        let message = "the \"alias\" directive cannot be used inside the named location";
        return Err(resolver.emerg(statement, statement.name(), message));
    }
    for variable in ["document_root", "realpath_root"] {
        let plain = format!("${variable}");
        let braced = format!("${{{variable}}}");
        let holds = |text: &str| {
            word.bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        if holds(&plain) || holds(&braced) {
            let message =
                format!("the ${variable} variable cannot be used in the \"{name}\" directive");
            return Err(resolver.emerg(statement, word, message));
        }
    }
    let text = word.bytes.as_slice();
    let text = if is_alias {
        text
    } else {
        text.strip_suffix(b"/").unwrap_or(text)
    };
    let is_root_of_all = !is_alias && text.is_empty() && word.bytes == b"/";
    let full = match text.first() {
        Some(b'$') => Text::from(text),
        _ if is_root_of_all => Text::default(),
        _ => resolver.full_name(text),
    };
    let path = resolver.template(&full, statement, word)?;
    let document = match (is_alias, &resolver.level.name) {
        (false, _) => Document::Root(path),
        (true, Some(LocationName::Pattern(_))) => Document::AliasWhole(path),
        (true, name) => {
            let location_len = name.as_ref().map_or(0, |name| name.text().len());
            Document::Alias { path, location_len }
        }
    };
    resolver.level.settings.document = Some(document);
    Ok(())
}

fn index(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let args = statement.args();
    for (number, word) in args.iter().enumerate() {
        let is_last = number + 1 == args.len();
        if word.bytes.first() == Some(&b'/') && !is_last {
            let message = "only the last index in \"index\" directive should be absolute";
            resolver.warn(statement, word, message);
        }
        if word.bytes.is_empty() {
            let message = "index \"\" in \"index\" directive is invalid";
            return Err(resolver.emerg(statement, word, message));
        }
        let template = resolver.template(&word.bytes, statement, word)?;
        let list = resolver.level.settings.index.get_or_insert_default();
        Arc::make_mut(list).push(template);
    }
    Ok(())
}

fn try_files(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let Some((last, rest)) = statement.args().split_last() else {
        return Ok(());
    };
    let mut candidates = Vec::new();
    for word in rest {
        let (path, directory) = match word.bytes.strip_suffix(b"/") {
            Some(path) => (path, true),
            None => (word.bytes.as_slice(), false),
        };
        let path = resolver.template(path, statement, word)?;
        candidates.push(TryCandidate { path, directory });
    }
    let fallback = match last.bytes.strip_prefix(b"=") {
        Some(code) => {
            let status = value::number(code).and_then(|code| u16::try_from(code).ok());
            let status = status.filter(|&status| status <= 999).ok_or_else(|| {
                let message = format!("invalid code \"{}\"", last.display());
                resolver.emerg(statement, last, message)
            })?;
            TryFallback::Status(status)
        }
        None => TryFallback::Redirect(resolver.template(&last.bytes, statement, last)?),
    };
    resolver.level.try_files = Some(TryFiles {
        candidates,
        fallback,
    });
    Ok(())
}

/// Statuses of nginx's own that a client sees as 400: 494 to 497.
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
    let list = resolver.level.settings.error_pages.get_or_insert_default();
    Arc::make_mut(list).extend(pages);
    Ok(())
}

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
    resolver.level.settings.open_file_cache = Some((!off).then_some(cache));
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
    resolver.level.settings.disable_symlinks = Some(setting);
    Ok(())
}
