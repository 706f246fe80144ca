//! `…_ciphers` and `Ciphersuites`: the ciphers that are used.

use crate::cipher_list::{known_names, select};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};

/// The ciphers of TLS 1.2 that the directive selects. Those that are not there are named in a notice.
pub(crate) fn ciphers(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
) -> Applied<Vec<&'static str>> {
    let word = statement.arg(1);
    let selected = select(&word.display());
    if selected.names.is_empty() {
        let message = format!("no cipher of \"{}\" is there", word.display());
        let mut refused = resolver.emerg(statement, word, message);
        refused.help = Some(format!("there are {}", known_names()));
        return Err(refused);
    }
    if let [first, others @ ..] = &selected.absent[..] {
        let message = match others.len() {
            0 => format!("\"{first}\" is not there"),
            1 => format!("\"{first}\" and one more cipher are not there"),
            count => format!("\"{first}\" and {count} more ciphers are not there"),
        };
        let help = format!(
            "the others are used; of TLS 1.2 there are {}",
            known_names()
        );
        resolver.notice(statement, word, message, &help);
    }
    Ok(selected.names)
}

/// The ciphers of TLS 1.3 that `Ciphersuites` names; `Err`: the first one that is not there.
pub(super) fn ciphers_13(text: &str) -> Result<Vec<&'static str>, String> {
    let mut found = Vec::new();
    for word in text.split(':').filter(|word| !word.is_empty()) {
        let known = CIPHERS_13.iter().find(|name| **name == word);
        found.push(*known.ok_or_else(|| word.to_owned())?);
    }
    Ok(found)
}

/// The ciphers of TLS 1.3, by the names that both OpenSSL and the IANA have for them.
const CIPHERS_13: [&str; 3] = [
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
];
