//! `ssl_verify_client`.

use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};

/// Whether clients are asked for certificates, and what follows from one that is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyClient {
    /// They are not asked.
    Off,
    /// They have to have a valid one.
    On,
    /// They may have one, which has to be valid.
    Optional,
    /// They may have one, whatever issuer it has.
    OptionalNoCa,
}

pub(super) fn verify(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<VerifyClient> {
    let word = statement.arg(1);
    Ok(match word.bytes.as_slice() {
        b"off" => VerifyClient::Off,
        b"on" => VerifyClient::On,
        b"optional" => VerifyClient::Optional,
        b"optional_no_ca" => VerifyClient::OptionalNoCa,
        _ => {
            let message = format!("invalid value \"{}\"", word.display());
            let mut refused = resolver.emerg(statement, word, message);
            refused.help = Some(String::from("one of: on, off, optional, optional_no_ca"));
            return Err(refused);
        }
    })
}
