//! The head of an answer as a client gets it: RFC 9113 8.3.2. The fields become the text of an HTTP/1 head, which is read by
//! the same rules as one that came so.

use super::request::{Malformed, check_field};
use alloc::vec::Vec;

/// Takes the fields of one block, in order, and makes the text of them.
#[derive(Debug)]
pub(super) struct AnswerText<'a> {
    text: &'a mut Vec<u8>,
    /// Bytes of the text that are kept.
    bytes_max: usize,
    status: Option<u16>,
    fault: Option<Malformed>,
}

impl<'a> AnswerText<'a> {
    pub(super) fn new(text: &'a mut Vec<u8>, bytes_max: usize) -> Self {
        text.clear();
        Self {
            text,
            bytes_max,
            status: None,
            fault: None,
        }
    }

    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.fault.is_none()
            && let Err(fault) = self.take(name, value)
        {
            self.fault = Some(fault);
        }
    }

    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
        if self.text.len() + name.len() + value.len() + LINE_BYTES > self.bytes_max {
            return Err(Malformed("too large a head"));
        }
        match (name, self.status) {
            (b":status", None) => {
                let status = status(value).ok_or(Malformed("an invalid status"))?;
                self.status = Some(status);
                self.text.extend_from_slice(b"HTTP/1.1 ");
                self.text.extend_from_slice(value);
                self.text.extend_from_slice(b" \r\n");
                return Ok(());
            }
            ([b':', ..], _) => return Err(Malformed("an unknown pseudo-field")),
            (_, None) => return Err(Malformed("no status")),
            _ => {}
        }
        check_field(name, value)?;
        emit_line(name, value, self.text);
        Ok(())
    }

    /// The status. The text has no empty line at its end yet: the framing of the content may be added.
    pub(super) fn finish(self) -> Result<u16, Malformed> {
        match (self.fault, self.status) {
            (Some(fault), _) => Err(fault),
            (None, Some(status)) => Ok(status),
            (None, None) => Err(Malformed("no status")),
        }
    }
}

pub(super) fn emit_line(name: &[u8], value: &[u8], text: &mut Vec<u8>) {
    text.extend_from_slice(name);
    text.extend_from_slice(b": ");
    text.extend_from_slice(value);
    text.extend_from_slice(b"\r\n");
}

/// Three digits; not 101, which HTTP/2 does not have (RFC 9113 8.6).
fn status(value: &[u8]) -> Option<u16> {
    let [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] = value else {
        return None;
    };
    let digit = |byte: &u8| u16::from(byte - b'0');
    let status = digit(a) * 100 + digit(b) * 10 + digit(c);
    (status != 101).then_some(status)
}

/// What a line of the text has beside its name and value.
const LINE_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn made(fields: &str) -> Result<String, Malformed> {
        let mut bytes = Vec::new();
        let mut text = AnswerText::new(&mut bytes, 200);
        for field in fields.split('|') {
            let (name, value) = field.rsplit_once('=').unwrap();
            text.field(name.as_bytes(), value.as_bytes());
        }
        text.finish()?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn fields_become_the_text_of_a_head() {
        assert_eq!(
            made(":status=200|content-type=a|grpc-status=0").unwrap(),
            "HTTP/1.1 200 \r\ncontent-type: a\r\ngrpc-status: 0\r\n"
        );
    }

    #[test]
    fn what_is_no_answer_is_malformed() {
        for fields in [
            "a=b",
            "a=b|:status=200",
            ":status=200|:status=200",
            ":status=20",
            ":status=2000",
            ":status=101",
            ":status=099",
            ":status=2x0",
            ":status=200|:path=/",
            ":status=200|Upper=a",
            ":status=200|a=b\r\nc: d",
            ":status=200|connection=close",
            ":status=200|transfer-encoding=chunked",
        ] {
            assert!(made(fields).is_err(), "{fields:?}");
        }
        let long = alloc::format!(":status=200|a={}", "x".repeat(200));
        assert!(made(&long).is_err());
    }
}
