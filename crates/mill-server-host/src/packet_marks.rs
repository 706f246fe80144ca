//! Whether the marks that `whitelist_mark` of `frang` asks for can be seen on this machine.

use mill_config::Config;
use mill_config::config::LogLevel;
use mill_config::diagnostic::Diagnostic;
use std::io;

/// With 1 the kernel gives an accepted socket the mark of its first segment (ip-sysctl.rst); the network namespace's own.
const SWITCH: &str = "/proc/sys/net/ipv4/tcp_fwmark_accept";

/// What a configuration with `whitelist_mark` cannot have here.
pub(crate) fn warnings(config: &Config, has_stack: bool) -> Vec<Diagnostic> {
    warnings_of(config, has_stack, || std::fs::read_to_string(SWITCH))
}

fn warnings_of(
    config: &Config,
    has_stack: bool,
    read_switch: impl FnOnce() -> io::Result<String>,
) -> Vec<Diagnostic> {
    let frang = config.http.as_ref().map(|http| &http.frang);
    let Some(marked) = frang.and_then(|frang| frang.whitelist_marks.as_ref()) else {
        return Vec::new();
    };
    let warn = |message: &str, help: &str| {
        let mut warning = marked.spot.diagnostic(LogLevel::Warn, message);
        warning.help = Some(String::from(help));
        warning
    };
    let of_kernel = match read_switch().as_deref().map(str::trim_ascii) {
        Ok("0") => Some(warn(
            "\"whitelist_mark\" finds no marks: the kernel gives them to no accepted connection",
            "sysctl net.ipv4.tcp_fwmark_accept=1 turns that on, for connections that begin later",
        )),
        Ok(_) => None,
        Err(_) => Some(warn(
            "whether \"whitelist_mark\" finds marks is not known: /proc/sys/net/ipv4/tcp_fwmark_accept cannot be read",
            "sysctl net.ipv4.tcp_fwmark_accept has to be 1",
        )),
    };
    let of_stack = has_stack.then(|| {
        warn(
            "\"whitelist_mark\" does not hold for connections over the stack of our own: they do not pass netfilter",
            "\"whitelist\" takes networks, which hold for all connections",
        )
    });
    of_kernel.into_iter().chain(of_stack).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Texts;
    use mill_config::load::Options;
    use mill_config::source::Memory;

    fn check(frang: &str, has_stack: bool, switch: Option<&str>, expected: &[&str]) {
        let options = Options::default();
        let name = options.conf_file();
        let text = format!("events {{}}\nhttp {{\nfrang {{\n{frang} }} }}");
        let texts = Texts::Memory(Memory::new().with(name.to_vec(), text));
        let config = texts.read(&options).result.expect("it is right");
        let switch = switch
            .map(String::from)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound));
        let found: Vec<String> = warnings_of(&config, has_stack, || switch)
            .iter()
            .map(Diagnostic::line)
            .collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found}");
            let place = format!(" in {}:4", name.display());
            assert!(
                found.starts_with("[warn] ") && found.ends_with(&place),
                "{found}"
            );
        }
    }

    #[test]
    fn marks_that_cannot_be_seen_are_told_with_their_place() {
        let marks = "whitelist_mark 1;";
        check(marks, false, Some("1\n"), &[]);
        check(
            marks,
            false,
            Some("0\n"),
            &["gives them to no accepted connection"],
        );
        check(marks, false, None, &["is not known"]);
        check(marks, true, Some("1\n"), &["do not pass netfilter"]);
        check(
            marks,
            true,
            Some("0\n"),
            &["no accepted connection", "do not pass netfilter"],
        );
        check("request_rate 1;", true, None, &[]);
    }
}
