//! A range of a buffer, as offsets: it stays valid when the buffer moves.

/// `len` bytes from `start`. Offsets count from the first byte that was given to the parser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: u32,
    pub len: u32,
}

impl Span {
    pub const EMPTY: Self = Self { start: 0, len: 0 };

    /// The span from `start` up to, not including, `end`; empty when they cross. Offsets beyond
    /// 4 GiB saturate: no head is that long, since `HeadRules` bounds it.
    pub fn between(start: usize, end: usize) -> Self {
        Self {
            start: saturated(start),
            len: saturated(end.saturating_sub(start)),
        }
    }

    /// The bytes of this span, empty where the span does not lie inside `bytes`.
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        bytes
            .get(self.start as usize..self.end() as usize)
            .unwrap_or(&[])
    }

    pub const fn end(self) -> u32 {
        self.start.saturating_add(self.len)
    }

    pub const fn is_empty(self) -> bool {
        self.len == 0
    }
}

fn saturated(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

const _: () = assert!(size_of::<Span>() == 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_outside_its_buffer_is_empty() {
        let bytes = b"abcdef";
        assert_eq!(Span::between(1, 4).of(bytes), b"bcd");
        assert_eq!(Span::between(4, 9).of(bytes), b"");
        assert_eq!(Span::between(4, 2), Span { start: 4, len: 0 });
        assert_eq!(
            Span {
                start: u32::MAX,
                len: u32::MAX
            }
            .of(bytes),
            b""
        );
    }
}
