//! `…_protocols`.

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

impl TlsProtocols {
    /// The versions that both have.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            tls12: self.tls12 && other.tls12,
            tls13: self.tls13 && other.tls13,
        }
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
