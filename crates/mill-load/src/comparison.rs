//! Compares received content with the expected content.

use crate::failure::Failure;

/// Compares the content of one response, from an offset on, with the expected one. Costs one `memcmp` of each slice and
/// no memory; lives while one received piece is scanned.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    expected: &'a [u8],
    /// Bytes that matched.
    right: u64,
    is_wrong: bool,
}

impl<'a> Comparison<'a> {
    /// The first `right` bytes of the content were received before, and matched.
    pub(crate) const fn new(expected: &'a [u8], right: u64) -> Self {
        Self {
            expected,
            right,
            is_wrong: false,
        }
    }

    /// The next slice of the content.
    pub(crate) fn on(&mut self, slice: &[u8]) {
        if self.is_wrong {
            return;
        }
        let rest = usize::try_from(self.right)
            .ok()
            .and_then(|right| self.expected.get(right..))
            .unwrap_or_default();
        let same = if rest.starts_with(slice) {
            slice.len()
        } else {
            let pairs = rest.iter().zip(slice);
            pairs.take_while(|(wanted, came)| wanted == came).count()
        };
        self.right += same as u64;
        self.is_wrong = same < slice.len();
    }

    /// Fails at the first wrong byte, or, if the content is `complete`, at the first missing one.
    pub(crate) const fn finish(&self, complete: bool) -> Result<(), Failure> {
        let is_short = complete && self.right < self.expected.len() as u64;
        if self.is_wrong || is_short {
            return Err(Failure::WrongContent(self.right));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_missing_or_surplus_byte_is_named() {
        let check = |before: u64, slices: &[&str], complete: bool, expected: Option<u64>| {
            let mut comparison = Comparison::new(b"0123456789", before);
            slices
                .iter()
                .for_each(|slice| comparison.on(slice.as_bytes()));
            let failure = comparison.finish(complete).err();
            assert_eq!(failure, expected.map(Failure::WrongContent), "{slices:?}");
        };
        check(0, &["0123456789"], true, None);
        check(0, &["01234", "", "56789"], true, None);
        check(4, &["456789"], true, None);
        check(0, &["0123"], false, None);
        check(0, &["0123"], true, Some(4));
        check(0, &[], true, Some(0));
        check(0, &["x"], false, Some(0));
        check(0, &["01", "2x4"], false, Some(3));
        check(0, &["01x", "234"], true, Some(2));
        check(0, &["0123456789", "0"], false, Some(10));
        check(10, &["0"], true, Some(10));
        check(10, &[], true, None);
        check(u64::MAX, &["0"], false, Some(u64::MAX));
    }
}
