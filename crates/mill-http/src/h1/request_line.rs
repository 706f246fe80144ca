//! The request line, from the method to the version.
//!
//! RFC 9112 3, as nginx reads it: several spaces between the parts and spaces after the version
//! are let through, since no one disagrees on what they mean; control bytes are not.

use crate::h1::head::{RequestHead, Target, TargetForm};
use crate::h1::parse::Stop;
use crate::h1::refusal::Refusal;
use crate::h1::scan::find_target_stop;
use crate::host::parse_host;
use crate::method::{Method, is_method_byte};
use crate::span::Span;
use crate::version::Version;

const INVALID: Stop = Stop::Refused(Refusal::InvalidRequestLine);

/// Parses the line that begins at `start`; returns where the next one begins.
pub(crate) fn parse(bytes: &[u8], start: usize, head: &mut RequestHead) -> Result<usize, Stop> {
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
    let (line_end, next) = version(bytes, target_end, head)?;
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
        let mut query_end = None;
        end = find_target_stop(bytes, question + 1);
        while bytes.get(end) == Some(&b'#') {
            target.complex = true;
            query_end = query_end.or(Some(end));
            end = find_target_stop(bytes, end + 1);
        }
        target.query = Span::between(question + 1, query_end.unwrap_or(end));
    }
    target.whole = Span::between(whole, end);
    match byte(bytes, end)? {
        b' ' | b'\r' => Ok(end),
        _ => Err(INVALID),
    }
}

/// Scans the path from its slash; returns where it ends: at `?`, a space or a control byte, or at
/// the end of `bytes`. A `#` makes the rest, `?` included, a fragment.
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
                b'#' => return Ok(fragment(bytes, start, at, target)),
                _ => {}
            },
        }
        previous = byte;
    }
    Err(Stop::Partial)
}

/// The path ends at the `#` found at `at`, the target at the next space or control byte.
fn fragment(bytes: &[u8], start: usize, at: usize, target: &mut Target) -> usize {
    target.complex = true;
    if target.path.is_empty() {
        target.path = Span::between(start, at);
    }
    let mut end = find_target_stop(bytes, at + 1);
    while bytes.get(end) == Some(&b'#') {
        end = find_target_stop(bytes, end + 1);
    }
    end
}

const ORDINARY: u8 = 0;
const SPECIAL: u8 = 1;
const STOP: u8 = 2;

/// What a byte in a path means: nothing, something, or the path's end.
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
    class[b'#' as usize] = SPECIAL;
    class
};

/// `*`, RFC 9112 3.2.4.
fn asterisk(bytes: &[u8], start: usize, head: &mut RequestHead) -> Result<usize, Stop> {
    head.target.whole = Span::between(start, start + 1);
    head.target.path = head.target.whole;
    match byte(bytes, start + 1)? {
        b' ' | b'\r' => Ok(start + 1),
        _ => Err(INVALID),
    }
}

/// `host:port`, RFC 9112 3.2.3; also origin form, which nginx lets through to its 405.
fn authority_form(bytes: &[u8], start: usize, head: &mut RequestHead) -> Result<usize, Stop> {
    head.target = Target {
        form: TargetForm::Authority,
        ..Target::default()
    };
    let end = find_target_stop(bytes, start);
    head.target.whole = Span::between(start, end);
    let next = byte(bytes, end)?;
    if !matches!(next, b' ' | b'\r') {
        return Err(INVALID);
    }
    set_host(bytes, head.target.whole, head)?;
    Ok(end)
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
    while is_authority_byte(byte(bytes, at)?) {
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

/// A host of letters, digits, `.`, `-`, an IP literal's bytes, and a port. No userinfo, no
/// escapes: nginx refuses them, and RFC 9110 4.2.4 tells to distrust them.
const fn is_authority_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'.' | b'-'
                | b':'
                | b'['
                | b']'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
        )
}

/// Outside an IP literal only letters, digits, `.` and `-` may stand, and a port is digits.
fn set_host(bytes: &[u8], authority: Span, head: &mut RequestHead) -> Result<(), Stop> {
    let text = authority.of(bytes);
    let is_literal = text.first() == Some(&b'[');
    let name = parse_host(text).ok_or(Refusal::InvalidAuthority)?;
    let (host, port) = text.split_at_checked(name.len).unwrap_or((text, &[]));
    let port = port.strip_prefix(b".").unwrap_or(port);
    let port = port.strip_prefix(b":").unwrap_or(port);
    let host_is_valid = is_literal && host.last() == Some(&b']')
        || host
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'));
    if !host_is_valid || !port.iter().all(u8::is_ascii_digit) {
        return Err(INVALID);
    }
    head.host = Span::between(
        authority.start as usize,
        authority.start as usize + name.len,
    );
    head.host_has_uppercase = name.has_uppercase;
    Ok(())
}

/// The version and the line's end; returns where the text ends and where the next line begins.
fn version(bytes: &[u8], at: usize, head: &mut RequestHead) -> Result<(usize, usize), Stop> {
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
        head.version = if *minor == b'0' {
            Version::Http10
        } else {
            Version::Http11
        };
        return Ok((at + 9, at + 11));
    }
    let mut at = skip_spaces(bytes, at)?;
    if byte(bytes, at)? == b'\r' {
        return match byte(bytes, at + 1)? {
            b'\n' if head.method == Method::Get => Err(Refusal::Http09.into()),
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
    at = minor_version(bytes, at, head)?;
    let line_end = at;
    at = skip_spaces(bytes, at)?;
    if byte(bytes, at)? != b'\r' || byte(bytes, at + 1)? != b'\n' {
        return Err(INVALID);
    }
    Ok((line_end, at + 2))
}

/// One to three digits, as nginx takes them; returns where they end.
fn minor_version(bytes: &[u8], mut at: usize, head: &mut RequestHead) -> Result<usize, Stop> {
    let start = at;
    let mut minor = 0_u16;
    loop {
        match byte(bytes, at)? {
            digit @ b'0'..=b'9' if at - start < 3 => minor = minor * 10 + u16::from(digit - b'0'),
            b' ' | b'\r' if at > start => break,
            _ => return Err(INVALID),
        }
        at += 1;
    }
    head.version = if minor == 0 {
        Version::Http10
    } else {
        Version::Http11
    };
    Ok(at)
}
