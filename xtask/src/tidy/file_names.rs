//! No Rust file or folder has a name that fits any content: a name tells which noun of the domain it holds.

use super::{Tree, Violation};

/// Names that fit any content.
const BANNED: [&str; 9] = [
    "utils", "util", "helpers", "helper", "common", "misc", "manager", "core", "shared",
];

pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let banned = tree.rust_files().filter_map(|file| {
        let stem = file.path.strip_suffix(".rs")?;
        let name = stem.split('/').find(|name| BANNED.contains(name))?;
        Some(Violation::of_file(
            &file.path,
            format!("\"{name}\" says nothing; name its content"),
        ))
    });
    banned.collect()
}

#[cfg(test)]
mod tests {
    use super::{BANNED, check};
    use crate::tidy::violation::found;

    #[test]
    fn a_banned_name_is_found_as_file_and_as_folder() {
        for name in BANNED {
            for path in [format!("src/{name}.rs"), format!("tests/{name}/mod.rs")] {
                let expected = format!("{path}: \"{name}\" says nothing; name its content");
                assert_eq!(found(check, &[(&path, "")]), [expected]);
            }
        }
    }

    #[test]
    fn a_name_that_only_contains_a_banned_word_is_fine() {
        for path in [
            "src/encore.rs",
            "src/core_dump.rs",
            "docs/common.md",
            "src/window_manager.rs",
        ] {
            assert!(found(check, &[(path, "")]).is_empty(), "{path}");
        }
    }
}
