//! The head of an answer while it arrives, in the protocol of the location.

use super::fault::{Fault, Step};
use super::trace::HeadMemory;
use crate::request::Request;
use mill_config::config::settings::Settings;
use mill_config::config::{LogLevel, PassProtocol};
use mill_http::h1::response::{
    CgiScan, Framing, RequestKind, ResponseFault, ResponseHead, ResponseScan,
};
use mill_http::limits::ResponseRules;
use mill_http::version::Version;
use mill_upstream::fastcgi::{self, FastcgiFault};
use mill_upstream::memcached::{self, MemcachedFault, MemcachedHead, ValueHead};
use std::fmt;

/// Reads one head. Bytes that do not belong to it stay where they are.
#[derive(Debug)]
pub(super) enum HeadScan {
    Http(ResponseScan),
    /// Of uwsgi and SCGI.
    Cgi {
        scan: CgiScan,
        fresh: CgiScan,
    },
    Fastcgi {
        scan: fastcgi::AnswerHead,
        keep_conn: bool,
    },
    Memcached {
        key: Vec<u8>,
        bytes_max: u32,
        gzip_flag: u64,
        value: Option<ValueHead>,
    },
}

/// What goes to the error log while a head is read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Notice<'a> {
    /// Standard error of a FastCGI program.
    Stderr(&'a [u8]),
    /// Why memcached's answer is none.
    Memcached(memcached::Described<'a>),
    /// The key that memcached does not have.
    NotFound(&'a [u8]),
}

impl Notice<'_> {
    pub(super) const fn level(&self) -> LogLevel {
        match self {
            Self::NotFound(_) => LogLevel::Info,
            _ => LogLevel::Error,
        }
    }

    /// Whether `fastcgi_catch_stderr` names a part of it: then the answer is invalid.
    pub(super) fn is_caught(&self, request: &Request) -> bool {
        let Self::Stderr(text) = self else {
            return false;
        };
        let mut caught = request.location.fastcgi_params.catch_stderr.iter();
        caught.any(|part| part.is_empty() || text.windows(part.len()).any(|seen| seen == &**part))
    }
}

impl fmt::Display for Notice<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stderr(text) => write!(out, "{}", Stderr(text))?,
            Self::Memcached(fault) => write!(out, "{fault}")?,
            Self::NotFound(key) => write!(
                out,
                "key: \"{}\" was not found by memcached",
                String::from_utf8_lossy(key)
            )?,
        }
        write!(out, " while {}", Step::ReadingHead.words())
    }
}

/// What a FastCGI program has written to standard error, in nginx's words: without what ends the last line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stderr<'a>(pub(super) &'a [u8]);

impl fmt::Display for Stderr<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.0;
        while let [rest @ .., b'\n' | b'\r' | b'.' | b' '] = text {
            text = rest;
        }
        let text = String::from_utf8_lossy(text);
        write!(out, "FastCGI sent in stderr: \"{text}\"")
    }
}

impl HeadScan {
    /// `key` is that of a lookup in memcached.
    pub(super) fn new(
        protocol: PassProtocol,
        kind: RequestKind,
        settings: &Settings,
        key: &[u8],
    ) -> Self {
        let buffer_size = settings.pass_settings(protocol).buffer_size;
        let bytes_max = u32::try_from(buffer_size).unwrap_or(u32::MAX);
        match protocol {
            PassProtocol::Http => {
                let rules = ResponseRules {
                    head_bytes_max: bytes_max,
                    ..ResponseRules::default()
                };
                Self::Http(ResponseScan::new(kind, &rules))
            }
            PassProtocol::Uwsgi | PassProtocol::Scgi => {
                let scan = CgiScan::new(kind, bytes_max);
                Self::Cgi { scan, fresh: scan }
            }
            PassProtocol::Fastcgi => Self::Fastcgi {
                scan: fastcgi::AnswerHead::new(kind, bytes_max),
                keep_conn: settings.fastcgi_params.keep_conn,
            },
            PassProtocol::Memcached => Self::Memcached {
                key: key.to_vec(),
                bytes_max,
                gzip_flag: settings.memcached_content.gzip_flag,
                value: None,
            },
        }
    }

    /// Begins again, behind an interim head. FastCGI and memcached have none.
    pub(super) fn restart(&mut self) -> Result<(), Fault> {
        match self {
            Self::Http(scan) => scan.restart(),
            Self::Cgi { scan, fresh } => *scan = *fresh,
            _ => return Err(Fault::InvalidHead(ResponseFault::StatusCode)),
        }
        Ok(())
    }

    /// Looks at all unread bytes. Returns how many were taken, which must not come again, and the head once it is whole:
    /// `memory` then has its bytes and fields.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        memory: &mut HeadMemory,
        notify: impl FnMut(Notice<'_>),
    ) -> (usize, Result<Option<ResponseHead>, Fault>) {
        if let Self::Http(scan) = self {
            let fields = &mut memory.fields;
            let parsed = scan.parse_fields(bytes, |field| fields.push(field));
            return take_head(parsed, bytes, &mut memory.bytes);
        }
        let (taken, found) = self.take_other(bytes, &mut memory.bytes, notify);
        if let Ok(Some(head)) = &found {
            memory.fields.extend(head.field_spans(&memory.bytes));
        }
        (taken, found)
    }

    /// The same for protocols whose fields are looked for once the head is whole.
    fn take_other(
        &mut self,
        bytes: &[u8],
        head: &mut Vec<u8>,
        notify: impl FnMut(Notice<'_>),
    ) -> (usize, Result<Option<ResponseHead>, Fault>) {
        match self {
            Self::Http(scan) => take_head(scan.parse(bytes), bytes, head),
            Self::Cgi { scan, .. } => take_head(scan.parse(bytes), bytes, head),
            Self::Fastcgi { scan, keep_conn } => {
                take_records(scan, *keep_conn, bytes, head, notify)
            }
            Self::Memcached {
                key,
                bytes_max,
                gzip_flag,
                value,
            } => {
                let parsed = memcached::parse_head(bytes, key, *bytes_max);
                let found = lookup(parsed, bytes, key, notify);
                found.map_or_else(
                    |fault| (0, Err(fault)),
                    |found| match found {
                        None => (0, Ok(None)),
                        Some(found) => {
                            *value = found.value;
                            (found.len, Ok(Some(head_of_value(&found, *gzip_flag, head))))
                        }
                    },
                )
            }
        }
    }
}

/// Copies a head that is whole.
fn take_head(
    parsed: Result<Option<ResponseHead>, ResponseFault>,
    bytes: &[u8],
    head: &mut Vec<u8>,
) -> (usize, Result<Option<ResponseHead>, Fault>) {
    match parsed {
        Ok(Some(parsed)) => {
            head.extend_from_slice(bytes.get(..parsed.len).unwrap_or_default());
            (parsed.len, Ok(Some(parsed)))
        }
        other => (0, other.map_err(fault_of)),
    }
}

fn fault_of(fault: ResponseFault) -> Fault {
    match fault {
        ResponseFault::HeadTooLong { .. } => Fault::HeadTooBig,
        fault => Fault::InvalidHead(fault),
    }
}

fn take_records(
    scan: &mut fastcgi::AnswerHead,
    keep_conn: bool,
    bytes: &[u8],
    head: &mut Vec<u8>,
    mut notify: impl FnMut(Notice<'_>),
) -> (usize, Result<Option<ResponseHead>, Fault>) {
    match scan.on_bytes(bytes, head, |text| notify(Notice::Stderr(text))) {
        Ok((taken, found)) => {
            let found = found.map(|head| ResponseHead {
                keep_alive: keep_conn,
                ..head
            });
            (taken, Ok(found))
        }
        Err(FastcgiFault::Response(fault)) => (0, Err(fault_of(fault))),
        Err(fault) => (0, Err(Fault::Fastcgi(fault, Step::ReadingHead))),
    }
}

fn lookup(
    parsed: Result<Option<MemcachedHead>, MemcachedFault>,
    bytes: &[u8],
    key: &[u8],
    mut notify: impl FnMut(Notice<'_>),
) -> Result<Option<MemcachedHead>, Fault> {
    match parsed {
        Ok(found) => {
            if found.is_some_and(|found| found.value.is_none()) {
                notify(Notice::NotFound(key));
            }
            Ok(found)
        }
        Err(MemcachedFault::HeadTooLong) => Err(Fault::HeadTooBig),
        Err(fault) => {
            notify(Notice::Memcached(fault.describe(bytes, key)));
            Err(Fault::Logged)
        }
    }
}

/// The head of HTTP that says the same.
fn head_of_value(found: &MemcachedHead, gzip_flag: u64, head: &mut Vec<u8>) -> ResponseHead {
    let is_compressed = found
        .value
        .is_some_and(|value| value.flags & gzip_flag != 0);
    if is_compressed {
        head.extend_from_slice(b"Content-Encoding: gzip\r\n");
    }
    head.extend_from_slice(b"\r\n");
    ResponseHead {
        status: if found.value.is_some() { 200 } else { 404 },
        version: Version::Http11,
        framing: Framing::Length(found.value.map_or(0, |value| value.length)),
        keep_alive: true,
        len: head.len(),
        fields_start: 0,
    }
}
