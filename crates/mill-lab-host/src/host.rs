//! Where a command runs: on this machine, in a network namespace of it, or on another machine.
//!
//! What is run is what a person would type (`ip netns exec ms0 taskset -c 1 nginx …`), so that a report's commands are
//! the commands. `ip netns exec` and `taskset` replace themselves with what they start: the process id is the program's.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;

/// A place for processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    Local,
    /// A namespace of ip-netns(8).
    Namespace(String),
    /// A target of ssh(1).
    Remote(String),
}

/// A command line with its surroundings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pub argv: Vec<String>,
    /// For `taskset -c`; none leaves all CPUs.
    pub cpus: Option<String>,
    pub environment: Vec<(String, String)>,
    /// Where it works, for `env --chdir=` (coreutils since 8.28).
    pub folder: Option<String>,
    /// For `prlimit --nofile=`.
    pub nofile: Option<u64>,
}

impl Line {
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}

impl Host {
    /// The whole argument vector, with what stands before the program.
    pub fn wrap(&self, line: &Line) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        if let Self::Namespace(name) = self {
            words.extend(["ip", "netns", "exec", name].map(String::from));
        }
        if let Some(limit) = line.nofile {
            words.extend([String::from("prlimit"), format!("--nofile={limit}")]);
        }
        if let Some(cpus) = &line.cpus {
            words.extend(["taskset", "-c", cpus].map(String::from));
        }
        if !line.environment.is_empty() || line.folder.is_some() {
            words.push(String::from("env"));
            words.extend(line.folder.iter().map(|path| format!("--chdir={path}")));
            words.extend(
                line.environment
                    .iter()
                    .map(|(name, value)| format!("{name}={value}")),
            );
        }
        words.extend(line.argv.iter().cloned());
        match self {
            Self::Local | Self::Namespace(_) => words,
            // -tt, so that the far side ends when this ssh does.
            Self::Remote(target) => {
                let far = words
                    .iter()
                    .map(|word| quoted(word))
                    .collect::<Vec<_>>()
                    .join(" ");
                ["ssh", "-tt", "-o", "BatchMode=yes", target, &far]
                    .map(String::from)
                    .to_vec()
            }
        }
    }

    /// Ready to be started: leader of its own process group (Ctrl-C is not for it), and ended by SIGTERM although the lab has
    /// that blocked.
    pub fn command(&self, line: &Line) -> Command {
        let words = self.wrap(line);
        let (program, arguments) = words.split_first().expect("a line names a program");
        let mut command = Command::new(program);
        command.args(arguments);
        mill_sys::program::on_its_own(&mut command);
        command
    }

    /// Does something in the host's network: on a thread that ends with it, where that is a namespace. Not over ssh.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let name = match self {
            Self::Local => return act(),
            Self::Namespace(name) => name,
            Self::Remote(target) => {
                return Err(io::Error::other(format!("{target} is another machine")));
            }
        };
        let namespace = File::open(Path::new(NAMESPACES).join(name))?;
        std::thread::scope(|scope| {
            let inside = scope.spawn(move || {
                mill_sys::namespace::enter_network(&namespace)?;
                act()
            });
            inside
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace panicked")))
        })
    }

    /// As a person would type it.
    pub fn text(&self, line: &Line) -> String {
        self.wrap(line)
            .iter()
            .map(|word| quoted(word))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Where ip-netns(8) keeps namespaces.
pub(crate) const NAMESPACES: &str = "/run/netns";

/// A word as a POSIX shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return String::from(word);
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_a_person_would_type() {
        let mut line = Line::new(["wrk", "-H", "Connection: close", "http://10.0.0.2/"]);
        line.cpus = Some(String::from("0"));
        line.folder = Some(String::from("/opt/x"));
        let host = Host::Namespace(String::from("net0"));
        assert_eq!(
            host.text(&line),
            "ip netns exec net0 taskset -c 0 env --chdir=/opt/x wrk -H 'Connection: close' http://10.0.0.2/"
        );
    }

    #[test]
    fn a_far_line_is_quoted_once_more() {
        let line = Line::new(["echo", "it's"]);
        let host = Host::Remote(String::from("ada@far"));
        let words = host.wrap(&line);
        assert_eq!(words.last().map(String::as_str), Some(r"echo 'it'\''s'"));
    }
}
