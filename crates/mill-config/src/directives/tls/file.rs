//! Files with certificates and keys, whose content goes into the configuration.

use crate::Text;
use crate::diagnostic::{Diagnostic, SourcePosition};
use crate::lexer::Statement;
use crate::resolve::{Resolver, join};

/// A file, mostly in PEM, and what stands in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFile {
    /// As it was written: a path, or `data:` and the text itself.
    pub name: Text,
    /// Its content.
    pub pem: Text,
    /// Where the configuration names it.
    pub position: SourcePosition,
}

impl TlsFile {
    /// The names of what `acme_certificate` gets, in the place of files.
    pub const ACME_CERTIFICATE: &str = "$acme_certificate";
    const ACME_KEY: &str = "$acme_certificate_key";

    /// Whether it is what `acme_certificate` gets: nothing stands in it.
    pub fn is_of_acme(&self) -> bool {
        *self.name == *Self::ACME_CERTIFICATE.as_bytes() || *self.name == *Self::ACME_KEY.as_bytes()
    }
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
    if let Some(pem) = word.bytes.strip_prefix(b"data:") {
        return Ok(TlsFile {
            name: Text::from(&b"data:"[..]),
            pem: Text::from(pem),
            position,
        });
    }
    let of_acme = match statement.name().bytes.as_slice() {
        b"ssl_certificate" => TlsFile::ACME_CERTIFICATE,
        b"ssl_certificate_key" => TlsFile::ACME_KEY,
        _ => "",
    };
    if !of_acme.is_empty() && word.bytes == of_acme.as_bytes() {
        return Ok(TlsFile {
            name: Text::from(of_acme),
            pem: Text::default(),
            position,
        });
    }
    if word.bytes.contains(&b'$') {
        return Err(failed(String::from(
            "names with variables are not there yet; write a path, or $acme_certificate and $acme_certificate_key",
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
