//! The head of an upstream server's answer, as the head of ours.

use super::body::AnswerBody;
use super::http;
use crate::local::{Local, ResponseOf};
use crate::response::{FieldLine, FieldText};
use mill_config::config::pass::PassProtocol;
use mill_config::config::settings::{IgnoredFields, PassSettings};
use mill_http::date::parse_http_date;
use mill_http::field::{Field, KnownField};
use mill_http::h1::response::ResponseHead;
use mill_http::span::Span;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::rc::Rc;

/// A parsed head with its bytes. Its fields are in the trace.
#[derive(Debug)]
pub(super) struct AnswerHead {
    pub(super) head: ResponseHead,
    /// Reads what follows.
    pub(super) body: AnswerBody,
    pub(super) bytes: Rc<Vec<u8>>,
}

/// The head alone: of an answer that has come, or of one that is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadParts<'a> {
    pub(super) head: &'a ResponseHead,
    pub(super) bytes: &'a Rc<Vec<u8>>,
}

/// What the answer says to us, and not to the client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Accel {
    /// `X-Accel-Redirect`: answer with this URI instead, or with a named location.
    pub(super) redirect: Option<Vec<u8>>,
    /// `X-Accel-Buffering`.
    pub(super) buffering: Option<bool>,
    /// `X-Accel-Limit-Rate`, bytes per second.
    pub(super) limit_rate: Option<u64>,
    /// `X-Accel-Charset`.
    pub(super) charset: Option<Vec<u8>>,
}

impl AnswerHead {
    pub(super) const fn parts(&self) -> HeadParts<'_> {
        HeadParts {
            head: &self.head,
            bytes: &self.bytes,
        }
    }

    /// The value of `Content-Length`, where the head alone is sent: to a HEAD, or with 304.
    pub(super) fn announced_length(&self, fields: &[Field]) -> Option<u64> {
        let mut fields = fields.iter();
        let field = fields.find(|field| field.known == KnownField::ContentLength)?;
        let value = field.value.of(&self.bytes);
        std::str::from_utf8(value).ok()?.parse().ok()
    }
}

impl HeadParts<'_> {
    /// The answer without its content, and what the server tells us.
    pub(super) fn respond<E: Engine>(
        &self,
        fields: &[Field],
        settings: &PassSettings,
        protocol: PassProtocol,
        needs_date: bool,
        local: &Local<E>,
    ) -> (Box<ResponseOf<E>>, Accel) {
        let mut response = local.take_response(Status(self.head.status));
        response.proxied = true;
        response.ranges = settings.force_ranges;
        // nginx passes the phrase on.
        let reason = self.head.reason(self.bytes);
        let usual = response.status.reason().unwrap_or_default();
        if !reason.is_empty() && reason != usual.as_bytes() {
            response.reason = Some(FieldText::copy(reason));
        }
        let mut accel = Accel::default();
        response.fields.reserve(fields.len());
        let mut names_fields = false;
        for field in fields {
            let value = field.value.of(self.bytes);
            if field.known.bit() & ACCEL != 0 {
                accel.read(settings, field.known, value);
            }
            if is_hidden(field, self.bytes, settings, protocol) {
                continue;
            }
            match field.known {
                // They concern the connection to the server.
                KnownField::Connection => names_fields |= http::names_fields(value),
                KnownField::KeepAlive
                | KnownField::ContentLength
                | KnownField::TransferEncoding => {}
                // The filter of ranges says it.
                KnownField::AcceptRanges if settings.force_ranges => {}
                KnownField::ContentType => response.content_type = Some(self.text(field.value)),
                KnownField::ETag => response.etag = Some(self.text(field.value)),
                known => {
                    match known {
                        KnownField::LastModified if needs_date => {
                            response.last_modified = parse_http_date(value);
                        }
                        KnownField::Server => response.has_server = true,
                        KnownField::Date => response.has_date = true,
                        _ => {}
                    }
                    response.fields.push(FieldLine {
                        name: self.text(field.name),
                        value: self.text(field.value),
                    });
                }
            }
        }
        if names_fields {
            let lines = &mut response.fields;
            lines.retain(|line| !self.is_of_connection(&line.name, fields));
        }
        (response, accel)
    }

    /// Whether a field concerns the connection to the server alone, because `Connection` names it (RFC 9110 7.6.1).
    /// `Upgrade` of a switch of protocols is for the client, too, and an answer keeps its `Server` and `Date`.
    fn is_of_connection(&self, name: &[u8], fields: &[Field]) -> bool {
        let is_kept = match KnownField::parse(name) {
            KnownField::Server | KnownField::Date => true,
            KnownField::Upgrade => Status(self.head.status) == Status::SWITCHING_PROTOCOLS,
            _ => false,
        };
        let mut lists = fields.iter().filter(|f| f.known == KnownField::Connection);
        !is_kept && lists.any(|list| http::has_option(list.value.of(self.bytes), name))
    }

    fn text(&self, part: Span) -> FieldText {
        FieldText::part(self.bytes, part)
    }
}

impl Accel {
    fn read(&mut self, settings: &PassSettings, known: KnownField, value: &[u8]) {
        let is_heeded = |field| !settings.ignore_headers.contains(field);
        match known {
            KnownField::XAccelRedirect if is_heeded(IgnoredFields::ACCEL_REDIRECT) => {
                // Of several the first one counts, as in nginx.
                self.redirect.get_or_insert_with(|| value.to_vec());
            }
            KnownField::XAccelBuffering if is_heeded(IgnoredFields::ACCEL_BUFFERING) => {
                self.buffering = match value.to_ascii_lowercase().as_slice() {
                    b"yes" => Some(true),
                    b"no" => Some(false),
                    _ => self.buffering,
                };
            }
            KnownField::XAccelLimitRate if is_heeded(IgnoredFields::ACCEL_LIMIT_RATE) => {
                let number = std::str::from_utf8(value).ok();
                self.limit_rate = number.and_then(|number| number.parse().ok());
            }
            KnownField::XAccelCharset if is_heeded(IgnoredFields::ACCEL_CHARSET) => {
                self.charset = Some(value.to_vec());
            }
            _ => {}
        }
    }
}

/// Whether the field is kept from the client.
fn is_hidden(field: &Field, bytes: &[u8], settings: &PassSettings, protocol: PassProtocol) -> bool {
    if settings.hide_header.is_empty() && settings.pass_header.is_empty() {
        hidden(protocol) & field.known.bit() != 0
    } else {
        settings.hides(protocol, field.name.of(bytes))
    }
}

/// What [`PassSettings::hides`] says where the configuration says nothing.
const fn hidden(protocol: PassProtocol) -> u64 {
    match protocol {
        PassProtocol::Http => {
            ACCEL | KnownField::Date.bit() | KnownField::Server.bit() | KnownField::XPad.bit()
        }
        PassProtocol::Fastcgi | PassProtocol::Scgi => ACCEL | KnownField::Status.bit(),
        PassProtocol::Uwsgi => ACCEL,
        PassProtocol::Memcached => 0,
    }
}

/// Fields that tell us something.
const ACCEL: u64 = KnownField::XAccelBuffering.bit()
    | KnownField::XAccelCharset.bit()
    | KnownField::XAccelExpires.bit()
    | KnownField::XAccelLimitRate.bit()
    | KnownField::XAccelRedirect.bit();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_that_are_hidden_are_those_of_the_configuration() {
        let settings = PassSettings::default();
        let names = [
            "Date",
            "Server",
            "X-Pad",
            "Status",
            "X-Accel-Expires",
            "X-Accel-Redirect",
            "X-Accel-Limit-Rate",
            "X-Accel-Buffering",
            "X-Accel-Charset",
            "X-Accel-Other",
            "Connection",
            "ETag",
            "Other",
        ];
        for protocol in [
            PassProtocol::Http,
            PassProtocol::Fastcgi,
            PassProtocol::Uwsgi,
            PassProtocol::Scgi,
            PassProtocol::Memcached,
        ] {
            for name in names {
                let bit = KnownField::parse(name.as_bytes()).bit();
                let is_hidden = hidden(protocol) & bit != 0;
                let expected = settings.hides(protocol, name.as_bytes());
                assert_eq!(is_hidden, expected, "{protocol:?} {name}");
            }
        }
    }
}
