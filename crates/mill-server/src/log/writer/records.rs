//! The kernel's log (`/dev/kmsg`): a write is a record, so that each line is written alone.

use std::io::{self, Write};

/// Its device.
pub(super) const KERNEL_LOG: &[u8] = b"/dev/kmsg";

/// Bytes of a record: the kernel refuses more than 1024 with what it adds (`PRINTKRB_RECORD_MAX`, kernel/printk).
const RECORD_MAX: usize = 960;

/// Writes each line as one record; what is too long is cut.
#[derive(Debug)]
pub(super) struct Records<W>(pub(super) W);

impl<W: Write> Write for Records<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let line = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        let record = line.get(..RECORD_MAX).unwrap_or(line);
        if !record.is_empty() {
            self.0.write_all(record)?;
        }
        Ok(end.map_or(bytes.len(), |end| end + 1))
    }

    /// All lines, also those behind the first.
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.write(bytes)?;
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written, with the end of each write.
    #[derive(Default)]
    struct Writes(Vec<Vec<u8>>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn each_line_is_a_record_and_a_long_one_is_cut() {
        let mut records = Records(Writes::default());
        let long = "x".repeat(2000);
        records
            .write_all(format!("one\ntwo\n\n{long}\nlast").as_bytes())
            .unwrap();
        let written = records.0.0;
        let expected = [&b"one"[..], b"two", &long.as_bytes()[..960], b"last"];
        assert_eq!(written, expected);
    }
}
