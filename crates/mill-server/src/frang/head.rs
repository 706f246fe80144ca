//! What a head may look like.

use super::limit::FrangLimit;
use super::multipart;
use crate::log::Text;
use mill_config::config::frang::FrangLimits;
use mill_config::config::settings::FrangSettings;
use mill_http::field::KnownField;
use mill_http::head::{RequestHead, TargetForm};
use mill_http::method::Method;
use mill_http::version::Version;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Limits of all heads: `http_hdr_len`, `http_header_cnt`. 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeadLimits {
    field_bytes: u32,
    fields: u32,
}

/// The end of the connection that a head came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReachedPort {
    /// 0 for a UNIX-domain socket, which has none.
    pub(crate) port: u16,
    pub(crate) is_tls: bool,
}

/// What a request breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken<'a> {
    pub(crate) limit: FrangLimit,
    pub(crate) how: How<'a>,
}

/// How it breaks that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How<'a> {
    /// So many, and the most.
    Number(u64, u64),
    /// A part of the request, and what it says.
    Part(&'static str, &'a [u8]),
    Text(&'static str),
    /// A byte that this does not allow.
    Byte(&'static str, u8),
}

impl HeadLimits {
    pub(crate) const fn of(limits: &FrangLimits) -> Self {
        Self {
            field_bytes: limits.field_bytes,
            fields: limits.fields,
        }
    }

    /// What the head breaks.
    pub(crate) fn broken<'a>(self, head: &RequestHead) -> Option<Broken<'a>> {
        let count = head.fields.len() as u64;
        if self.fields > 0 && count > u64::from(self.fields) {
            return Broken::by_number(FrangLimit::Fields, count, self.fields.into());
        }
        if self.field_bytes == 0 {
            return None;
        }
        let lens = head.fields.iter().map(|field| {
            let len = u64::from(field.name.len) + u64::from(field.value.len);
            // The colon and a blank behind it.
            len + 2
        });
        let longest = lens.max().unwrap_or(0);
        let most = u64::from(self.field_bytes);
        match longest > most {
            true => Broken::by_number(FrangLimit::FieldLen, longest, most),
            false => None,
        }
    }
}

/// What the head breaks of its location's limits. Costs a look at each field at most.
pub(crate) fn broken<'a>(
    settings: &FrangSettings,
    head: &RequestHead,
    bytes: &'a [u8],
    reached: ReachedPort,
) -> Option<Broken<'a>> {
    let method = head.method_name.of(bytes);
    if let Some(methods) = &settings.methods
        && !methods.contains(method)
    {
        return Broken::by_part(FrangLimit::Methods, "method", method);
    }
    let uri_bytes = u64::from(head.target.whole.len);
    if is_over(uri_bytes, settings.uri_bytes) {
        return Broken::by_number(FrangLimit::UriLen, uri_bytes, settings.uri_bytes);
    }
    let content_bytes = head.content_length.unwrap_or(0);
    if is_over(content_bytes, settings.content_bytes) {
        return Broken::by_number(
            FrangLimit::ContentLen,
            content_bytes,
            settings.content_bytes,
        );
    }
    if settings.strict_host
        && let Some(broken) = broken_host(head, bytes, reached)
    {
        return Some(broken);
    }
    if (!settings.allows_method_override || settings.methods.is_some())
        && let Some(method) = overriding_method(head, bytes)
    {
        let is_let_in = |methods: &mill_config::config::frang::FrangMethods| {
            methods.contains(&method.to_ascii_uppercase())
        };
        let is_allowed =
            settings.allows_method_override && settings.methods.as_ref().is_none_or(is_let_in);
        if !is_allowed {
            return Broken::by_part(FrangLimit::MethodOverride, "method", method);
        }
    }
    if settings.checks_content_type()
        && head.method == Method::Post
        && let Some(broken) = broken_content_type(settings, head, bytes)
    {
        return Some(broken);
    }
    broken_form(settings, head, bytes)
}

/// `http_allow_empty_body_content_type` and `http_post_validate`.
fn broken_form<'a>(
    settings: &FrangSettings,
    head: &RequestHead,
    bytes: &[u8],
) -> Option<Broken<'a>> {
    let text = |limit, text| {
        let how = How::Text(text);
        Some(Broken { limit, how })
    };
    let has_content = head.content_length.unwrap_or(0) > 0 || head.chunked;
    let has_type = head.value(KnownField::ContentType).is_some();
    if !settings.allows_type_without_content && has_type && !has_content {
        return text(
            FrangLimit::TypeWithoutContent,
            "there is a Content-Type and no content",
        );
    }
    if settings.validates_post
        && let Some(why) = multipart::broken(head, bytes)
    {
        return text(FrangLimit::PostValidate, why);
    }
    None
}

/// `http_ct_required` and `http_ct_vals`.
fn broken_content_type<'a>(
    settings: &FrangSettings,
    head: &RequestHead,
    bytes: &'a [u8],
) -> Option<Broken<'a>> {
    let value = head
        .value(KnownField::ContentType)
        .map(|span| span.of(bytes));
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        let how = How::Text("there is no Content-Type");
        let limit = FrangLimit::ContentTypeRequired;
        return Some(Broken { limit, how });
    };
    let begins_with = |kind: &mill_config::Text| {
        let start = value.get(..kind.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(kind))
    };
    let types = &settings.content_types;
    if types.is_empty() || types.iter().any(begins_with) {
        return None;
    }
    Broken::by_part(FrangLimit::ContentTypes, "Content-Type", value)
}

/// The method that a field asks for in the place of the request's own.
fn overriding_method<'a>(head: &RequestHead, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let others = head
        .fields
        .iter()
        .filter(|field| field.known == KnownField::Other);
    let overriding = others.filter(|field| {
        let name = field.name.of(bytes);
        OVERRIDING_FIELDS
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
    });
    let mut values = overriding.map(|field| field.value.of(bytes));
    values.next()
}

/// `http_strict_host_checking`: whether what routes a request is the same wherever it is written.
fn broken_host<'a>(
    head: &RequestHead,
    bytes: &'a [u8],
    reached: ReachedPort,
) -> Option<Broken<'a>> {
    let limit = FrangLimit::StrictHost;
    let text = |text| {
        Some(Broken {
            limit,
            how: How::Text(text),
        })
    };
    let field = head.value(KnownField::Host).map(|span| span.of(bytes));
    if head.version == Version::Http10 {
        return match field.is_some() || !head.host.is_empty() {
            true => text("there is a host in a request of HTTP/1.0"),
            false => None,
        };
    }
    let default = if reached.is_tls { 443 } else { 80 };
    let host = head.host.of(bytes);
    let behind = bytes.get(head.host.end() as usize..).unwrap_or_default();
    let port = port(behind).unwrap_or(default);
    if head.target.form == TargetForm::Absolute
        && let Some(field) = field
    {
        let (name, behind) = split_host(field);
        if !same_host(name, host) || self::port(behind).unwrap_or(default) != port {
            return Broken::by_part(limit, "another Host than that of the target:", field);
        }
    }
    if is_address(host) {
        return Broken::by_part(limit, "an address as host:", host);
    }
    if reached.port != 0 && port != reached.port {
        return text("the host has another port than the connection");
    }
    None
}

/// The host of a `Host`, and what is behind it.
fn split_host(field: &[u8]) -> (&[u8], &[u8]) {
    let end = match field.first() {
        Some(b'[') => field.iter().position(|&byte| byte == b']').map(|at| at + 1),
        _ => field.iter().position(|&byte| byte == b':'),
    };
    field.split_at(end.unwrap_or(field.len()))
}

/// Compares without case and without a final dot.
fn same_host(one: &[u8], other: &[u8]) -> bool {
    let bare = |host: &'_ [u8]| host.strip_suffix(b".").unwrap_or(host).to_ascii_lowercase();
    bare(one) == bare(other)
}

/// The port behind a host, if one is written.
fn port(behind: &[u8]) -> Option<u16> {
    let behind = behind.strip_prefix(b".").unwrap_or(behind);
    let digits = behind.strip_prefix(b":")?;
    let len = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let digits = digits.get(..len).filter(|digits| !digits.is_empty())?;
    // A number that is no port equals none.
    Some(std::str::from_utf8(digits).ok()?.parse().unwrap_or(0))
}

/// Whether a host is an IP address.
fn is_address(host: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(host) else {
        return false;
    };
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    inner.is_some_and(|text| text.parse::<Ipv6Addr>().is_ok()) || text.parse::<Ipv4Addr>().is_ok()
}

const fn is_over(count: u64, most: u64) -> bool {
    most > 0 && count > most
}

impl Broken<'_> {
    const fn by_number(limit: FrangLimit, count: u64, most: u64) -> Option<Self> {
        let how = How::Number(count, most);
        Some(Self { limit, how })
    }
}

impl<'a> Broken<'a> {
    const fn by_part(limit: FrangLimit, part: &'static str, text: &'a [u8]) -> Option<Self> {
        let how = How::Part(part, text);
        Some(Self { limit, how })
    }
}

impl fmt::Display for Broken<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.how {
            How::Byte(name, _) => name,
            _ => self.limit.name(),
        };
        write!(formatter, "limiting client by \"{name}\" of frang: ")?;
        match self.how {
            How::Number(count, most) => write!(formatter, "{count}, and {most} is the most"),
            How::Part(part, text) => write!(formatter, "{part} \"{}\"", Text(text)),
            How::Text(text) => formatter.write_str(text),
            How::Byte(_, byte) => write!(formatter, "byte 0x{byte:02x}"),
        }
    }
}

/// Fields that servers take for the method (Tempesta FW knows these three).
const OVERRIDING_FIELDS: [&[u8]; 3] = [
    b"x-http-method-override",
    b"x-http-method",
    b"x-method-override",
];

#[cfg(test)]
mod tests;
