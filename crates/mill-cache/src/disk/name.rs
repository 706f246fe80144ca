//! The name of an object's file.

use std::fmt;

use crate::siphash::siphash;

/// What a file is found by. The name tells all of it, so that files are found again after a restart without a look into
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DiskName {
    /// Of the key: the same in each process. Two keys may share it; the file has the key.
    pub hash: u64,
    /// Of what the request had in the fields that `Vary` names, by [`variant`].
    pub variant: u64,
    /// Greater than those of all files and purges before it: a purge with a greater number came after the file.
    pub number: u64,
    /// The object has tags.
    pub has_tags: bool,
}

/// The fields that `Vary` names in the upper half, their values in the lower one; 0 for an object that does not vary.
pub fn variant(names: &[u8], values: &[u8]) -> u64 {
    if names.is_empty() {
        return 0;
    }
    let names = siphash(SEED, names) | 1 << 32;
    (names << 32) | (siphash(SEED, values) & u64::from(u32::MAX))
}

/// Collisions may be prepared with it, and make objects displace one another: nothing else, since a file is used
/// for the key that it has. The index has a seed of its own.
const SEED: [u64; 2] = [0x6d69_6c6c_7374_7265, 0x616d_2063_6163_6865];

/// Hexadecimal digits of each of the three numbers.
const DIGITS: usize = 16;

/// Behind the digits, if there are tags.
const TAGGED: &[u8] = b"-t";

impl DiskName {
    /// The hash of a key.
    pub fn hash_of(key: &[u8]) -> u64 {
        siphash(SEED, key)
    }

    /// Whether both vary by the same fields.
    pub(crate) fn varies_like(&self, variant: u64) -> bool {
        self.variant >> 32 == variant >> 32
    }

    /// Appends the folders that the last digits of the hash name, level by level as nginx does it, and the file's name, each
    /// behind a slash.
    pub fn emit_path(&self, levels: [u8; 3], path: &mut Vec<u8>) {
        let digits = format!("{:016x}", self.hash);
        let mut rest = digits.as_str();
        for level in levels.into_iter().take_while(|digits| *digits > 0) {
            let (before, folder) = rest.split_at(rest.len().saturating_sub(usize::from(level)));
            path.push(b'/');
            path.extend_from_slice(folder.as_bytes());
            rest = before;
        }
        path.push(b'/');
        path.extend_from_slice(self.to_string().as_bytes());
    }

    /// The name without folders; `None` if it is no name of an object's file.
    pub fn parse(name: &[u8]) -> Option<Self> {
        let (digits, has_tags) = match name.strip_suffix(TAGGED) {
            Some(digits) => (digits, true),
            None => (name, false),
        };
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if digits.len() != 3 * DIGITS || !digits.iter().all(is_digit) {
            return None;
        }
        let number = |at: usize| {
            let text = digits.get(at * DIGITS..(at + 1) * DIGITS)?;
            u64::from_str_radix(str::from_utf8(text).ok()?, 16).ok()
        };
        Some(Self {
            hash: number(0)?,
            variant: number(1)?,
            number: number(2)?,
            has_tags,
        })
    }
}

impl fmt::Display for DiskName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tagged = if self.has_tags { "-t" } else { "" };
        write!(
            out,
            "{:016x}{:016x}{:016x}{tagged}",
            self.hash, self.variant, self.number
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> DiskName {
        DiskName {
            hash: 0xb7f5_4b2d_f777_3722,
            variant: 0,
            number: 7,
            has_tags: true,
        }
    }

    #[test]
    fn a_name_is_read_as_it_was_written() {
        for has_tags in [false, true] {
            let name = DiskName { has_tags, ..name() };
            assert_eq!(DiskName::parse(name.to_string().as_bytes()), Some(name));
        }
    }

    #[test]
    fn other_names_are_none() {
        let text = name().to_string();
        let check = |text: &str| assert_eq!(DiskName::parse(text.as_bytes()), None, "{text}");
        check("");
        check("b7f54b2df7773722381dbf1d5e9b4fd2");
        check(&text.replace("-t", "-x"));
        check(&text.replace('b', "B"));
        check(&text.replace('b', "+"));
        check(&format!("{text}.tmp"));
    }

    #[test]
    fn the_last_digits_of_the_hash_name_the_folders() {
        let check = |levels, expected: &str| {
            let mut path = Vec::new();
            name().emit_path(levels, &mut path);
            assert_eq!(String::from_utf8_lossy(&path), expected);
        };
        let file = "/b7f54b2df777372200000000000000000000000000000007-t";
        check([0; 3], file);
        check([1, 2, 0], &format!("/2/72{file}"));
    }

    #[test]
    fn what_does_not_vary_is_variant_zero_and_others_are_not() {
        assert_eq!(variant(b"", b"x"), 0);
        let (one, other) = (variant(b"accept", b"1"), variant(b"accept", b"2"));
        assert!(one != 0 && one != other && one >> 32 == other >> 32);
        assert_ne!(one >> 32, variant(b"accept-language", b"1") >> 32);
    }
}
