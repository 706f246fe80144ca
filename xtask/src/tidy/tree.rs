//! The files of a checkout, in memory.

use std::fs;
use std::io;
use std::path::Path;

/// Every file that belongs to the checkout, sorted by path.
#[derive(Debug)]
pub(crate) struct Tree {
    files: Vec<File>,
}

/// One file: its path from the root with `/` between names, and its content.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
}

impl File {
    /// The content as text; none for a file that is not text.
    pub(crate) fn text(&self) -> Option<&str> {
        str::from_utf8(&self.bytes)
            .ok()
            .filter(|text| !text.contains('\0'))
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

impl Tree {
    /// Reads all files under `root` except what `.gitignore` names, `.git` itself and symbolic links. It needs no
    /// git, so that a downloaded archive can be checked as well.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let ignored = match fs::read_to_string(root.join(".gitignore")) {
            Ok(text) => text.lines().map(str::to_owned).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        collect(root, "", &ignored, &mut files)?;
        Ok(Self::sorted(files))
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    pub(crate) fn rust_files(&self) -> impl Iterator<Item = &File> {
        self.files().filter(|file| file.is_rust())
    }

    /// The files that are text, with their text.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files()
            .filter_map(|file| Some((file.path.as_str(), file.text()?)))
    }

    /// The text of the file at `path`.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        let found = self
            .files
            .binary_search_by(|file| file.path.as_str().cmp(path))
            .ok()?;
        self.files.get(found)?.text()
    }

    pub(crate) fn contains(&self, path: &str) -> bool {
        self.files
            .binary_search_by(|file| file.path.as_str().cmp(path))
            .is_ok()
    }

    fn sorted(mut files: Vec<File>) -> Self {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Self { files }
    }

    /// A tree for a test.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File {
            path: (*path).to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        Self::sorted(files.iter().map(file).collect())
    }
}

/// Adds the files of `folder`, whose path from the root is `prefix`, to `files`. A file that vanishes meanwhile is no
/// part of the checkout.
fn collect(
    folder: &Path,
    prefix: &str,
    ignored: &[String],
    files: &mut Vec<File>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        if path == ".git" || is_ignored(&path, ignored) || kind.is_symlink() {
            continue;
        }
        if kind.is_dir() {
            collect(&entry.path(), &format!("{path}/"), ignored, files)?;
        } else if kind.is_file() {
            match fs::read(entry.path()) {
                Ok(bytes) => files.push(File { path, bytes }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// The part of gitignore(5) that our `.gitignore` uses: `/path` from the root, or a name anywhere,
/// with at most one `*`.
fn is_ignored(path: &str, patterns: &[String]) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    patterns
        .iter()
        .map(|pattern| pattern.trim_end_matches('/'))
        .any(|pattern| {
            if pattern.is_empty() || pattern.starts_with('#') {
                return false;
            }
            match (pattern.strip_prefix('/'), pattern.split_once('*')) {
                (Some(exact), _) => path == exact,
                (None, Some((start, end))) => {
                    name.len() >= start.len() + end.len()
                        && name.starts_with(start)
                        && name.ends_with(end)
                }
                (None, None) => name == pattern,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::{Tree, is_ignored};

    #[test]
    fn the_ignored_files_are_those_of_gitignore() {
        let patterns = [
            "# built",
            "",
            "/target",
            "/fuzz/corpus/",
            "*.profraw",
            "perf.data*",
            "cache",
        ]
        .map(str::to_owned);
        for (path, ignored) in [
            ("target", true),
            ("crates/target", false),
            ("fuzz/corpus", true),
            ("fuzz/corpora", false),
            ("a/b.profraw", true),
            ("a/b.profraw.txt", false),
            ("perf.data.old", true),
            ("data", false),
            ("a/cache", true),
            ("# built", false),
        ] {
            assert_eq!(is_ignored(path, &patterns), ignored, "{path}");
        }
    }

    #[test]
    fn a_read_tree_has_this_file_and_nothing_built() {
        let tree = Tree::read(crate::root()).expect("the checkout can be read");
        assert!(
            tree.text("xtask/src/tidy/tree.rs")
                .is_some_and(|text| text.starts_with("//!"))
        );
        assert!(!tree.files().any(|file| file.path.starts_with("target/")));
        assert!(!tree.files().any(|file| file.path.starts_with(".git/")));
    }

    #[test]
    fn a_folder_that_does_not_exist_is_an_error() {
        assert!(Tree::read(&crate::root().join("no such folder")).is_err());
    }
}
