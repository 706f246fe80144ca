//! A text that one process writes anew again and again, and others read at any moment: memory with two sides, of which one is
//! shown while the other is written. A reader never sees half a text, also if the writer is stopped in the midst of writing.

use mill_sys::memory::words;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The writer's end.
#[derive(Debug)]
pub struct Sheet {
    words: &'static [AtomicU64],
    /// What readers find; it stays open.
    file: File,
    written: u64,
}

impl Sheet {
    pub fn new() -> io::Result<Self> {
        let file = words::create(NAME, WORDS)?;
        let words = words::map(&file, WORDS)?;
        Ok(Self {
            words,
            file,
            written: 0,
        })
    }

    /// Shows a text instead of the former one; cut at a line where it is too long.
    pub fn write(&mut self, text: &str) {
        let text = fitting(text);
        let number = self.written + 1;
        let from = side_of(number);
        let mut chunks = text.as_bytes().chunks(WORD_BYTES);
        let side = self.words.get(from..from + SIDE_WORDS).unwrap_or_default();
        let Some((len, side)) = side.split_first() else {
            return;
        };
        len.store(text.len() as u64, Ordering::Relaxed);
        for (word, chunk) in side.iter().zip(&mut chunks) {
            let mut bytes = [0; WORD_BYTES];
            for (byte, from) in bytes.iter_mut().zip(chunk) {
                *byte = *from;
            }
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
        // The next text's words are not written before this one's number is.
        fence(Ordering::SeqCst);
        if let Some(shown) = self.words.first() {
            shown.store(number, Ordering::SeqCst);
        }
        self.written = number;
    }
}

impl AsFd for Sheet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The text that is shown; `None` if there is none yet, or if it changes faster than it can be read.
pub fn read(file: &File) -> io::Result<Option<String>> {
    for _ in 0..TRIES {
        let number = number(file)?;
        if number == 0 {
            return Ok(None);
        }
        let words = words::copy(file, WORDS)?;
        // The writer may have begun with this side again.
        if self::number(file)? != number {
            continue;
        }
        let from = side_of(number);
        let side = words.get(from..).unwrap_or_default();
        let Some((len, side)) = side.split_first() else {
            return Ok(None);
        };
        let mut bytes: Vec<u8> = side.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.truncate(usize::try_from(*len).unwrap_or(0));
        return Ok(String::from_utf8(bytes).ok());
    }
    Ok(None)
}

fn number(file: &File) -> io::Result<u64> {
    Ok(words::copy(file, 1)?.first().copied().unwrap_or(0))
}

/// The first word of the side of a text.
const fn side_of(number: u64) -> usize {
    match number % 2 {
        0 => 1,
        _ => 1 + SIDE_WORDS,
    }
}

fn fitting(text: &str) -> &str {
    match text.get(..TEXT_MAX) {
        None if text.len() <= TEXT_MAX => text,
        None => "",
        Some(start) => start
            .rfind('\n')
            .and_then(|end| text.get(..=end))
            .unwrap_or(""),
    }
}

/// What /proc calls the file.
pub(crate) const NAME: &str = "millstream-accelerated";

/// Bytes of a text: all that a process shows, twice over.
pub(crate) const TEXT_MAX: usize = 256 * 1024;

const WORD_BYTES: usize = size_of::<u64>();

/// The length, and the text.
const SIDE_WORDS: usize = 1 + TEXT_MAX / WORD_BYTES;

/// The number of the text that is shown, and the sides.
const WORDS: usize = 1 + 2 * SIDE_WORDS;

/// A text stays for a tenth of a second.
const TRIES: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_text_is_read_whole() {
        let mut sheet = Sheet::new().unwrap();
        let file = sheet.file.try_clone().unwrap();
        assert_eq!(read(&file).unwrap(), None);
        for text in ["a much longer text\n", "short\n", "", "12345678"] {
            sheet.write(text);
            assert_eq!(read(&file).unwrap().as_deref(), Some(text));
        }
    }

    #[test]
    fn a_text_that_is_too_long_ends_with_a_whole_line() {
        let mut sheet = Sheet::new().unwrap();
        let file = sheet.file.try_clone().unwrap();
        sheet.write(&"123456\n".repeat(TEXT_MAX / 7 + 1));
        let text = read(&file).unwrap().unwrap();
        assert_eq!(text.len(), TEXT_MAX / 7 * 7);
        assert!(text.ends_with("456\n"));
        let full = "1234567\n".repeat(TEXT_MAX / 8);
        sheet.write(&full);
        assert!(read(&file).unwrap().unwrap() == full);
    }

    #[test]
    fn readers_meet_no_mixture_of_two_texts() {
        let mut sheet = Sheet::new().unwrap();
        let file = sheet.file.try_clone().unwrap();
        let writer = std::thread::spawn(move || {
            for number in 0..300 {
                sheet.write(&format!("{}\n", number % 10).repeat(2000));
            }
        });
        while !writer.is_finished() {
            let Some(text) = read(&file).unwrap() else {
                continue;
            };
            let first = text.lines().next().unwrap().to_owned();
            assert!(text.lines().all(|line| line == first));
        }
        writer.join().unwrap();
    }
}
