//! Probes on the allocator that a process really uses.
//!
//! A program started with jemalloc preloaded never calls libc's malloc: a probe there counts nothing, and suggests a
//! gain of 99 %. So the file is taken from the process's maps, and events are added to that file's symbols.

use super::tool;
use super::tracing;
use crate::host::{Host, Line};
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

/// Events on allocators; removed when dropped.
#[derive(Debug)]
pub(super) struct Allocations {
    group: String,
    pub events: Vec<Event>,
    /// Allocators with events.
    pub files: BTreeSet<String>,
    /// The commands as they were run.
    pub lines: Vec<Line>,
}

/// One function of one allocator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub function: &'static str,
    name: String,
}

/// Functions that allocate. An allocator has those that it defines; malloc is required.
const FUNCTIONS: [&str; 6] = [
    "malloc",
    "calloc",
    "realloc",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
];

impl Allocations {
    /// Adds events to the allocators of `processes`; else why not.
    pub(super) fn add(processes: &[u32]) -> Result<Self, String> {
        tracing::folder()?;
        let own = std::process::id();
        tracing::remove_leftovers(|process| {
            process != own && fs::exists(format!("/proc/{process}")).unwrap_or(true)
        });
        let mut added = Self {
            group: tracing::group_of(own),
            events: Vec::new(),
            files: BTreeSet::new(),
            lines: Vec::new(),
        };
        let mut files = BTreeSet::new();
        for process in processes {
            // A process that has ended, or a kernel thread, has no maps.
            if let Ok(maps) = fs::read_to_string(format!("/proc/{process}/maps")) {
                files.extend(allocator_of(&maps)?);
            }
        }
        if files.is_empty() {
            return Err(String::from(
                "no allocator is mapped that a probe could sit on: the program is linked statically",
            ));
        }
        for (index, file) in files.into_iter().enumerate() {
            added.add_to(&file, index)?;
            added.files.insert(file);
        }
        Ok(added)
    }

    /// As `perf stat -e` takes it.
    pub(super) fn name(&self, event: &Event) -> String {
        format!("{}:{}", self.group, event.name)
    }

    fn add_to(&mut self, file: &str, index: usize) -> Result<(), String> {
        // All at once, because perf takes a while each time and a short load does not wait; an allocator that lacks one
        // of them refuses all.
        if self.try_functions(file, index, &FUNCTIONS).is_ok() {
            return Ok(());
        }
        for function in FUNCTIONS {
            let tried = self.try_functions(file, index, &[function]);
            if function == "malloc" {
                tried?;
            }
        }
        Ok(())
    }

    fn try_functions(
        &mut self,
        file: &str,
        index: usize,
        functions: &[&'static str],
    ) -> Result<(), String> {
        let mut line = Line::new(["perf", "probe", "-q", "-x", file]);
        let mut events = Vec::new();
        for function in functions {
            // perf requires names that no other group has.
            let name = format!("{function}_{}_{index}", std::process::id());
            line.argv.push(String::from("-a"));
            line.argv.push(format!("{}:{name}={function}", self.group));
            events.push(Event { function, name });
        }
        let printed = tool::run(&Host::Local, &line, PROBE_TIMEOUT)?;
        if !printed.success {
            return Err(format!("perf probe -x {file}: {}", printed.complaint()));
        }
        self.events.extend(events);
        self.lines.push(line);
        Ok(())
    }
}

impl Drop for Allocations {
    fn drop(&mut self) {
        let events: Vec<(String, String)> = self
            .events
            .iter()
            .map(|event| (self.group.clone(), event.name.clone()))
            .collect();
        // The next lab removes what is left.
        let _ = tracing::remove(&events);
    }
}

/// Reading the symbols of a large library takes perf a second.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// Beginnings of file names; the first that is mapped provides the malloc that is called, because it was preloaded or
/// linked before libc.
const ALLOCATORS: [&str; 4] = ["libjemalloc", "libmimalloc", "libtcmalloc", "libsnmalloc"];
const LIBCS: [&str; 3] = ["libc.so", "libc-2.", "ld-musl-"];

/// The file whose malloc a process calls, by its maps; none if none is mapped.
fn allocator_of(maps: &str) -> Result<Option<String>, String> {
    let code: Vec<&str> = maps
        .lines()
        .filter_map(|line| {
            // Address, permissions, offset, device, inode, path, which may hold blanks.
            let mut words = line.splitn(6, ' ');
            let permissions = words.nth(1)?;
            let path = words.nth(3)?.trim_start();
            (permissions.contains('x') && path.starts_with('/')).then_some(path)
        })
        .collect();
    let begins = |names: &[&str]| {
        code.iter().copied().find(|path| {
            let name = path.rsplit('/').next().unwrap_or(path);
            names.iter().any(|begin| name.starts_with(begin))
        })
    };
    let Some(path) = begins(&ALLOCATORS).or_else(|| begins(&LIBCS)) else {
        return Ok(None);
    };
    match path.strip_suffix(" (deleted)") {
        Some(path) => Err(format!(
            "{path} was replaced since the process began; start it again"
        )),
        None => Ok(Some(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBC: &str = "\
55d0c0a00000-55d0c0a2b000 r--p 00000000 fe:00 1234                       /usr/sbin/nginx
55d0c0a2b000-55d0c0b2b000 r-xp 0002b000 fe:00 1234                       /usr/sbin/nginx
7f0000000000-7f0000026000 r--p 00000000 fe:00 5678                       /usr/lib/x86_64-linux-gnu/libc.so.6
7f0000026000-7f000017b000 r-xp 00026000 fe:00 5678                       /usr/lib/x86_64-linux-gnu/libc.so.6
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
";

    fn check(maps: &str, expected: Option<&str>) {
        assert_eq!(allocator_of(maps), Ok(expected.map(String::from)));
    }

    #[test]
    fn without_another_allocator_it_is_libcs() {
        check(LIBC, Some("/usr/lib/x86_64-linux-gnu/libc.so.6"));
        let old = LIBC.replace("libc.so.6", "libc-2.28.so");
        check(&old, Some("/usr/lib/x86_64-linux-gnu/libc-2.28.so"));
    }

    #[test]
    fn a_preloaded_allocator_goes_before_libc() {
        for name in ["libjemalloc.so.2", "libmimalloc.so.2.0", "libtcmalloc.so.4"] {
            let path = format!("/opt/my libs/{name}");
            let line = format!("7f1000000000-7f1000090000 r-xp 00000000 fe:00 91    {path}\n");
            check(&format!("{LIBC}{line}"), Some(&path));
        }
        // Mapped as data it is not the allocator.
        let data = "7f10-7f11 r--p 00000000 fe:00 91 /usr/lib/libjemalloc.so.2\n";
        check(
            &format!("{data}{LIBC}"),
            Some("/usr/lib/x86_64-linux-gnu/libc.so.6"),
        );
    }

    #[test]
    fn a_static_program_has_none_and_a_replaced_file_is_no_good() {
        check(
            "55d0-55d1 r-xp 00000000 fe:00 1234 /srv/static\nnonsense\n",
            None,
        );
        let replaced = LIBC.replace("libc.so.6", "libc.so.6 (deleted)");
        assert!(allocator_of(&replaced).is_err());
    }
}
