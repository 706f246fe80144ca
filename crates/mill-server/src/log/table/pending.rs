//! Rows that wait.

/// Bytes of rows that wait for a batch. As many more may be on their way.
pub(super) const BYTES_MAX: usize = 8 << 20;

/// Rows, each with its last column, and those that found no room.
#[derive(Debug, Default)]
pub(super) struct Pending {
    batch: Batch,
    /// Rows that were dropped since the last one that was kept.
    dropped: u64,
}

/// Rows that are inserted at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) rows: u64,
}

impl Pending {
    pub(super) const fn rows(&self) -> u64 {
        self.batch.rows
    }

    /// Adds rows without their last column, each with its line end. Returns how many of them found no room.
    pub(super) fn push(&mut self, rows: &[u8]) -> u64 {
        let mut lost = 0;
        for row in rows.split_inclusive(|&byte| byte == b'\n') {
            let row = row.strip_suffix(b"\n").unwrap_or(row);
            let dropped = self.dropped.to_string();
            if self.batch.bytes.len() + row.len() + dropped.len() + 2 > BYTES_MAX {
                self.dropped += 1;
                lost += 1;
                continue;
            }
            self.batch.bytes.extend_from_slice(row);
            self.batch.bytes.push(b'\t');
            self.batch.bytes.extend_from_slice(dropped.as_bytes());
            self.batch.bytes.push(b'\n');
            self.batch.rows += 1;
            self.dropped = 0;
        }
        lost
    }

    /// Counts rows that were taken and could not be inserted.
    pub(super) const fn drop_rows(&mut self, rows: u64) {
        self.dropped += rows;
    }

    /// All of them.
    pub(super) fn take(&mut self) -> Batch {
        std::mem::take(&mut self.batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_is_told_by_the_next_row() {
        let mut pending = Pending::default();
        assert_eq!(pending.push(b"a\t1\nb\t2\n"), 0);
        pending.drop_rows(5);
        assert_eq!(pending.push(b"c\t3\nd\t4\n"), 0);
        let batch = pending.take();
        assert_eq!(batch.rows, 4);
        assert_eq!(batch.bytes, b"a\t1\t0\nb\t2\t0\nc\t3\t5\nd\t4\t0\n");
        assert_eq!(pending.take(), Batch::default());
    }

    #[test]
    fn memory_is_bounded() {
        let mut pending = Pending::default();
        let row = [&[b'x'; 1 << 20][..], b"\n"].concat();
        let lost: u64 = (0..20).map(|_| pending.push(&row)).sum();
        assert_eq!((pending.rows(), lost), (7, 13));
        let batch = pending.take();
        assert!(batch.bytes.len() <= BYTES_MAX);
        assert_eq!(pending.push(b"a\n"), 0);
        assert_eq!(pending.take().bytes, b"a\t13\n");
    }
}
