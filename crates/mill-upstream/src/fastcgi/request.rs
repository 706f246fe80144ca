//! A request in records, laid out as nginx lays it out.

use super::{BEGIN_REQUEST, HEADER_LEN, PARAMS, STDIN};
use crate::params::ParamName;

/// Bytes of content in a record of standard input; nginx's choice, far below what two bytes can tell.
pub const STDIN_CONTENT_BYTES_MAX: usize = 32 * 1024;

/// The empty record that ends standard input.
pub const STDIN_END: [u8; HEADER_LEN] = header(STDIN, 0);

/// Appends a parameter to `params`. A length is one byte, or four with the greatest bit set, FastCGI 1.0 3.4.
pub fn emit_param(name: ParamName<'_>, value: &[u8], params: &mut Vec<u8>) {
    emit_len(name.len(), params);
    emit_len(value.len(), params);
    name.emit(params);
    params.extend_from_slice(value);
}

/// Appends the request's begin and its parameters. `keep_conn` asks the server to keep the connection open.
///
/// nginx refuses parameters of more than 65535 bytes; here they are several records of one stream (3.3).
pub fn emit_head(keep_conn: bool, params: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&header(BEGIN_REQUEST, 8));
    out.extend_from_slice(&[0, RESPONDER, u8::from(keep_conn), 0, 0, 0, 0, 0]);
    for content in params.chunks(PARAMS_CONTENT_BYTES_MAX) {
        let len = u16::try_from(content.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&header(PARAMS, len));
        out.extend_from_slice(content);
        out.extend_from_slice(padding(content.len()));
    }
    out.extend_from_slice(&header(PARAMS, 0));
}

/// Appends the beginning of a record of standard input. Its `len` bytes of content follow, then `stdin_padding`.
///
/// `len` must be from 1 to [`STDIN_CONTENT_BYTES_MAX`]: an empty record would end the stream.
pub fn emit_stdin_begin(len: usize, out: &mut Vec<u8>) {
    debug_assert!((1..=STDIN_CONTENT_BYTES_MAX).contains(&len));
    let len = u16::try_from(len).unwrap_or(u16::MAX);
    out.extend_from_slice(&header(STDIN, len));
}

/// What follows `len` bytes of content.
pub fn stdin_padding(len: usize) -> &'static [u8] {
    padding(len)
}

/// The role, FastCGI 1.0 6.2: answer the request.
const RESPONDER: u8 = 1;

/// Bytes; the largest content that needs no padding.
const PARAMS_CONTENT_BYTES_MAX: usize = 65528;

/// Records are padded to a multiple of this, which the specification advises (3.3).
const ALIGNMENT: u8 = 8;

const fn header(kind: u8, content_len: u16) -> [u8; HEADER_LEN] {
    let [high, low] = content_len.to_be_bytes();
    [1, kind, 0, 1, high, low, low.wrapping_neg() % ALIGNMENT, 0]
}

fn padding(len: usize) -> &'static [u8] {
    const ZEROS: [u8; ALIGNMENT as usize] = [0; ALIGNMENT as usize];
    ZEROS
        .get(..len.wrapping_neg() % ZEROS.len())
        .unwrap_or_default()
}

fn emit_len(len: usize, out: &mut Vec<u8>) {
    match u8::try_from(len) {
        Ok(short @ 0..=127) => out.push(short),
        _ => {
            let len = u32::try_from(len).unwrap_or(u32::MAX) | 1 << 31;
            out.extend_from_slice(&len.to_be_bytes());
        }
    }
}
