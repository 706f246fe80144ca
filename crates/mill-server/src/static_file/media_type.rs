//! `Content-Type` by the path's extension: `types`, else `default_type`.

use crate::response::FieldText;
use mill_config::config::settings::MimeSettings;

/// The type of a path; `None` if `default_type` is empty.
pub(crate) fn of(uri: &[u8], settings: &MimeSettings) -> Option<FieldText> {
    let known = settings.types.find(extension(uri));
    let media_type = known.unwrap_or(&settings.default_type);
    (!media_type.is_empty()).then(|| media_type.into())
}

/// The part after the last dot of the last segment. A dot that begins the segment begins no extension.
fn extension(uri: &[u8]) -> &[u8] {
    let name = uri.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    match name.iter().rposition(|byte| *byte == b'.') {
        None | Some(0) => &[],
        Some(dot) => name.get(dot + 1..).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_follows_the_last_dot_of_the_last_segment() {
        let check = |uri: &str, expected: &str| {
            let found = extension(uri.as_bytes());
            assert_eq!(found, expected.as_bytes(), "{uri}");
        };
        check("/a.html", "html");
        check("/a.tar.gz", "gz");
        check("/a.b/c", "");
        check("/.html", "");
        check("/a/.html", "");
        check("/..html", "html");
        check("/a.", "");
        check("/a", "");
        check("/", "");
    }
}
