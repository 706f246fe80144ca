//! Where files are and how they are read: `root`, `alias`, `index`, `try_files`, `sendfile`.

use crate::Text;
use crate::config::location::{TryCandidate, TryFallback, TryFiles};
use crate::config::settings::group;
use crate::config::{LocationName, Template};
use crate::directive::{
    ANY_LEVEL, ANY_LEVEL_AND_IF, Apply, Arity, Directive, LOCATION, Notice, SERVER_LOCATION, Value,
    many, once,
};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};
use crate::value;

group! {
    /// Where files are and how they are read.
    FileSettings {
        /// `root` or `alias`.
        document: Document = Document::Root(Template::literal("html")),
        /// `index`: tried in order; names beginning with `/` are redirected to.
        index: Vec<Template> = vec![Template::literal("index.html")],
        /// `sendfile`.
        sendfile: bool = false,
        /// `sendfile_max_chunk` in bytes; 0 is no limit.
        sendfile_max_chunk: u64 = 2 << 20,
    }
}

/// Where files are: `root` or `alias`.
///
/// The path is absolute unless it begins with a variable; then the evaluated text is joined to
/// [`crate::config::Main::prefix`] if it is relative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// The path followed by the whole request path. No slash at its end (`root /` is empty).
    Root(Template),
    /// The path followed by the request path without its first `location_len` bytes.
    Alias {
        /// The path.
        path: Template,
        /// Length of the location's name.
        location_len: usize,
    },
    /// `alias` in a location by regular expression: the path is the whole file name.
    AliasWhole(Template),
}

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
    once(
        "sendfile",
        ANY_LEVEL_AND_IF,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.files.sendfile),
        "Let the kernel send files.",
    ),
    once(
        "sendfile_max_chunk",
        ANY_LEVEL,
        Arity::Exactly(1),
        "2m",
        Apply::Size(|s| &mut s.files.sendfile_max_chunk),
        "Most bytes of one sendfile call.",
    )
    .unread(
        "what one connection sends in a turn is bounded for all alike",
        Notice::Spared,
    ),
    once(
        "aio",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::WithoutEffect(
            Value::Text,
            "what is not in memory is always read by threads, also with `off`",
        ),
        "Asynchronous reading of files.",
    ),
    once(
        "aio_write",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::WithoutEffect(
            Value::Flag,
            "temporary files are written by the worker, to the page cache",
        ),
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
    match &resolver.level.settings.files.document {
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
    resolver.level.settings.files.document = Some(document);
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
        let list = resolver.level.settings.files.index.get_or_insert_default();
        list.push(template);
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
