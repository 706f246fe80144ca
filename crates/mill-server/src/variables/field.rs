//! Fields of the request and of the answer, cookies, arguments.

use crate::request::Request;
use mill_config::config::variable::names_field;
use mill_http::field::KnownField;
use std::borrow::Cow;

/// `$arg_NAME`: the first argument of that name, as sent.
pub(super) fn argument<'a>(name: &[u8], request: &'a Request) -> Option<&'a [u8]> {
    find_argument(name, &request.args)
}

/// `$cookie_NAME`.
pub(super) fn cookie<'a>(name: &[u8], request: &'a Request) -> Option<&'a [u8]> {
    let message = &request.message;
    let mut fields = message.head.known(KnownField::Cookie);
    fields.find_map(|field| find_cookie(name, field.of(&message.bytes)))
}

/// `$http_NAME`: the first field of that name; several `Cookie` or `X-Forwarded-For` fields are joined.
pub(super) fn request_field<'a>(name: &[u8], request: &'a Request) -> Option<Cow<'a, [u8]>> {
    let message = &request.message;
    let separator = match name {
        b"cookie" => Some(&b"; "[..]),
        b"x_forwarded_for" => Some(&b", "[..]),
        _ => None,
    };
    let fields = message.head.fields.iter().filter(|field| !field.ignored);
    let named = fields.filter(|field| names_field(name, field.name.of(&message.bytes)));
    join(named.map(|field| field.value.of(&message.bytes)), separator)
}

/// `$sent_http_NAME`: the first field of that name; several `Cache-Control` or `Link` fields are joined. `Server` and
/// `Date` have no value, as in nginx.
pub(super) fn sent_field<'a>(name: &[u8], request: &'a Request) -> Option<Cow<'a, [u8]>> {
    let separator = matches!(name, b"cache_control" | b"link").then_some(&b", "[..]);
    let fields = request.sent.fields.iter();
    let named = fields.filter(|field| names_field(name, &field.name));
    join(named.map(|field| &*field.value), separator)
}

fn join<'a>(
    mut values: impl Iterator<Item = &'a [u8]>,
    separator: Option<&[u8]>,
) -> Option<Cow<'a, [u8]>> {
    let first = values.next()?;
    let Some(separator) = separator else {
        return Some(Cow::Borrowed(first));
    };
    let mut joined = Cow::Borrowed(first);
    for value in values {
        let text = joined.to_mut();
        text.extend_from_slice(separator);
        text.extend_from_slice(value);
    }
    Some(joined)
}

fn find_argument<'a>(name: &[u8], args: &'a [u8]) -> Option<&'a [u8]> {
    args.split(|byte| *byte == b'&').find_map(|argument| {
        let (found, value) = argument.split_at_checked(name.len())?;
        let value = value.strip_prefix(b"=")?;
        found.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// Cookies are separated by `;`, and by `,` if the one before it does not match, as nginx reads them.
fn find_cookie<'a>(name: &[u8], field: &'a [u8]) -> Option<&'a [u8]> {
    let mut rest = field;
    while let Some((found, after)) = rest.split_at_checked(name.len()) {
        let value = trim_start(after).strip_prefix(b"=");
        if found.eq_ignore_ascii_case(name)
            && let Some(value) = value
        {
            return trim_start(value).split(|byte| *byte == b';').next();
        }
        let next = rest.iter().position(|byte| matches!(byte, b';' | b','))?;
        rest = trim_start(rest.get(next + 1..)?);
    }
    None
}

fn trim_start(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| **byte == b' ').count();
    text.get(blanks..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_found_by_name_without_case() {
        let check = |args: &str, name: &str, expected: Option<&str>| {
            let found = find_argument(name.as_bytes(), args.as_bytes());
            assert_eq!(found, expected.map(str::as_bytes), "{args} {name}");
        };
        check("a=1&b=2", "b", Some("2"));
        check("a=1&a=2", "a", Some("1"));
        check("A=1", "a", Some("1"));
        check("ab=1&b=2", "b", Some("2"));
        check("a", "a", None);
        check("a=", "a", Some(""));
        check("a=b=c", "a", Some("b=c"));
        check("xa=1", "a", None);
        check("", "a", None);
    }

    #[test]
    fn cookies_are_found_as_nginx_finds_them() {
        let check = |field: &str, name: &str, expected: Option<&str>| {
            let found = find_cookie(name.as_bytes(), field.as_bytes());
            assert_eq!(found, expected.map(str::as_bytes), "{field} {name}");
        };
        check("a=1; b=2", "b", Some("2"));
        check("a=1;b=2", "b", Some("2"));
        check("A=1", "a", Some("1"));
        check("ab=1; b=2", "b", Some("2"));
        check("a = 1; b=2", "a", Some("1"));
        check("a=1,2; b=3", "a", Some("1,2"));
        check("x=1,b=3", "b", Some("3"));
        check("a; b=2", "a", None);
        check("a=", "a", Some(""));
        check("", "a", None);
    }

    #[test]
    fn several_fields_are_joined_where_nginx_joins_them() {
        let check = |values: &[&str], separator: Option<&str>, expected: Option<&str>| {
            let values = values.iter().map(|value| value.as_bytes());
            let joined = join(values, separator.map(str::as_bytes));
            assert_eq!(joined.as_deref(), expected.map(str::as_bytes));
        };
        check(&[], Some(", "), None);
        check(&["a"], Some(", "), Some("a"));
        check(&["a", "b"], Some(", "), Some("a, b"));
        check(&["a", "b"], None, Some("a"));
    }
}
