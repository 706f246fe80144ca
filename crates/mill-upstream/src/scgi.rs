//! SCGI: the parameters as one netstring, then the request's content. The answer is that of CGI or HTTP/1 and ends with
//! its length or the connection: mill-http's `CgiScan` and `ResponseBody` read it.
//!
//! A netstring is its size in decimal, a colon, its bytes, a comma. A parameter is a name and a value, each ended by NUL;
//! `CONTENT_LENGTH` is the first one. (SCGI: A Simple Common Gateway Interface alternative, 2008.)

use crate::params::ParamName;
use mill_http::decimal::{decimal_len, emit_decimal};
use std::fmt;

/// A name or value has a NUL, which would begin another parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HasNul;

/// Appends a parameter to `params`; nothing is appended if it has a NUL.
pub fn emit_param(name: ParamName<'_>, value: &[u8], params: &mut Vec<u8>) -> Result<(), HasNul> {
    let start = params.len();
    name.emit(params);
    if params.get(start..).unwrap_or_default().contains(&0) || value.contains(&0) {
        params.truncate(start);
        return Err(HasNul);
    }
    params.push(0);
    params.extend_from_slice(value);
    params.push(0);
    Ok(())
}

/// Appends the netstring with these parameters; the request's content of `content_length` bytes follows as it is.
/// Parameters must not name `CONTENT_LENGTH` again, which is for the caller to see to.
pub fn emit_head(content_length: u64, params: &[u8], out: &mut Vec<u8>) {
    let length_bytes = CONTENT_LENGTH.len() as u64 + decimal_len(content_length) + 1;
    emit_decimal(length_bytes + params.len() as u64, out);
    out.push(b':');
    out.extend_from_slice(CONTENT_LENGTH);
    emit_decimal(content_length, out);
    out.push(0);
    out.extend_from_slice(params);
    out.push(b',');
}

const CONTENT_LENGTH: &[u8] = b"CONTENT_LENGTH\0";

impl fmt::Display for HasNul {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("scgi parameter has a NUL")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_is_a_netstring_that_begins_with_the_length() {
        let mut params = Vec::new();
        emit_param(ParamName::Literal(b"SCGI"), b"1", &mut params).unwrap();
        emit_param(ParamName::Field(b"X-Y"), b"", &mut params).unwrap();
        let mut out = Vec::new();
        emit_head(27, &params, &mut out);
        assert_eq!(out, b"35:CONTENT_LENGTH\x0027\0SCGI\x001\0HTTP_X_Y\0\0,");
        let mut out = Vec::new();
        emit_head(0, b"", &mut out);
        assert_eq!(out, b"17:CONTENT_LENGTH\x000\0,");
    }

    #[test]
    fn no_parameter_begins_another_one() {
        let mut params = Vec::new();
        for (name, value) in [("A\0B", "c"), ("A", "b\0"), ("", "\0")] {
            let name = ParamName::Literal(name.as_bytes());
            assert_eq!(emit_param(name, value.as_bytes(), &mut params), Err(HasNul));
        }
        assert_eq!(params, b"");
    }
}
