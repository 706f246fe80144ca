//! `types` and `default_type`: from the extension of a file to its media type.

use crate::Text;

/// A table of extensions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MimeTypes {
    /// Lower-cased extension without its dot, and the type; sorted by extension.
    entries: Vec<(Text, Text)>,
}

impl MimeTypes {
    /// The type of a file by its extension (without the dot), compared case-insensitively.
    /// Does not allocate.
    pub fn find(&self, extension: &[u8]) -> Option<&Text> {
        let position = self.entries.binary_search_by(|(known, _)| {
            known
                .iter()
                .copied()
                .cmp(extension.iter().map(u8::to_ascii_lowercase))
        });
        position
            .ok()
            .and_then(|index| self.entries.get(index))
            .map(|(_, kind)| kind)
    }

    /// The extension of a path as in nginx: the part after the last dot after the last slash; empty if there is none.
    pub fn extension(path: &[u8]) -> &[u8] {
        let dot = path.iter().rposition(|&byte| byte == b'.' || byte == b'/');
        match dot.and_then(|at| path.split_at_checked(at)) {
            Some((_, [b'.', extension @ ..])) => extension,
            _ => &[],
        }
    }

    /// Adds or replaces one entry; returns the previous type.
    pub fn insert(&mut self, extension: &[u8], kind: Text) -> Option<Text> {
        let extension = Text::from(extension.to_ascii_lowercase());
        match self
            .entries
            .binary_search_by(|(known, _)| known.cmp(&extension))
        {
            Ok(index) => {
                let entry = self.entries.get_mut(index)?;
                Some(std::mem::replace(&mut entry.1, kind))
            }
            Err(index) => {
                self.entries.insert(index, (extension, kind));
                None
            }
        }
    }

    /// All entries, sorted by extension.
    pub fn iter(&self) -> impl Iterator<Item = (&Text, &Text)> {
        self.entries
            .iter()
            .map(|(extension, kind)| (extension, kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_taken_from_the_last_name_and_found_in_any_case() {
        let mut types = MimeTypes::default();
        types.insert(b"TXT", Text::from("text/plain"));
        types.insert(b"gz", Text::from("application/gzip"));
        let check = |path: &str, extension: &str, kind: Option<&str>| {
            let found = MimeTypes::extension(path.as_bytes());
            assert_eq!(found, extension.as_bytes(), "{path}");
            assert_eq!(types.find(found), kind.map(Text::from).as_ref(), "{path}");
        };
        check("/a.txt", "txt", Some("text/plain"));
        check("/a.TxT", "TxT", Some("text/plain"));
        check("/a.tar.gz", "gz", Some("application/gzip"));
        check("/a.d/b", "", None);
        check("/a", "", None);
        check("/a.", "", None);
        check("", "", None);
    }
}
