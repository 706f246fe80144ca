//! The uwsgi protocol: one packet of variables, then the request's content. The answer is that of HTTP/1 or CGI and ends
//! with its length or the connection: mill-http's `CgiScan` and `ResponseBody` read it.
//!
//! A packet: modifier 1, the size of the variables in two bytes (least first), modifier 2, the variables. Each is a name
//! and a value, with their sizes in two bytes before them. (uwsgi-docs, Protocol.)

use crate::params::ParamName;
use std::fmt;

/// What the server is to do with a packet: `uwsgi_modifier1`, `uwsgi_modifier2`. By default a WSGI request, 0 and 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modifiers {
    pub first: u8,
    pub second: u8,
}

/// The variables need more than the packet's two bytes for its size can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig {
    pub len: usize,
}

/// Appends a variable to `params`.
pub fn emit_param(name: ParamName<'_>, value: &[u8], params: &mut Vec<u8>) {
    emit_size(name.len(), params);
    name.emit(params);
    emit_size(value.len(), params);
    params.extend_from_slice(value);
}

/// Appends the packet with these variables; the request's content follows as it is. Nothing is appended if they are too
/// big.
pub fn emit_head(modifiers: Modifiers, params: &[u8], out: &mut Vec<u8>) -> Result<(), TooBig> {
    if params.len() > PARAMS_BYTES_MAX {
        return Err(TooBig { len: params.len() });
    }
    out.push(modifiers.first);
    emit_size(params.len(), out);
    out.push(modifiers.second);
    out.extend_from_slice(params);
    Ok(())
}

/// Bytes: two bytes tell the size of all variables.
const PARAMS_BYTES_MAX: usize = u16::MAX as usize;

/// In two bytes. A size that they cannot tell is cut off: then the variables are too big together, and `emit_head`
/// refuses them.
fn emit_size(size: usize, out: &mut Vec<u8>) {
    let [low, high, ..] = size.to_le_bytes();
    out.extend_from_slice(&[low, high]);
}

impl fmt::Display for TooBig {
    /// nginx's words.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "uwsgi request is too big: {}", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_sizes_with_the_least_byte_first() {
        let mut params = Vec::new();
        emit_param(ParamName::Literal(b"QUERY_STRING"), b"", &mut params);
        emit_param(ParamName::Field(b"Host"), &[b'a'; 0x102], &mut params);
        let mut packet = Vec::new();
        let modifiers = Modifiers {
            first: 5,
            second: 9,
        };
        assert_eq!(emit_head(modifiers, &params, &mut packet), Ok(()));
        let expected = [
            b"\x05\x1f\x01\x09\x0c\0QUERY_STRING\0\0\x09\0HTTP_HOST\x02\x01".as_slice(),
            &[b'a'; 0x102],
        ];
        assert_eq!(packet, expected.concat());
    }

    #[test]
    fn variables_beyond_two_bytes_of_size_are_refused() {
        let of_value = |len: usize| {
            let (mut params, mut packet) = (Vec::new(), Vec::new());
            emit_param(ParamName::Literal(b"A"), &vec![b'x'; len], &mut params);
            let result = emit_head(Modifiers::default(), &params, &mut packet);
            (result, packet)
        };
        let (result, packet) = of_value(65535 - 5);
        assert_eq!((result, packet.len()), (Ok(()), 65539));
        assert_eq!(&packet[..4], b"\0\xff\xff\0");
        let (result, packet) = of_value(65535 - 4);
        assert_eq!((result, packet.len()), (Err(TooBig { len: 65536 }), 0));
        assert_eq!(
            TooBig { len: 65536 }.to_string(),
            "uwsgi request is too big: 65536"
        );
    }
}
