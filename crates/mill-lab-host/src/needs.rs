//! Whether the requirements of a system or a tool are met: the words of `needs` in a recipe.

use crate::host::Host;
use crate::limits;
use std::path::{Path, PathBuf};

/// The first need that is not met, as a report's cell shows it; none if all are.
pub fn unmet(needs: &[String]) -> Option<String> {
    needs.iter().find_map(|need| problem(need))
}

/// The path of a program, searched as a shell does, and in the folders of administrators' programs.
pub fn program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        let path = PathBuf::from(name);
        return path.is_file().then_some(path);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(ADMINISTRATORS.iter().map(PathBuf::from));
    folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// A module that is loaded or built in.
fn has_module(name: &str) -> bool {
    Path::new("/sys/module").join(name).exists()
}

fn problem(need: &str) -> Option<String> {
    let (kind, what) = need.split_once(':').unwrap_or(("program", need));
    let missing = match kind {
        "program" => program(what).is_none(),
        "file" => !Path::new(what).exists(),
        "module" => !has_module(what),
        "open-files" => return too_few_files(what),
        "memory" => return too_little_memory(what),
        "not-built" => return Some(format!("not built yet: {what}")),
        "out-of-scope" => return Some(format!("out of scope: {what}")),
        _ => return Some(format!("needs {need}, which this lab does not know")),
    };
    missing.then(|| match kind {
        "module" => format!("not on this machine: needs the kernel module {what}"),
        _ => format!("not on this machine: needs {what}"),
    })
}

/// Whether a process can have this many descriptors.
fn too_few_files(wanted: &str) -> Option<String> {
    let Ok(count) = wanted.trim().parse() else {
        return Some(format!("needs {wanted} open files, which is no number"));
    };
    let limit = limits::open_files(&Host::Local, count)?.limit;
    (limit < count).then(|| {
        format!(
            "not on this machine: needs {count} open files in a process, and {limit} are allowed"
        )
    })
}

/// Whether this many bytes are available without swapping (proc_meminfo(5)).
fn too_little_memory(wanted: &str) -> Option<String> {
    let Ok(wanted) = wanted.trim().parse::<u64>() else {
        return Some(format!(
            "needs {wanted} bytes of memory, which is no number"
        ));
    };
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    let (wanted, there) = (wanted >> 20, kib >> 10);
    (there < wanted).then(|| {
        format!("not on this machine: needs {wanted} MiB of memory, and {there} are available")
    })
}

const ADMINISTRATORS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(needs: &[&str], expected: Option<&str>) {
        let needs: Vec<String> = needs.iter().map(ToString::to_string).collect();
        assert_eq!(unmet(&needs).as_deref(), expected);
    }

    #[test]
    fn the_first_need_that_is_not_met_is_reported() {
        check(&[], None);
        check(&["program:sh", "file:/proc"], None);
        check(
            &["program:sh", "program:no-such-onload"],
            Some("not on this machine: needs no-such-onload"),
        );
        check(
            &["module:no_such_module"],
            Some("not on this machine: needs the kernel module no_such_module"),
        );
        check(&["open-files:64", "memory:1048576"], None);
        let vast = unmet(&[String::from("memory:9000000000000000000")]).unwrap();
        assert!(vast.contains("MiB of memory, and "), "{vast}");
        check(
            &["open-files:many"],
            Some("needs many open files, which is no number"),
        );
        let endless = unmet(&[String::from("open-files:9000000000000000000")]).unwrap();
        let beginning =
            "not on this machine: needs 9000000000000000000 open files in a process, and ";
        assert!(endless.starts_with(beginning), "{endless}");
        check(
            &["not-built:the own stack"],
            Some("not built yet: the own stack"),
        );
    }
}
