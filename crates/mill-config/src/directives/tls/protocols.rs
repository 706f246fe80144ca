//! `…_protocols`.

use crate::config::LogLevel;
use crate::diagnostic::{Diagnostic, SourcePosition};
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver};

/// `ssl_protocols`, of those that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsProtocols {
    pub tls12: bool,
    pub tls13: bool,
}

impl Default for TlsProtocols {
    fn default() -> Self {
        Self {
            tls12: true,
            tls13: true,
        }
    }
}

/// `MinProtocol` and `MaxProtocol` of `…_conf_command`: versions outside of them are not spoken, whatever `…_protocols` names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsBounds {
    /// Nothing before TLS 1.3.
    pub is_from_13: bool,
    /// Nothing after TLS 1.2.
    pub is_to_12: bool,
    /// Where the configuration names the last of them.
    pub position: Option<SourcePosition>,
}

impl TlsBounds {
    /// The versions of `protocols` that are within.
    ///
    /// # Errors
    /// There is none; the diagnostic is about the command that leaves none.
    pub fn within(&self, protocols: TlsProtocols) -> Result<TlsProtocols, Box<Diagnostic>> {
        let left = TlsProtocols {
            tls12: protocols.tls12 && !self.is_from_13,
            tls13: protocols.tls13 && !self.is_to_12,
        };
        if left.tls12 || left.tls13 {
            return Ok(left);
        }
        let position = self.position.clone().unwrap_or(SourcePosition::None);
        let message = "MinProtocol and MaxProtocol leave no version of TLS";
        let mut refused = Diagnostic::new(LogLevel::Emerg, message, position);
        refused.help = Some(String::from(
            "change them, or the versions that \"ssl_protocols\" of the same side names",
        ));
        Err(Box::new(refused))
    }
}

/// The versions that `…_protocols` names.
pub(crate) fn protocols(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
) -> Applied<TlsProtocols> {
    let mut found = TlsProtocols {
        tls12: false,
        tls13: false,
    };
    let mut old: Option<Word> = None;
    for word in statement.args() {
        match word.bytes.as_slice() {
            b"TLSv1.2" => found.tls12 = true,
            b"TLSv1.3" => found.tls13 = true,
            b"SSLv2" | b"SSLv3" | b"TLSv1" | b"TLSv1.1" => old = Some(word.clone()),
            _ => {
                let message = format!("invalid value \"{}\"", word.display());
                return Err(resolver.emerg(statement, word, message));
            }
        }
    }
    if let Some(word) = old {
        let message = format!("\"{}\" is not there", word.display());
        let help = "clients that have nothing newer are refused (RFC 8996)";
        if !found.tls12 && !found.tls13 {
            let mut refused = resolver.emerg(statement, &word, message);
            refused.help = Some(format!("{help}; write TLSv1.2 TLSv1.3"));
            return Err(refused);
        }
        resolver.notice(statement, &word, message, help);
    }
    Ok(found)
}
