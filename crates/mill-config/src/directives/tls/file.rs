//! Files with certificates and keys, whose content goes into the configuration.

use crate::Text;
use crate::config::Template;
use crate::diagnostic::{Diagnostic, SourcePosition};
use crate::lexer::Statement;
use crate::resolve::templates::has_variables;
use crate::resolve::{Resolver, join};

/// A file, mostly in PEM, and what stands in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFile {
    /// As it was written: a path, or `data:` and the text itself.
    pub name: Text,
    /// Its content; empty if the name is evaluated.
    pub pem: Text,
    /// For a name with variables, which each handshake evaluates.
    pub evaluated: Option<EvaluatedName>,
    /// Where the configuration names it.
    pub position: SourcePosition,
}

/// A name with variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluatedName {
    pub template: Template,
    /// What paths are relative to; it ends in a slash.
    pub folder: Text,
}

impl TlsFile {
    /// What a name begins with that is the text itself.
    pub const DATA: &[u8] = b"data:";

    /// The names of what `acme_certificate` gets, in the place of files.
    pub const ACME_CERTIFICATE: &str = "$acme_certificate";
    const ACME_KEY: &str = "$acme_certificate_key";

    /// Whether it is what `acme_certificate` gets: nothing stands in it.
    pub fn is_of_acme(&self) -> bool {
        *self.name == *Self::ACME_CERTIFICATE.as_bytes() || *self.name == *Self::ACME_KEY.as_bytes()
    }
}

impl EvaluatedName {
    /// The path for a value.
    pub fn path(&self, value: &[u8]) -> Text {
        join(&self.folder, value)
    }
}

/// A certificate or its key, whose name may have variables.
pub(super) fn certificate_file(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    what: &str,
) -> Result<TlsFile, Box<Diagnostic>> {
    let word = statement.arg(1);
    let of_acme = match statement.name().bytes.as_slice() {
        b"ssl_certificate" => TlsFile::ACME_CERTIFICATE,
        _ => TlsFile::ACME_KEY,
    };
    let is_of_acme = word.bytes == of_acme.as_bytes();
    if !is_of_acme && !has_variables(&word.bytes) {
        return tls_file(resolver, statement, what);
    }
    let evaluated = if is_of_acme {
        None
    } else {
        Some(EvaluatedName {
            template: resolver.template(&word.bytes, statement, word)?,
            folder: resolver.options.conf_prefix(),
        })
    };
    Ok(TlsFile {
        name: Text::from(word.bytes.as_slice()),
        pem: Text::default(),
        evaluated,
        position: resolver.emerg(statement, word, "").place,
    })
}

pub(crate) fn tls_file(
    resolver: &Resolver<'_>,
    statement: &Statement,
    what: &str,
) -> Result<TlsFile, Box<Diagnostic>> {
    let word = statement.arg(1);
    let failed = |reason: String| {
        let message = format!("cannot load {what} \"{}\": {reason}", word.display());
        resolver.emerg(statement, word, message)
    };
    let position = resolver.emerg(statement, word, "").place;
    if let Some(pem) = word.bytes.strip_prefix(TlsFile::DATA) {
        return Ok(TlsFile {
            name: Text::from(TlsFile::DATA),
            pem: Text::from(pem),
            evaluated: None,
            position,
        });
    }
    if has_variables(&word.bytes) {
        return Err(failed(String::from(
            "a name with variables is evaluated in ssl_certificate and ssl_certificate_key only; write a path",
        )));
    }
    // Certificates and keys are relative to the folder of the configuration file, as with nginx.
    let path = join(&resolver.options.conf_prefix(), &word.bytes);
    let pem = resolver.source.read_secret(&path).map_err(|error| {
        failed(format!(
            "BIO_new_file() failed ({}: {})",
            error.code, error.text
        ))
    })?;
    Ok(TlsFile {
        name: path,
        pem: Text::from(pem.as_slice()),
        evaluated: None,
        position,
    })
}

/// The lines of a file with passwords.
pub(crate) fn passwords(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
) -> Result<Vec<Text>, Box<Diagnostic>> {
    let word = statement.arg(1);
    let path = join(&resolver.options.conf_prefix(), &word.bytes);
    let content = resolver.source.read_secret(&path).map_err(|error| {
        let message = format!(
            "open() \"{}\" failed ({}: {})",
            path.display(),
            error.code,
            error.text
        );
        resolver.emerg(statement, word, message)
    })?;
    let lines = content.split(|byte| *byte == b'\n');
    let words = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    Ok(words
        .filter(|word| !word.is_empty())
        .map(Text::from)
        .collect())
}
