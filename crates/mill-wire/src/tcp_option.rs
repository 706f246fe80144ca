//! The options of a TCP header (RFC 9293 3.1, 3.2).

use crate::Malformed;
use crate::seq::SeqNumber;

/// Bytes that options may take.
pub const OPTIONS_BYTES_MAX: usize = 40;

/// All options in use, as values. Kinds that are not known here are passed over, as RFC 9293 3.1 asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Maximum segment size (RFC 9293 3.7.1).
    pub mss: Option<u16>,
    /// Window scale (RFC 7323 2), as it stands in the segment; the receiver of the option limits it to 14.
    pub window_scale: Option<u8>,
    /// Selective acknowledgement permitted (RFC 2018 2).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323 3).
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgement (RFC 2018 3).
    pub sack: SackBlocks,
    /// Fast Open (RFC 7413 4.1.1): a request for a cookie (empty), or a cookie.
    pub fast_open: Option<FastOpenCookie>,
    /// User timeout (RFC 5482 3): granularity bit and value, as they stand in the segment.
    pub user_timeout: Option<u16>,
}

/// TSval and TSecr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    pub value: u32,
    pub echo: u32,
}

/// Up to four ranges of sequence numbers that have arrived, each `start .. end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(SeqNumber, SeqNumber); Self::COUNT_MAX],
    count: u8,
}

impl SackBlocks {
    pub const COUNT_MAX: usize = 4;

    /// Appends a block; says whether there was room.
    pub fn push(&mut self, start: SeqNumber, end: SeqNumber) -> bool {
        match self.blocks.get_mut(usize::from(self.count)) {
            Some(block) => {
                *block = (start, end);
                self.count += 1;
                true
            }
            None => false,
        }
    }

    pub fn as_slice(&self) -> &[(SeqNumber, SeqNumber)] {
        self.blocks.get(..self.len()).unwrap_or_default()
    }

    pub const fn len(&self) -> usize {
        self.count as usize
    }

    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Forgets all but the first `count` blocks.
    pub fn truncate(&mut self, count: usize) {
        let count = count.min(self.len());
        for block in self.blocks.iter_mut().skip(count) {
            *block = Default::default();
        }
        self.count = u8::try_from(count).unwrap_or(self.count);
    }
}

/// A cookie of 4 to 16 bytes, an even number of them; no bytes ask for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastOpenCookie {
    bytes: [u8; Self::BYTES_MAX],
    len: u8,
    is_experimental: bool,
}

impl FastOpenCookie {
    pub const BYTES_MAX: usize = 16;

    /// A request for one.
    pub const EMPTY: Self = Self {
        bytes: [0; Self::BYTES_MAX],
        len: 0,
        is_experimental: false,
    };

    /// `None` for lengths that RFC 7413 4.1.1 does not have.
    pub fn new(cookie: &[u8]) -> Option<Self> {
        let len = u8::try_from(cookie.len()).ok()?;
        if !matches!(len, 0 | 4..=16) || len % 2 != 0 {
            return None;
        }
        let mut bytes = [0; Self::BYTES_MAX];
        bytes.get_mut(..cookie.len())?.copy_from_slice(cookie);
        Some(Self {
            bytes,
            len,
            is_experimental: false,
        })
    }

    /// The same cookie in the option that `other` came in: that of RFC 7413, or the experimental one from before it
    /// (kind 254 with the number 0xf989, RFC 6994), which old clients send.
    #[must_use]
    pub const fn in_form_of(self, other: Self) -> Self {
        Self {
            is_experimental: other.is_experimental,
            ..self
        }
    }

    /// Bytes of the option, padding to a multiple of four not counted.
    const fn option_len(self) -> usize {
        let head = if self.is_experimental { 4 } else { 2 };
        head + self.len as usize
    }

    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl TcpOptions {
    /// Parses the bytes between header and payload. An option that is longer than what is left of the
    /// options is malformed; one of a wrong length for its kind is passed over. Of an option that
    /// occurs twice the last counts.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut options = Self::default();
        options.read(bytes)?;
        Ok(options)
    }

    /// As [`TcpOptions::parse`], in place. After an error the fields mean nothing.
    #[inline]
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        *self = Self::default();
        self.timestamps = aligned_timestamps(bytes);
        if self.timestamps.is_some() {
            return Ok(());
        }
        self.read_each(bytes)
    }

    fn read_each(&mut self, mut bytes: &[u8]) -> Result<(), Malformed> {
        while let [kind, rest @ ..] = bytes {
            match *kind {
                END => break,
                NO_OPERATION => bytes = rest,
                kind => {
                    let len = usize::from(*rest.first().ok_or(Malformed::Option)?);
                    let value = bytes.get(2..len).ok_or(Malformed::Option)?;
                    self.take(kind, value);
                    bytes = bytes.get(len..).unwrap_or_default();
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, kind: u8, value: &[u8]) {
        match (kind, value) {
            (MSS, &[a, b]) => self.mss = Some(u16::from_be_bytes([a, b])),
            (WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift),
            (SACK_PERMITTED, []) => self.sack_permitted = true,
            (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                self.timestamps = Some(Timestamps {
                    value: u32::from_be_bytes([a, b, c, d]),
                    echo: u32::from_be_bytes([e, f, g, h]),
                });
            }
            (SACK, blocks) if !blocks.is_empty() && blocks.len() % 8 == 0 => {
                self.sack = SackBlocks::default();
                for block in blocks.as_chunks::<8>().0 {
                    let [a, b, c, d, e, f, g, h] = *block;
                    let start = SeqNumber(u32::from_be_bytes([a, b, c, d]));
                    let end = SeqNumber(u32::from_be_bytes([e, f, g, h]));
                    // Forty bytes hold no fifth block.
                    self.sack.push(start, end);
                }
            }
            (FAST_OPEN, cookie) => {
                self.fast_open = FastOpenCookie::new(cookie).or(self.fast_open);
            }
            (EXPERIMENT, &[FAST_OPEN_HIGH, FAST_OPEN_LOW, ref cookie @ ..]) => {
                let cookie = FastOpenCookie::new(cookie).map(|cookie| FastOpenCookie {
                    is_experimental: true,
                    ..cookie
                });
                self.fast_open = cookie.or(self.fast_open);
            }
            (USER_TIMEOUT, &[a, b]) => self.user_timeout = Some(u16::from_be_bytes([a, b])),
            _ => {}
        }
    }

    /// Bytes that [`TcpOptions::emit`] writes, a multiple of four.
    pub fn len(&self) -> usize {
        let mut len = 0;
        len += if self.mss.is_some() { 4 } else { 0 };
        len += match (self.sack_permitted, self.timestamps.is_some()) {
            (true, true) | (false, true) => 12,
            (true, false) => 4,
            (false, false) => 0,
        };
        len += if self.window_scale.is_some() { 4 } else { 0 };
        len += if self.sack.is_empty() {
            0
        } else {
            4 + 8 * self.sack.len()
        };
        len += self
            .fast_open
            .map_or(0, |cookie| cookie.option_len().next_multiple_of(4));
        len += if self.user_timeout.is_some() { 4 } else { 0 };
        len
    }

    pub const fn is_empty(&self) -> bool {
        self.mss.is_none()
            && self.window_scale.is_none()
            && !self.sack_permitted
            && self.timestamps.is_none()
            && self.sack.is_empty()
            && self.fast_open.is_none()
            && self.user_timeout.is_none()
    }

    /// Writes the options in Linux's order, each aligned to four bytes; returns how many bytes.
    ///
    /// # Panics
    /// If they do not fit into `into`; the maker of a header chooses options that take at most
    /// [`OPTIONS_BYTES_MAX`].
    #[inline]
    pub fn emit(&self, into: &mut [u8]) -> usize {
        debug_assert!(
            self.len() <= OPTIONS_BYTES_MAX,
            "too many options: {self:?}"
        );
        let mut at = Writer { into, len: 0 };
        if let Some(mss) = self.mss {
            at.put(&[MSS, 4]);
            at.put(&mss.to_be_bytes());
        }
        if let Some(timestamps) = self.timestamps {
            at.put(if self.sack_permitted {
                &[SACK_PERMITTED, 2, TIMESTAMPS, 10]
            } else {
                &ALIGNED_TIMESTAMPS
            });
            at.put(&timestamps.value.to_be_bytes());
            at.put(&timestamps.echo.to_be_bytes());
        } else if self.sack_permitted {
            at.put(&[NO_OPERATION, NO_OPERATION, SACK_PERMITTED, 2]);
        }
        if let Some(shift) = self.window_scale {
            at.put(&[NO_OPERATION, WINDOW_SCALE, 3, shift]);
        }
        self.emit_rare(&mut at);
        at.len
    }

    fn emit_rare(&self, at: &mut Writer<'_>) {
        if !self.sack.is_empty() {
            let len = u8::try_from(2 + 8 * self.sack.len()).unwrap_or(34);
            at.put(&[NO_OPERATION, NO_OPERATION, SACK, len]);
            for (start, end) in self.sack.as_slice() {
                at.put(&start.0.to_be_bytes());
                at.put(&end.0.to_be_bytes());
            }
        }
        if let Some(cookie) = self.fast_open {
            let len = cookie.option_len();
            let len_byte = u8::try_from(len).unwrap_or(20);
            if cookie.is_experimental {
                at.put(&[EXPERIMENT, len_byte, FAST_OPEN_HIGH, FAST_OPEN_LOW]);
            } else {
                at.put(&[FAST_OPEN, len_byte]);
            }
            at.put(cookie.as_slice());
            for _ in len..len.next_multiple_of(4) {
                at.put(&[NO_OPERATION]);
            }
        }
        if let Some(timeout) = self.user_timeout {
            at.put(&[USER_TIMEOUT, 4]);
            at.put(&timeout.to_be_bytes());
        }
    }
}

struct Writer<'a> {
    into: &'a mut [u8],
    len: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        self.into
            .get_mut(self.len..end)
            .expect("the caller reserves room for the options")
            .copy_from_slice(bytes);
        self.len = end;
    }
}

/// Timestamps as every system lays them out when there is nothing else (RFC 7323 appendix A).
fn aligned_timestamps(bytes: &[u8]) -> Option<Timestamps> {
    let &[a, b, c, d, e, f, g, h, i, j, k, l] = bytes else {
        return None;
    };
    ([a, b, c, d] == ALIGNED_TIMESTAMPS).then(|| Timestamps {
        value: u32::from_be_bytes([e, f, g, h]),
        echo: u32::from_be_bytes([i, j, k, l]),
    })
}

/// Kinds, as registered with IANA.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const USER_TIMEOUT: u8 = 28;
const FAST_OPEN: u8 = 34;
/// Shared by experiments, each with a number of its own (RFC 6994); that of Fast Open, in two bytes.
const EXPERIMENT: u8 = 254;
const FAST_OPEN_HIGH: u8 = 0xf9;
const FAST_OPEN_LOW: u8 = 0x89;

const ALIGNED_TIMESTAMPS: [u8; 4] = [NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Result<TcpOptions, Malformed>) {
        assert_eq!(TcpOptions::parse(bytes), expected, "{bytes:?}");
    }

    #[test]
    fn options_are_taken_as_they_come_and_unknown_ones_passed_over() {
        let nothing = TcpOptions::default();
        check(&[], Ok(nothing));
        check(&[0, 2, 4, 5], Ok(nothing));
        check(&[1, 1, 1, 0], Ok(nothing));
        let mss = TcpOptions {
            mss: Some(1460),
            ..nothing
        };
        check(&[2, 4, 5, 180], Ok(mss));
        check(&[253, 4, 1, 2, 2, 4, 5, 180], Ok(mss));
        check(&[2, 4, 0, 1, 2, 4, 5, 180], Ok(mss));
        check(&[2, 3, 5, 1], Ok(nothing));
    }

    #[test]
    fn a_length_that_does_not_fit_is_malformed() {
        for bytes in [
            &[2][..],
            &[2, 5, 1, 2],
            &[2, 0, 1, 1],
            &[2, 1, 1, 1],
            &[254, 255, 0, 0],
            // AccECN (RFC 9768 3.2.3), cut off, and one that says that it is shorter than its head.
            &[172, 11, 0, 0, 1],
            &[174, 1, 1, 1],
        ] {
            check(bytes, Err(Malformed::Option));
        }
    }

    #[test]
    fn every_option_is_read_as_it_was_written() {
        let cookie = FastOpenCookie::new(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let mut sack = SackBlocks::default();
        sack.push(SeqNumber(1), SeqNumber(2));
        let times = Some(Timestamps {
            value: 1,
            echo: u32::MAX,
        });
        let none = TcpOptions::default();
        for options in [
            TcpOptions {
                timestamps: times,
                ..none
            },
            TcpOptions {
                timestamps: times,
                sack,
                ..none
            },
            TcpOptions {
                sack_permitted: true,
                ..none
            },
            TcpOptions {
                fast_open: cookie,
                ..none
            },
            TcpOptions {
                fast_open: FastOpenCookie::new(&[]),
                ..none
            },
            TcpOptions {
                fast_open: cookie.map(|cookie| cookie.in_form_of(experimental_request())),
                ..none
            },
            TcpOptions {
                user_timeout: Some(0x8001),
                window_scale: Some(14),
                ..none
            },
        ] {
            let mut bytes = [0; OPTIONS_BYTES_MAX];
            let len = options.emit(&mut bytes);
            assert_eq!(len, options.len());
            assert_eq!(len % 4, 0);
            check(&bytes[..len], Ok(options));
        }
    }

    fn experimental_request() -> FastOpenCookie {
        let options = TcpOptions::parse(&[254, 4, 0xf9, 0x89]).expect("options");
        options.fast_open.expect("a request")
    }

    /// As Linux lays it out: the option first, then what fills the word.
    #[test]
    fn a_request_for_a_cookie_is_padded_behind_it_in_either_form() {
        for (request, expected) in [
            (FastOpenCookie::default(), [34, 2, 1, 1]),
            (experimental_request(), [254, 4, 0xf9, 0x89]),
        ] {
            let options = TcpOptions {
                fast_open: Some(request),
                ..TcpOptions::default()
            };
            let mut bytes = [0; OPTIONS_BYTES_MAX];
            let len = options.emit(&mut bytes);
            assert_eq!(bytes[..len], expected);
        }
        assert_ne!(experimental_request(), FastOpenCookie::default());
        check(&[254, 4, 0xf9, 0x88], Ok(TcpOptions::default()));
    }

    #[test]
    fn cookies_have_the_lengths_of_the_standard() {
        for len in 0..20 {
            let valid = len == 0 || (4..=16).contains(&len) && len % 2 == 0;
            assert_eq!(
                FastOpenCookie::new(&[0; 20][..len]).is_some(),
                valid,
                "{len}"
            );
        }
    }
}
