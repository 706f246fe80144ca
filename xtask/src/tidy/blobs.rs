//! No large files: they stay in a repository's history for ever.

use super::{Tree, Violation};

/// Largest file, in bytes: five times the longest readable source file. Data larger than this belongs to a generator
/// or a release.
const FILE_BYTES_MAX: usize = 256 * 1024;

pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let large = tree
        .files()
        .filter(|file| file.bytes.len() > FILE_BYTES_MAX);
    large
        .map(|file| {
            let kib = file.bytes.len().div_ceil(1024);
            let message = format!("{kib} KiB; generate it, or keep it elsewhere (at most 256 KiB)");
            Violation::of_file(&file.path, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{FILE_BYTES_MAX, check};
    use crate::tidy::violation::found;

    #[test]
    fn a_file_of_the_largest_size_may_stay_and_one_octet_more_may_not() {
        let text = "x".repeat(FILE_BYTES_MAX + 1);
        assert!(found(check, &[("page.html", &text[1..])]).is_empty());
        assert_eq!(
            found(check, &[("page.html", &text)]),
            ["page.html: 257 KiB; generate it, or keep it elsewhere (at most 256 KiB)"]
        );
    }
}
