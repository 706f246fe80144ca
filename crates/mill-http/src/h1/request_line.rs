//! The request line, from the method to the version.
//!
//! RFC 9112 3, as nginx reads it: several spaces between the parts and spaces after the version are accepted, since all
//! readers agree on their meaning; so are bytes above 0x7f and `"<>^`{|}` in a target, which browsers and scripts do
//! send. Control bytes, `#`, and `\` in a path are not.

use crate::authority::parse_authority;
use crate::h1::parse::Stop;
use crate::h1::scan::find_target_stop;
use crate::head::{RequestHead, Target, TargetForm};
use crate::method::{Method, is_method_byte};
use crate::refusal::Refusal;
use crate::span::Span;
use crate::version::Version;

const INVALID: Stop = Stop::Refused(Refusal::InvalidRequestLine);

/// Parses the line that begins at `start`; returns where the next one begins.
pub(crate) fn parse(
    bytes: &[u8],
    start: usize,
    head: &mut RequestHead,
    accept_bare_lf: bool,
) -> Result<usize, Stop> {
    let after_method = method(bytes, start, head)?;
    let target_start = skip_spaces(bytes, after_method)?;
    let target_end = match byte(bytes, target_start)? {
        b'/' => {
            head.target = Target::default();
            path_and_query(bytes, target_start, target_start, head)?
        }
        b'*' if head.method == Method::Options => {
            head.target = Target {
                form: TargetForm::Asterisk,
                ..Target::default()
            };
            asterisk(bytes, target_start, head)?
        }
        _ if head.method == Method::Connect => authority_form(bytes, target_start, head)?,
        letter if letter.is_ascii_alphabetic() => absolute_form(bytes, target_start, head)?,
        _ => return Err(INVALID),
    };
    let (line_end, next) = match head.is_of_fields {
        true => version_2(bytes, target_end, head)?,
        false => version(bytes, target_end, head, accept_bare_lf)?,
    };
    head.request_line = Span::between(start, line_end);
    Ok(next)
}

fn byte(bytes: &[u8], at: usize) -> Result<u8, Stop> {
    bytes.get(at).copied().ok_or(Stop::Partial)
}

fn skip_spaces(bytes: &[u8], mut at: usize) -> Result<usize, Stop> {
    while byte(bytes, at)? == b' ' {
        at += 1;
    }
    Ok(at)
}

/// The method and the space after it; returns where that ends.
fn method(bytes: &[u8], start: usize, head: &mut RequestHead) -> Result<usize, Stop> {
    if let Some([b'G', b'E', b'T', b' ', ..]) = bytes.get(start..) {
        head.method = Method::Get;
        head.method_name = Span::between(start, start + 3);
        return Ok(start + 4);
    }
    let mut at = start;
    while is_method_byte(byte(bytes, at)?) {
        at += 1;
    }
    if byte(bytes, at)? != b' ' || at == start {
        return Err(Refusal::InvalidMethod.into());
    }
    head.method_name = Span::between(start, at);
    head.method = Method::parse(head.method_name.of(bytes));
    Ok(at + 1)
}

/// Path and query from `at`, which is at a slash or a question mark; returns where they end.
/// `whole` is where `$request_uri` begins.
fn path_and_query(
    bytes: &[u8],
    whole: usize,
    at: usize,
    head: &mut RequestHead,
) -> Result<usize, Stop> {
    let target = &mut head.target;
    let mut end = path(bytes, at, target)?;
    if target.path.is_empty() {
        target.path = Span::between(at, end);
    }
    let question = end;
    if bytes.get(question) == Some(&b'?') {
        target.has_query = true;
        end = find_target_stop(bytes, question + 1);
        target.query = Span::between(question + 1, end);
    }
    target.whole = Span::between(whole, end);
    end_target(bytes, end)
}

/// Checks that the byte at `end` may follow a target: a space, or the line's end.
fn end_target(bytes: &[u8], end: usize) -> Result<usize, Stop> {
    match byte(bytes, end)? {
        b' ' | b'\r' | b'\n' => Ok(end),
        _ => Err(INVALID),
    }
}

/// Scans the path from its slash; returns where it ends: at `?`, or a byte that may not be in a path.
fn path(bytes: &[u8], start: usize, target: &mut Target) -> Result<usize, Stop> {
    let mut previous = 0;
    let rest = bytes.get(start..).unwrap_or(&[]);
    for (at, &byte) in (start..).zip(rest) {
        match PATH_CLASS.get(usize::from(byte)).copied().unwrap_or(STOP) {
            ORDINARY => {}
            STOP => return Ok(at),
            _ => match byte {
                b'/' | b'.' if previous == b'/' => target.complex = true,
                b'%' => target.quoted = true,
                b'+' => target.plus = true,
                _ => {}
            },
        }
        previous = byte;
    }
    Err(Stop::Partial)
}

const ORDINARY: u8 = 0;
const SPECIAL: u8 = 1;
const STOP: u8 = 2;

/// The meaning of a byte in a path: none, some, or the path's end.
const PATH_CLASS: [u8; 256] = {
    let mut class = [ORDINARY; 256];
    let mut byte = 0;
    while byte <= 0x20 {
        class[byte] = STOP;
        byte += 1;
    }
    class[0x7f] = STOP;
    class[b'?' as usize] = STOP;
    class[b'/' as usize] = SPECIAL;
    class[b'.' as usize] = SPECIAL;
    class[b'%' as usize] = SPECIAL;
    class[b'+' as usize] = SPECIAL;
    // A fragment is no part of a target (RFC 9112 3.2): some readers cut it off, others look it up.
    class[b'#' as usize] = STOP;
    // Invalid in RFC 3986; some readers take it for a slash.
    class[b'\\' as usize] = STOP;
    class
};

/// `*`, RFC 9112 3.2.4.
fn asterisk(bytes: &[u8], start: usize, head: &mut RequestHead) -> Result<usize, Stop> {
    head.target.whole = Span::between(start, start + 1);
    head.target.path = head.target.whole;
    end_target(bytes, start + 1)
}

/// `host:port`, RFC 9112 3.2.3; also origin form, which nginx accepts and answers with 405.
fn authority_form(bytes: &[u8], start: usize, head: &mut RequestHead) -> Result<usize, Stop> {
    head.target = Target {
        form: TargetForm::Authority,
        ..Target::default()
    };
    let end = find_target_stop(bytes, start);
    head.target.whole = Span::between(start, end);
    end_target(bytes, end)?;
    // RFC 9112 3.2.3: a port is part of it.
    match set_host(bytes, head.target.whole, head)? {
        Some(1..) => Ok(end),
        _ => Err(Refusal::InvalidAuthority.into()),
    }
}

/// `scheme://host[:port][/path][?query]`, RFC 9112 3.2.2.
fn absolute_form(bytes: &[u8], start: usize, head: &mut RequestHead) -> Result<usize, Stop> {
    let mut at = start;
    while matches!(byte(bytes, at)?, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'+' | b'-' | b'.') {
        at += 1;
    }
    for expected in *b"://" {
        if byte(bytes, at)? != expected {
            return Err(INVALID);
        }
        at += 1;
    }
    let scheme = Span::between(start, at - 3);
    head.target = Target {
        form: TargetForm::Absolute,
        scheme,
        ..Target::default()
    };
    let authority_start = at;
    while !matches!(byte(bytes, at)?, b'/' | b'?' | 0..=b' ' | 0x7f) {
        at += 1;
    }
    set_host(bytes, Span::between(authority_start, at), head)?;
    let scheme_slash = Span::between(authority_start - 2, authority_start - 1);
    match byte(bytes, at)? {
        b'/' => path_and_query(bytes, at, at, head),
        b'?' => {
            head.target.path = scheme_slash;
            path_and_query(bytes, at, at, head)
        }
        b' ' => {
            head.target.path = scheme_slash;
            head.target.whole = scheme_slash;
            Ok(at)
        }
        _ => Err(INVALID),
    }
}

/// Takes the host of an authority as the server's name; returns the port.
fn set_host(bytes: &[u8], authority: Span, head: &mut RequestHead) -> Result<Option<u16>, Stop> {
    let parsed = parse_authority(authority.of(bytes)).ok_or(Refusal::InvalidAuthority)?;
    let start = authority.start as usize;
    head.host = Span::between(start, start + parsed.host_len);
    head.host_has_uppercase = parsed.has_uppercase;
    Ok(parsed.port)
}

/// The version and the line's end; returns where the text ends and where the next line begins.
fn version(
    bytes: &[u8],
    at: usize,
    head: &mut RequestHead,
    accept_bare_lf: bool,
) -> Result<(usize, usize), Stop> {
    if let Some(
        [
            b' ',
            b'H',
            b'T',
            b'T',
            b'P',
            b'/',
            b'1',
            b'.',
            minor,
            b'\r',
            b'\n',
            ..,
        ],
    ) = bytes.get(at..)
        && minor.is_ascii_digit()
    {
        set_version(*minor, head);
        return Ok((at + 9, at + 11));
    }
    let mut at = skip_spaces(bytes, at)?;
    if matches!(byte(bytes, at)?, b'\r' | b'\n') {
        line_end(bytes, at, accept_bare_lf)?;
        return match head.method {
            Method::Get => Err(Refusal::Http09.into()),
            _ => Err(INVALID),
        };
    }
    for expected in *b"HTTP/" {
        if byte(bytes, at)? != expected {
            return Err(INVALID);
        }
        at += 1;
    }
    match byte(bytes, at)? {
        b'1' => at += 1,
        b'2'..=b'9' => return Err(Refusal::UnsupportedVersion.into()),
        _ => return Err(INVALID),
    }
    match byte(bytes, at)? {
        b'.' => at += 1,
        b'0'..=b'9' => return Err(Refusal::UnsupportedVersion.into()),
        _ => return Err(INVALID),
    }
    // RFC 9112 2.3: one digit. More digits are 1.1 to some readers and 1.0 or 1.12 to others.
    let minor = byte(bytes, at)?;
    if !minor.is_ascii_digit() {
        return Err(INVALID);
    }
    set_version(minor, head);
    let text_end = at + 1;
    let at = skip_spaces(bytes, text_end)?;
    Ok((text_end, line_end(bytes, at, accept_bare_lf)?))
}

/// The end of a line that was made of the pseudo-fields of HTTP/2, and that no client can write otherwise.
fn version_2(bytes: &[u8], at: usize, head: &mut RequestHead) -> Result<(usize, usize), Stop> {
    const END: &[u8] = b" HTTP/2.0\r\n";
    let rest = bytes.get(at..).unwrap_or_default();
    if !rest.starts_with(END) {
        return Err(INVALID);
    }
    head.version = Version::Http2;
    Ok((at + END.len() - 2, at + END.len()))
}

fn set_version(minor: u8, head: &mut RequestHead) {
    head.version = if minor == b'0' {
        Version::Http10
    } else {
        Version::Http11
    };
}

/// The line ends at `at`; returns where the next one begins.
fn line_end(bytes: &[u8], at: usize, accept_bare_lf: bool) -> Result<usize, Stop> {
    match byte(bytes, at)? {
        b'\r' if byte(bytes, at + 1)? == b'\n' => Ok(at + 2),
        b'\n' if accept_bare_lf => Ok(at + 1),
        b'\n' => Err(Refusal::BareLf.into()),
        _ => Err(INVALID),
    }
}
