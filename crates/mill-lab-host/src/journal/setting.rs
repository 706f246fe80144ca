//! A value in a file of the kernel, on this machine, in a namespace or on another machine.

use super::errand;
use crate::host::{Host, NAMESPACES};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// The value: the words of one line, or of a choice (`always [madvise] never`) the selected one.
pub(crate) fn read(host: &Host, path: &str) -> io::Result<String> {
    read_text(host, path).map(|text| chosen(&text))
}

/// The whole content of the file.
pub(crate) fn read_text(host: &Host, path: &str) -> io::Result<String> {
    match host {
        Host::Local => read_here(path),
        Host::Namespace(_) if is_per_task(path) => host.within(|| read_here(path)),
        Host::Namespace(_) | Host::Remote(_) => errand::run(host, &["cat", path], None),
    }
}

/// Writes it in one system call, as the kernel requires.
pub(crate) fn write(host: &Host, path: &str, value: &str) -> io::Result<()> {
    match host {
        Host::Local => write_here(path, value),
        Host::Namespace(_) if is_per_task(path) => host.within(|| write_here(path, value)),
        Host::Namespace(_) | Host::Remote(_) => {
            errand::run(host, &["tee", path], Some(&format!("{value}\n"))).map(drop)
        }
    }
}

/// Whether two values mean the same: blanks and tabs, leading zeros and commas of CPU masks don't matter.
pub(crate) fn is_same(path: &str, a: &str, b: &str) -> bool {
    let words = |text: &str| chosen(text);
    let mask = |text: &str| {
        text.replace([',', '\n', ' '], "")
            .trim_start_matches('0')
            .to_ascii_lowercase()
    };
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_mask = name.ends_with("_cpus") || name == "smp_affinity";
    words(a) == words(b) || (is_mask && mask(a) == mask(b))
}

/// Whether a namespace exists.
pub(crate) fn is_namespace(name: &str) -> bool {
    Path::new(NAMESPACES).join(name).exists()
}

/// /proc/sys/net shows the network namespace of the process that opens it; /sys shows the one in which it was
/// mounted.
fn is_per_task(path: &str) -> bool {
    path.starts_with("/proc/")
}

fn read_here(path: &str) -> io::Result<String> {
    let mut text = Vec::new();
    File::open(path)?
        .take(TEXT_BYTES_MAX)
        .read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn write_here(path: &str, value: &str) -> io::Result<()> {
    // Not created: a file that does not exist is a key that this kernel does not have.
    let mut file = File::options().write(true).truncate(true).open(path)?;
    file.write_all(format!("{value}\n").as_bytes())
}

fn chosen(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut marked = words
        .iter()
        .filter_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    match (marked.next(), marked.next()) {
        (Some(choice), None) if words.len() > 1 => String::from(choice),
        _ => words.join(" "),
    }
}

/// A file of /proc/sys or /sys holds a page at most; /proc/interrupts of a machine with hundreds of CPUs holds a
/// megabyte.
const TEXT_BYTES_MAX: u64 = 16 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_choice_the_chosen_word_is_the_value() {
        for (text, expected) in [
            ("always [madvise] never\n", "madvise"),
            ("4096\t131072\t6291456\n", "4096 131072 6291456"),
            ("cubic\n", "cubic"),
            ("[mq-deadline]\n", "[mq-deadline]"),
            ("", ""),
        ] {
            assert_eq!(chosen(text), expected, "{text:?}");
        }
    }

    #[test]
    fn values_that_mean_the_same_are_the_same() {
        let rps = "/sys/class/net/eth0/queues/rx-0/rps_cpus";
        let sysctl = "/proc/sys/net/ipv4/tcp_rmem";
        for (path, a, b, expected) in [
            (sysctl, "4096 87380 4194304", "4096\t87380\t4194304\n", true),
            (sysctl, "1", "01", false),
            (rps, "fe", "00000000,000000fe", true),
            (rps, "fe", "ef", false),
            ("/proc/irq/7/smp_affinity", "4", "00000004", true),
        ] {
            assert_eq!(is_same(path, a, b), expected, "{a:?} {b:?}");
        }
    }
}
