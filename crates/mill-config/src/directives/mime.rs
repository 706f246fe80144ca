//! `types` and `default_type`; sets of types, as in `gzip_types`.

use std::sync::Arc;

use crate::Text;
use crate::config::MimeTypes;
use crate::config::settings::group;
use crate::directive::{ANY_LEVEL, Apply, Arity, Directive, Value, many, once};
use crate::directives::main_context;
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};

group! {
    /// Media types of files.
    MimeSettings {
        /// `types`.
        types: Arc<MimeTypes> = Arc::new(MimeTypes::default()),
        /// `default_type`; empty sends no Content-Type.
        default_type: Text = Text::from("text/plain"),
    }
}

/// A set of media types, as in `gzip_types`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MimeSet {
    /// `*`.
    Any,
    /// These, lower-cased and sorted; `text/html` is always among them.
    Only(Vec<Text>),
}

impl MimeSet {
    /// Whether a media type (without parameters) belongs to the set.
    pub fn contains(&self, kind: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Only(kinds) => kinds
                .binary_search_by(|known| {
                    known
                        .iter()
                        .copied()
                        .cmp(kind.iter().map(u8::to_ascii_lowercase))
                })
                .is_ok(),
        }
    }
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "types",
        ANY_LEVEL,
        Arity::Exactly(0),
        Apply::Block(types),
        "Media types and the extensions of their files.",
    ),
    once(
        "default_type",
        ANY_LEVEL,
        Arity::Exactly(1),
        "text/plain",
        Apply::With(|r, s| {
            r.level.settings.mime.default_type = Some(Text::from(s.arg(1).bytes.as_slice()));
            Ok(())
        }),
        "The media type of files with unknown extensions.",
    ),
    once(
        "types_hash_max_size",
        ANY_LEVEL,
        Arity::Exactly(1),
        "1024",
        Apply::WithoutEffect(Value::Number, "tables size themselves"),
        "Size of the table of types.",
    ),
    once(
        "types_hash_bucket_size",
        ANY_LEVEL,
        Arity::Exactly(1),
        "64",
        Apply::WithoutEffect(Value::Number, "tables size themselves"),
        "Bucket of the table of types.",
    ),
];

/// nginx's types without `types`.
pub(crate) fn default_types() -> MimeTypes {
    let mut types = MimeTypes::default();
    for (extension, kind) in [
        ("html", "text/html"),
        ("gif", "image/gif"),
        ("jpg", "image/jpeg"),
    ] {
        types.insert(extension.as_bytes(), Text::from(kind));
    }
    types
}

/// Several blocks in one context are merged.
fn types(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    resolver.level.settings.mime.types.get_or_insert_default();
    resolver.entries(statement, entry)
}

fn entry(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let name = statement.name();
    if name.bytes == b"include" {
        let [word] = statement.args() else {
            let message = "invalid number of arguments in \"include\" directive";
            return Err(resolver.emerg(statement, name, message));
        };
        return main_context::include_from(resolver, statement, word);
    }
    let kind = Text::from(name.bytes.as_slice());
    for word in statement.args() {
        let table = resolver.level.settings.mime.types.get_or_insert_default();
        let previous = Arc::make_mut(table).insert(&word.bytes, kind.clone());
        if let Some(previous) = previous {
            let message = format!(
                "duplicate extension \"{}\", content type: \"{}\", previous content type: \"{}\"",
                word.display().to_lowercase(),
                kind.display(),
                previous.display()
            );
            resolver.warn(statement, word, message);
        }
    }
    Ok(())
}

impl Resolver<'_> {
    /// The set of a statement, together with earlier lines of the same block: several lines are merged, and `text/html`
    /// is always in the set.
    pub(super) fn media_types(
        &mut self,
        statement: &Statement,
        earlier: Option<MimeSet>,
    ) -> MimeSet {
        let mut kinds = match earlier {
            None => vec![Text::from("text/html")],
            Some(MimeSet::Any) => return MimeSet::Any,
            Some(MimeSet::Only(kinds)) => kinds,
        };
        for word in statement.args() {
            if word.bytes == b"*" {
                return MimeSet::Any;
            }
            let kind = Text::from(word.bytes.to_ascii_lowercase());
            match kinds.binary_search(&kind) {
                Ok(_) => {
                    let message = format!("duplicate MIME type \"{}\"", word.display());
                    self.warn(statement, word, message);
                }
                Err(index) => kinds.insert(index, kind),
            }
        }
        MimeSet::Only(kinds)
    }
}
