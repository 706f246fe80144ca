//! Where a command runs: on this machine, in a network namespace of it, or on another machine.
//!
//! The command line is what a user would type (`ip netns exec ms0 taskset -c 1 nginx …`), and reports show it as it
//! is run. `ip netns exec` and `taskset` replace themselves with the program they start, so the process id is the
//! program's.

use crate::remote_shell;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;

/// Where processes run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    Local,
    /// A namespace of ip-netns(8).
    Namespace(String),
    /// A target of ssh(1), or a guest of the lab's.
    Remote(String),
}

/// A command line with its environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pub argv: Vec<String>,
    /// For `taskset -c`; none allows all CPUs.
    pub cpus: Option<String>,
    pub environment: Vec<(String, String)>,
    /// The working directory, for `env --chdir=` (coreutils since 8.28).
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
    /// The whole argument vector, including the wrapping programs.
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
            // -tt, so that the remote process is told when this ssh ends.
            Self::Remote(target) => {
                let far = words
                    .iter()
                    .map(|word| quoted(word))
                    .collect::<Vec<_>>()
                    .join(" ");
                let mut words = remote_shell::words(&["-tt", "-o", "BatchMode=yes"], target);
                words.push(remote_shell::ending_with_terminal(&far));
                words
            }
        }
    }

    /// Ready to be started: leader of its own process group, so that Ctrl-C does not reach it, and with SIGTERM
    /// unblocked although the lab blocks it.
    pub fn command(&self, line: &Line) -> Command {
        let words = self.wrap(line);
        let (program, arguments) = words.split_first().expect("a line names a program");
        let mut command = Command::new(program);
        command.args(arguments);
        mill_sys::program::on_its_own(&mut command);
        command
    }

    /// Runs `act` in the host's network namespace, on a thread that ends with it. Not over ssh.
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

    /// The command line as a user would type it.
    pub fn text(&self, line: &Line) -> String {
        self.wrap(line)
            .iter()
            .map(|word| quoted(word))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Where ip-netns(8) has its namespaces.
pub(crate) const NAMESPACES: &str = "/run/netns";

/// A word quoted for a POSIX shell.
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
    fn a_line_is_what_a_user_would_type() {
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
    fn a_remote_line_is_quoted_once_more() {
        let line = Line::new(["echo", "it's"]);
        let host = Host::Remote(String::from("ada@far"));
        let words = host.wrap(&line);
        let far = words.last().unwrap();
        let once = quoted(r"echo 'it'\''s' & wait");
        assert!(far.contains(once.trim_matches('\'')), "{far}");
    }
}
