//! The files that servers serve.

use crate::host_folder::HostFolder;
use mill_lab::recipe::Content;
use std::collections::BTreeMap;
use std::io;

/// Writes all of them below `root/`.
pub fn write(content: &BTreeMap<String, Content>, place: &HostFolder) -> io::Result<()> {
    for (name, file) in content {
        place.write(&format!("root/{name}"), &bytes(file))?;
    }
    Ok(())
}

/// Zeros, as `dd if=/dev/zero` makes them, or text that compresses about as pages and drawings do.
pub fn bytes(file: &Content) -> Vec<u8> {
    let length = usize::try_from(file.bytes).unwrap_or(usize::MAX);
    if !file.text {
        return vec![0; length];
    }
    let mut text = Vec::with_capacity(length + LINE_MAX);
    let mut number: u32 = 1;
    while text.len() < length {
        // Numbers that do not repeat keep the text from being compressed to nothing.
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (x, y) = (number >> 22, (number >> 12) & 1023);
        text.extend(
            format!(
                "<path d=\"M{x} {y}h12v7z\" fill=\"#{:06x}\"/>\n",
                number >> 8
            )
            .bytes(),
        );
    }
    text.truncate(length);
    text
}

/// The most bytes in a line of `text`.
const LINE_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_length_in_the_recipe() {
        for (length, text) in [(0, false), (1000, false), (0, true), (2649, true)] {
            let file = Content {
                bytes: length,
                text,
            };
            assert_eq!(bytes(&file).len() as u64, length);
        }
    }
}
