//! Records as they arrive, in whatever pieces.

use super::{END_REQUEST, FastcgiFault, HEADER_LEN, STDERR, STDOUT};

/// What a record carries, or a piece of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordEvent<'a> {
    /// All bytes were consumed; more are needed.
    NeedMore,
    /// Standard output, not empty. Call again with the bytes after the consumed ones.
    Stdout(&'a [u8]),
    /// The empty record that ends it.
    StdoutEnd,
    /// Standard error, not empty.
    Stderr(&'a [u8]),
    /// The request is over. Nothing may follow.
    End(EndRequest),
}

/// How a request ended, FastCGI 1.0 5.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndRequest {
    /// The program's exit status.
    pub app_status: u32,
    /// 0 if the request was taken, or why it was not: no multiplexing, overloaded, unknown role.
    pub protocol_status: u8,
}

/// Follows the records of one request. It keeps its state and no bytes of content.
#[derive(Clone, Copy, Debug)]
pub struct Records {
    phase: Phase,
    kind: u8,
    /// Bytes of the header that were seen.
    header_len: u8,
    padding: u8,
    /// Of the content, those to come.
    remaining: u16,
    /// Of the content of END_REQUEST, those seen, and which.
    end_len: u8,
    end: [u8; END_REQUEST_LEN],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Header,
    Content,
    Padding,
}

impl Records {
    pub const fn new() -> Self {
        Self {
            phase: Phase::Header,
            kind: 0,
            header_len: 0,
            padding: 0,
            remaining: 0,
            end_len: 0,
            end: [0; END_REQUEST_LEN],
        }
    }

    /// Takes bytes from the beginning of `bytes`: how many, and what they are.
    pub fn on_bytes<'a>(
        &mut self,
        bytes: &'a [u8],
    ) -> Result<(usize, RecordEvent<'a>), FastcgiFault> {
        let mut consumed = 0;
        loop {
            let rest = bytes.get(consumed..).unwrap_or_default();
            match self.phase {
                Phase::Header => {
                    let Some(byte) = rest.first() else { break };
                    consumed += 1;
                    if self.on_header_byte(*byte)? {
                        return Ok((consumed, RecordEvent::StdoutEnd));
                    }
                }
                Phase::Content if self.remaining == 0 => self.phase = Phase::Padding,
                Phase::Content => {
                    let len = rest.len().min(usize::from(self.remaining));
                    let content = rest.get(..len).unwrap_or(rest);
                    if content.is_empty() {
                        break;
                    }
                    consumed += len;
                    self.remaining -= u16::try_from(len).unwrap_or(self.remaining);
                    match self.kind {
                        STDOUT => return Ok((consumed, RecordEvent::Stdout(content))),
                        STDERR => return Ok((consumed, RecordEvent::Stderr(content))),
                        _ => self.on_end_request(content),
                    }
                }
                Phase::Padding => {
                    let len = rest.len().min(usize::from(self.padding));
                    consumed += len;
                    self.padding -= u8::try_from(len).unwrap_or(self.padding);
                    if self.padding > 0 {
                        break;
                    }
                    self.phase = Phase::Header;
                    if self.kind == END_REQUEST {
                        return Ok((consumed, RecordEvent::End(self.end_request())));
                    }
                }
            }
        }
        Ok((consumed, RecordEvent::NeedMore))
    }

    /// The last `len` bytes of the last piece of content were not taken: they come again.
    pub(super) fn give_back(&mut self, len: usize) {
        self.remaining += u16::try_from(len).unwrap_or(0);
    }

    /// Whether this byte ends standard output. A peer that speaks another protocol is recognised by its first byte.
    fn on_header_byte(&mut self, byte: u8) -> Result<bool, FastcgiFault> {
        let at = self.header_len;
        self.header_len += 1;
        match at {
            0 if byte != 1 => return Err(FastcgiFault::Version(byte)),
            1 if !matches!(byte, STDOUT | STDERR | END_REQUEST) => {
                return Err(FastcgiFault::RecordType(byte));
            }
            1 => self.kind = byte,
            2 if byte != 0 => return Err(FastcgiFault::RequestIdHigh(byte)),
            3 if byte != 1 => return Err(FastcgiFault::RequestIdLow(byte)),
            4 => self.remaining = u16::from(byte) << 8,
            5 => self.remaining |= u16::from(byte),
            6 => self.padding = byte,
            7 => return self.on_header(),
            _ => {}
        }
        Ok(false)
    }

    fn on_header(&mut self) -> Result<bool, FastcgiFault> {
        self.header_len = 0;
        self.phase = Phase::Content;
        if self.kind == END_REQUEST {
            self.end_len = 0;
            if usize::from(self.remaining) < END_REQUEST_LEN {
                return Err(FastcgiFault::ShortEndRequest(self.remaining));
            }
        }
        Ok(self.kind == STDOUT && self.remaining == 0)
    }

    fn on_end_request(&mut self, content: &[u8]) {
        let rest = self.end.get_mut(usize::from(self.end_len)..);
        for (known, byte) in rest.unwrap_or_default().iter_mut().zip(content) {
            *known = *byte;
            self.end_len += 1;
        }
    }

    const fn end_request(&self) -> EndRequest {
        let [a, b, c, d, protocol_status, ..] = self.end;
        EndRequest {
            app_status: u32::from_be_bytes([a, b, c, d]),
            protocol_status,
        }
    }
}

impl Default for Records {
    fn default() -> Self {
        Self::new()
    }
}

const END_REQUEST_LEN: usize = 8;

const _: () = assert!(HEADER_LEN == 8 && size_of::<Records>() <= 24);
