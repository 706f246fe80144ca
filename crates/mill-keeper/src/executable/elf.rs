//! Whether a library can be loaded before an ELF file of 64 bits (elf(5)), and whether Go's linker has made it.

use super::Unseen;

/// Reads so many bytes at a place of the file; fewer at its end.
pub(super) trait ReadAt {
    fn read_at(&self, at: u64, len: u64) -> Option<Vec<u8>>;
}

/// Why the calls of a program cannot be seen. `None` also if it is no ELF file of 64 bits.
pub(super) fn examine(file: &impl ReadAt) -> Option<Unseen> {
    let head = file.read_at(0, HEADER_BYTES)?;
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let at = number::<8>(&head, 0x20)?;
    let entry_bytes = number::<2>(&head, 0x36)?;
    let segments = file.read_at(at, entry_bytes * number::<2>(&head, 0x38)?)?;
    let mut is_dynamic = false;
    for segment in entries(&segments, entry_bytes) {
        match number::<4>(segment, 0)? {
            PT_INTERP => is_dynamic = true,
            PT_NOTE if has_go_note(file, segment) => return Some(Unseen::Go),
            _ => {}
        }
    }
    if !is_dynamic {
        return Some(Unseen::Static);
    }
    has_go_section(file, &head).then_some(Unseen::Go)
}

/// Whether one of the notes in a segment is of Go's linker. Where C's linker makes the file, others come before it.
fn has_go_note(file: &impl ReadAt, segment: &[u8]) -> bool {
    let notes = || {
        let (at, len) = (number::<8>(segment, 8)?, number::<8>(segment, 32)?);
        let alignment = match number::<8>(segment, 48)? {
            8 => 8,
            _ => 4,
        };
        let notes = file.read_at(at, len.min(NOTES_BYTES_MAX))?;
        Some(is_go_among(&notes, alignment))
    };
    notes().unwrap_or(false)
}

/// A note is the lengths of its name and of what it says, its type, and both of them, each padded.
///
/// ```text
/// 0          4          8       12
/// | name len | desc len | type  | name ... | desc ... |
/// ```
fn is_go_among(mut notes: &[u8], alignment: usize) -> bool {
    let padded = |len: usize| len.checked_next_multiple_of(alignment);
    let mut next = || {
        let len_at = |at| usize::try_from(number::<4>(notes, at)?).ok();
        let (name_len, described_len) = (len_at(0)?, len_at(4)?);
        let name = notes.get(12..)?.get(..name_len)?;
        let described_at = padded(12_usize.checked_add(name_len)?)?;
        let end = padded(described_at.checked_add(described_len)?)?;
        notes = notes.get(end..).unwrap_or_default();
        Some(name == b"Go\0\0")
    };
    while let Some(is_go) = next() {
        if is_go {
            return true;
        }
    }
    false
}

/// Whether there is a section of Go's linker: its note is left out with `-ldflags=-buildid=`.
fn has_go_section(file: &impl ReadAt, head: &[u8]) -> bool {
    let found = || {
        let at = number::<8>(head, 0x28)?;
        let entry_bytes = number::<2>(head, 0x3a)?;
        let sections = file.read_at(at, entry_bytes * number::<2>(head, 0x3c)?)?;
        let names_index = usize::try_from(number::<2>(head, 0x3e)?).ok()?;
        let names = entries(&sections, entry_bytes).nth(names_index)?;
        let (at, len) = (number::<8>(names, 24)?, number::<8>(names, 32)?);
        let names = file.read_at(at, len.min(NAMES_BYTES_MAX))?;
        let mut names = names.split(|byte| *byte == 0);
        Some(names.any(|name| name == b".go.buildinfo"))
    };
    found().unwrap_or(false)
}

/// The entries of a table.
fn entries(table: &[u8], entry_bytes: u64) -> impl Iterator<Item = &[u8]> {
    let entry_bytes = usize::try_from(entry_bytes).unwrap_or(0);
    table.chunks_exact(entry_bytes.max(1))
}

/// A little-endian number of `N` bytes.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let part = bytes.get(at..)?.first_chunk::<N>()?;
    let most_first = part.iter().rev();
    Some(most_first.fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

const PT_INTERP: u64 = 3;
const PT_NOTE: u64 = 4;

/// Bytes of the file's header.
const HEADER_BYTES: u64 = 64;

/// Bytes of notes that are looked at: a file that says it has more is damaged, or has others before Go's.
const NOTES_BYTES_MAX: u64 = 64 * 1024;

/// Bytes of the names of sections that are looked at, which are hundreds in programs.
const NAMES_BYTES_MAX: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    struct Bytes(Vec<u8>);

    impl ReadAt for Bytes {
        fn read_at(&self, at: u64, len: u64) -> Option<Vec<u8>> {
            let rest = self.0.get(usize::try_from(at).ok()?..)?;
            let len = usize::try_from(len).ok()?.min(rest.len());
            Some(rest[..len].to_vec())
        }
    }

    const NOTES_AT: u64 = 0x40 + 2 * 56;

    /// A file with two segments, the second of which has these bytes with this alignment, and a table of sections with names.
    fn elf(kinds: [u64; 2], notes: &[u8], alignment: u64, sections: &[u8]) -> Bytes {
        let mut bytes = vec![0; 0x40];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[0x20] = 0x40;
        bytes[0x36] = 56;
        bytes[0x38] = 2;
        let sections_at = NOTES_AT + notes.len() as u64;
        bytes[0x28..0x30].copy_from_slice(&sections_at.to_le_bytes());
        (bytes[0x3a], bytes[0x3c]) = (64, 1);
        for kind in kinds {
            let mut header = [0; 56];
            header[..8].copy_from_slice(&kind.to_le_bytes());
            header[8..16].copy_from_slice(&NOTES_AT.to_le_bytes());
            header[32..40].copy_from_slice(&(notes.len() as u64).to_le_bytes());
            header[48..].copy_from_slice(&alignment.to_le_bytes());
            bytes.extend(header);
        }
        bytes.extend(notes);
        let mut header = [0; 64];
        header[24..32].copy_from_slice(&(sections_at + 64).to_le_bytes());
        header[32..40].copy_from_slice(&(sections.len() as u64).to_le_bytes());
        bytes.extend(header);
        bytes.extend(sections);
        Bytes(bytes)
    }

    fn note(name: &[u8], described_len: usize, alignment: usize) -> Vec<u8> {
        let mut note = Vec::new();
        for number in [name.len(), described_len, 4] {
            note.extend(u32::try_from(number).unwrap().to_le_bytes());
        }
        note.extend(name);
        note.resize(note.len().next_multiple_of(alignment), 0);
        note.resize((note.len() + described_len).next_multiple_of(alignment), 0);
        note
    }

    const DYNAMIC: [u64; 2] = [PT_INTERP, PT_NOTE];

    #[test]
    fn static_and_go_programs_are_told_from_dynamic_ones() {
        assert_eq!(examine(&elf(DYNAMIC, b"", 4, b"")), None);
        assert_eq!(examine(&elf([1, 1], b"", 4, b"")), Some(Unseen::Static));
        let go = note(b"Go\0\0", 0x53, 4);
        assert_eq!(examine(&elf(DYNAMIC, &go, 4, b"")), Some(Unseen::Go));
        let cut_off = Bytes(b"\x7fELF\x02\x01 cut off".to_vec());
        assert_eq!(examine(&cut_off), None);
        assert_eq!(examine(&Bytes(b"text".to_vec())), None);
    }

    #[test]
    fn notes_of_go_are_found_behind_others() {
        for alignment in [4, 8] {
            let others = [
                note(b"GNU\0", 0x14, alignment),
                note(b"stapsdt\0", 0x21, alignment),
            ];
            let others = others.concat();
            let with_go = [&others[..], &note(b"Go\0\0", 0x53, alignment)].concat();
            let examined = |notes: &[u8]| examine(&elf(DYNAMIC, notes, alignment as u64, b""));
            assert_eq!(examined(&others), None, "{alignment}");
            assert_eq!(examined(&with_go), Some(Unseen::Go), "{alignment}");
        }
    }

    #[test]
    fn notes_that_say_wrong_lengths_end_the_search() {
        for len in [u32::MAX, u32::MAX - 12, 1000] {
            let mut notes = note(b"GNU\0", 0x14, 4);
            notes[..4].copy_from_slice(&len.to_le_bytes());
            assert_eq!(examine(&elf(DYNAMIC, &notes, 4, b"")), None, "{len}");
            let mut notes = note(b"GNU\0", 0x14, 4);
            notes[4..8].copy_from_slice(&len.to_le_bytes());
            assert_eq!(examine(&elf(DYNAMIC, &notes, 4, b"")), None, "{len}");
        }
    }

    #[test]
    fn go_without_its_note_is_told_by_a_section() {
        let names = b"\0.text\0.go.buildinfo\0.data\0";
        assert_eq!(examine(&elf(DYNAMIC, b"", 4, names)), Some(Unseen::Go));
        let names = b"\0.text\0.go.buildinformal\0.data\0";
        assert_eq!(examine(&elf(DYNAMIC, b"", 4, names)), None);
    }
}
