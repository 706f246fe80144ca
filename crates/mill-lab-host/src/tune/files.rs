//! Files of /proc and /sys by path; `*` stands for any one name (`/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor`).

use super::{ABSENT, Tuner, sides, value};
use crate::host::Host;
use crate::journal::errand;
use crate::topology::Testbed;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) fn apply(
    tuner: &mut Tuner<'_>,
    files: &BTreeMap<String, toml::Value>,
    testbed: &Testbed,
) {
    for (pattern, wanted) in files {
        let Some(wanted) = value::text(wanted) else {
            tuner.refuse(pattern.clone(), "", value::NO_VALUE);
            continue;
        };
        if !is_kernels(pattern) {
            let problem = "refused: only files below /proc and /sys are tuned";
            tuner.refuse(pattern.clone(), &wanted, problem);
            continue;
        }
        for (machine, label) in sides::machines(testbed) {
            let paths = expanded(tuner.root, &machine, pattern);
            if paths.is_empty() {
                tuner.refuse(format!("{pattern}{label}"), &wanted, ABSENT);
            }
            for path in paths {
                tuner.set(format!("{path}{label}"), &machine, &path, &wanted);
            }
        }
    }
}

fn is_kernels(path: &str) -> bool {
    (path.starts_with("/proc/") || path.starts_with("/sys/"))
        && path.split('/').all(|part| part != "..")
}

/// The paths that match a pattern, in order; a pattern without a star is its own match.
fn expanded(root: &Path, machine: &Host, pattern: &str) -> Vec<String> {
    if !pattern.contains('*') {
        return vec![String::from(pattern)];
    }
    if let Host::Remote(_) = machine {
        // The remote shell expands the pattern; one without a match is printed as it is.
        let script = format!("printf '%s\\n' {pattern}");
        let said = errand::run(machine, &["sh", "-c", &script], None).unwrap_or_default();
        return said
            .lines()
            .filter(|path| !path.contains('*'))
            .map(String::from)
            .collect();
    }
    let mut found = vec![PathBuf::new()];
    for part in pattern.trim_start_matches('/').split('/') {
        found = found
            .iter()
            .flat_map(|folder| matching(root, folder, part))
            .collect();
    }
    found
        .iter()
        .map(|path| format!("/{}", path.display()))
        .collect()
}

fn matching(root: &Path, folder: &Path, part: &str) -> Vec<PathBuf> {
    let Some((head, tail)) = part.split_once('*') else {
        let path = folder.join(part);
        return if root.join(&path).exists() {
            vec![path]
        } else {
            Vec::new()
        };
    };
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_meant = |name: &String| {
        name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail)
    };
    let mut paths: Vec<PathBuf> = names
        .filter(is_meant)
        .map(|name| folder.join(name))
        .collect();
    paths.sort();
    paths
}
