//! Certificates from authorities: `acme_…`, in the words of nginx's ACME module.

/// What stands in an `acme_issuer`.
pub(crate) mod issuer;
/// What servers want.
pub(crate) mod order;

use crate::directive::{Apply, Arity, Directive, HTTP, SERVER, many, once};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};
use crate::value;

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "acme_issuer",
        HTTP,
        Arity::Exactly(1),
        Apply::Block(issuer::block),
        "An authority that issues certificates: uri, account_key, challenge, contact, external_account_key, preferred_chain, profile, ssl_trusted_certificate, ssl_verify, state_path, accept_terms_of_service, common_name_in_csr.",
    ),
    once(
        "acme_shared_zone",
        HTTP,
        Arity::Exactly(1),
        "zone=ngx_acme_shared:256k",
        Apply::With(shared_zone),
        "Name and size of the memory for certificates, which is taken as needed.",
    ),
    once(
        "acme_certificate",
        SERVER,
        Arity::AtLeast(1),
        "",
        Apply::With(order::certificate),
        "The issuer of the server's certificate, and the names for it (those of server_name if there is none); key=.",
    ),
];

/// The size is checked, and memory taken as needed.
fn shared_zone(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let Some(zone) = word.bytes.strip_prefix(b"zone=") else {
        return Err(resolver.refused(statement, "must have \"zone\" parameter"));
    };
    let colon = zone.iter().position(|byte| *byte == b':');
    let (name, size) = zone.split_at(colon.unwrap_or(zone.len()));
    let size = value::size(size.get(1..).unwrap_or_default());
    if name.is_empty() || size.is_none() {
        let message = format!("invalid zone \"{}\"", word.display());
        return Err(resolver.emerg(statement, word, message));
    }
    if size.is_some_and(|size| size < ZONE_BYTES_MIN) {
        let message = format!("zone \"{}\" is too small", word.display());
        return Err(resolver.emerg(statement, word, message));
    }
    Ok(())
}

/// Eight pages, as for all zones.
const ZONE_BYTES_MIN: u64 = 8 * 4096;
