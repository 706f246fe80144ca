//! A structure of DPDK's that is passed by address: bytes at known offsets, aligned for numbers of eight.

/// So many words of eight bytes, zeroed at first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Record<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Record<WORDS> {
    pub(super) const fn new() -> Self {
        Self([0; WORDS])
    }

    pub(super) fn u64_at(&self, offset: usize) -> u64 {
        self.0.get(offset / 8).copied().unwrap_or_default() >> (offset % 8 * 8)
    }

    /// The number must not cross from one word to the next, as in structures of C.
    pub(super) fn u32_at(&self, offset: usize) -> u32 {
        low(self.u64_at(offset), 32)
    }

    pub(super) fn u16_at(&self, offset: usize) -> u16 {
        u16::try_from(low(self.u64_at(offset), 16)).unwrap_or_default()
    }

    pub(super) fn set_u64(&mut self, offset: usize, value: u64) {
        if let Some(word) = self.0.get_mut(offset / 8) {
            *word = value;
        }
    }

    pub(super) fn set_u32(&mut self, offset: usize, value: u32) {
        if let Some(word) = self.0.get_mut(offset / 8) {
            let shift = offset % 8 * 8;
            *word = *word & !(u64::from(u32::MAX) << shift) | u64::from(value) << shift;
        }
    }

    /// For a function that reads or writes it.
    pub(super) fn address(&mut self) -> *mut core::ffi::c_void {
        self.0.as_mut_ptr().cast()
    }
}

fn low(word: u64, bits: u32) -> u32 {
    let word = word & ((1 << bits) - 1);
    u32::try_from(word).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lie_where_they_are_in_memory() {
        let mut record = Record::<2>::new();
        record.set_u32(4, 0x0807_0605);
        record.set_u64(8, 0x1112_1314_1516_1718);
        assert_eq!(record.u64_at(0), 0x0807_0605_0000_0000);
        assert_eq!(record.u32_at(4), 0x0807_0605);
        assert_eq!((record.u16_at(4), record.u16_at(6)), (0x0605, 0x0807));
        record.set_u32(8, 1);
        assert_eq!(record.u64_at(8), 0x1112_1314_0000_0001);
        assert_eq!(record.u16_at(14), 0x1112);
        assert_eq!(record.u64_at(16), 0, "outside");
    }
}
