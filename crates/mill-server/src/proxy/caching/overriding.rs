//! Fields that some applications obey in the place of what the request line and `Host` say.
//!
//! A key of a cache has none of them, so an answer that was made of one is given to others (docs/attacks.md). Whether the
//! application behind obeys them is not known here: they are counted and told, and pass or not as the configuration says.

use crate::local::Local;
use crate::log::Text;
use crate::request::Request;
use mill_config::config::LogLevel;
use mill_runtime::engine::Engine;

/// Counts a request whose answer may be kept, if it came with such fields, and tells the first of them.
pub(super) fn note<E: Engine>(request: &Request, local: &Local<E>) {
    let message = &request.message;
    let mut fields = message.head.fields.iter();
    let found = fields.find(|field| !field.ignored && overrides(field.name.of(&message.bytes)));
    let Some(found) = found else {
        return;
    };
    local.counters.borrow_mut().overriding_fields += 1;
    let name = Text(found.name.of(&message.bytes));
    let value = Text(found.value.of(&message.bytes));
    let text =
        format_args!("client sent \"{name}: {value}\" with a request whose answer may be kept");
    local.log_error(Some(request), LogLevel::Info, text);
}

fn overrides(name: &[u8]) -> bool {
    let is_possible = matches!(name.first(), Some(b'X' | b'x' | b'F' | b'f'));
    is_possible && NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Those that frameworks and gateways are known to obey: for the host, the scheme, the target and the method.
const NAMES: [&[u8]; 13] = [
    b"Forwarded",
    b"X-Forwarded-Host",
    b"X-Forwarded-Server",
    b"X-Host",
    b"X-HTTP-Host-Override",
    b"X-Forwarded-Proto",
    b"X-Forwarded-Scheme",
    b"X-Original-URL",
    b"X-Rewrite-URL",
    b"X-Forwarded-Prefix",
    b"X-HTTP-Method",
    b"X-HTTP-Method-Override",
    b"X-Method-Override",
];

#[cfg(test)]
mod tests {
    use super::overrides;

    #[test]
    fn names_are_compared_whole_and_in_any_case() {
        for name in ["Forwarded", "x-original-url", "X-Method-Override"] {
            assert!(overrides(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "X-Original",
            "X-Original-URLs",
            "Host",
            "X-Forwarded-For",
        ] {
            assert!(!overrides(name.as_bytes()), "{name}");
        }
    }
}
