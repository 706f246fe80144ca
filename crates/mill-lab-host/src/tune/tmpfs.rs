//! A file system in memory for content, as the cookbook mounts it: `mount -t tmpfs -o size=512m,noatime`.

use super::{NEEDS_ROOT, problem_of};
use crate::host::Host;
use crate::journal::Journal;
use mill_lab::record::TunedKey;
use std::path::Path;

/// Mounts one of this size (`512m`, as mount(8) takes it) on an existing folder of this machine; the journal unmounts
/// it. On an error the result has the message, and the folder is as it was.
pub fn tmpfs(size: &str, folder: &Path, journal: &mut Journal) -> TunedKey {
    let folder = folder.display().to_string();
    let problem = mount(size, &folder, journal);
    TunedKey {
        key: format!("tmpfs on {folder}"),
        before: None,
        wanted: String::from(size),
        problem,
    }
}

fn mount(size: &str, folder: &str, journal: &mut Journal) -> Option<String> {
    if !is_size(size) {
        return Some(format!("refused: \"{size}\" is no size: write 512m"));
    }
    if !mill_sys::account::is_super_user() {
        return Some(String::from(NEEDS_ROOT));
    }
    let options = format!("size={size},noatime");
    let argv = ["mount", "-t", "tmpfs", "-o", &options, "tmpfs", folder];
    let mounted = journal.run(&Host::Local, &argv, &["umount", folder]);
    mounted.err().map(|error| problem_of(&error))
}

fn is_size(size: &str) -> bool {
    let digits = size.trim_end_matches(['k', 'm', 'g', 'K', 'M', 'G', '%']);
    let unit = size.len() - digits.len();
    unit <= 1 && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_mount() {
        for (size, expected) in [
            ("512m", true),
            ("1G", true),
            ("50%", true),
            ("4096", true),
            ("", false),
            ("m", false),
            ("5mm", false),
            ("5m,exec", false),
        ] {
            assert_eq!(is_size(size), expected, "{size}");
        }
    }
}
