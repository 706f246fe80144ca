//! Why a response can't be read.

use core::fmt;

/// After any of them the rest of the connection is undefined: close it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFault {
    /// RFC 9112 2.3 and 4: other protocols, HTTP/0.9 among them.
    NotHttp1,
    /// RFC 9112 4.
    StatusCode,
    /// RFC 9112 2.2: white space between the status line and the first field.
    BlankBeforeFields,
    /// RFC 9112 5.
    FieldLine,
    /// RFC 9112 2.2.
    BareCr,
    /// RFC 9110 5.5.
    Nul,
    /// RFC 9112 6.3, fifth.
    ContentLength,
    /// RFC 9112 6.3, fifth.
    ContentLengthsDiffer,
    /// RFC 9112 7.1: the chunked coding has no parameters.
    ChunkedParameters,
    /// Strict reading only, RFC 9112 2.2: a line ends with LF alone.
    BareLf,
    /// Strict: blanks in the status line, RFC 9112 4, or behind a name, 5.1.
    Blank,
    /// Strict, RFC 9112 5.2.
    Fold,
    /// Strict, RFC 9110 5.5.
    Control,
    /// Strict, RFC 9112 6.3: even if they agree.
    ContentLengthAgain,
    /// Strict, RFC 9112 6.3, third.
    LengthAndCoding,
    /// Strict, RFC 9112 6.1: `chunked` once, and nothing else.
    UnknownCoding,
    /// Strict, RFC 9112 6.1.
    CodingInHttp10,
    /// Strict, RFC 9112 6.1, RFC 9110 8.6: with 1xx and 204.
    FramingWithoutContent,
    /// CGI only: the coding belongs to the protocol around it, which has none.
    CodingInCgi,
    /// CGI only, RFC 3875 6.3.3.
    StatusAgain,
    /// `ResponseRules::head_bytes_max`.
    HeadTooLong { bytes_max: u32 },
    /// RFC 9112 7.1, or a limit of `ChunkedRules`.
    ChunkedContent,
    /// RFC 9112 8.
    EndedEarly,
}

impl fmt::Display for ResponseFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NotHttp1 => "status line is not HTTP/1.x",
            Self::StatusCode => "status code is not a number from 100 to 999",
            Self::BlankBeforeFields => "first field line begins with a blank",
            Self::FieldLine => "field line has no name with a colon behind it",
            Self::BareCr => "head has a CR that no LF follows",
            Self::Nul => "head has a NUL",
            Self::ContentLength => "content length is not a number",
            Self::ContentLengthsDiffer => "content lengths differ",
            Self::ChunkedParameters => "chunked coding has parameters",
            Self::BareLf => "line of the head ends with LF alone",
            Self::Blank => {
                "blanks are too many, or missing, in the status line, or precede a colon"
            }
            Self::Fold => "field line is continued on the next one",
            Self::Control => "head has a control byte",
            Self::ContentLengthAgain => "content length occurs again",
            Self::LengthAndCoding => "content length and transfer coding exclude each other",
            Self::UnknownCoding => "transfer coding is not chunked alone",
            Self::CodingInHttp10 => "transfer coding in HTTP/1.0",
            Self::FramingWithoutContent => {
                "length or transfer coding of an answer that has no content"
            }
            Self::CodingInCgi => "transfer coding in the head of a CGI response",
            Self::StatusAgain => "status occurs again",
            Self::HeadTooLong { bytes_max } => {
                return write!(out, "head is longer than {bytes_max} bytes");
            }
            Self::ChunkedContent => "chunked content is malformed",
            Self::EndedEarly => "connection ended before the response was whole",
        })
    }
}

impl core::error::Error for ResponseFault {}
