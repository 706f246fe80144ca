//! Where and with what was measured.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::lab::Lab;

#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) date: String,
    pub(super) cpu_model: String,
    pub(super) cpus: usize,
    pub(super) kernel: String,
    pub(super) server_cpu: u16,
    pub(super) client_cpu: u16,
    /// What joins server and client.
    pub(super) between: &'static str,
    /// What each program is there for, and its version.
    pub(super) programs: Vec<(&'static str, String)>,
}

impl Machine {
    pub(super) fn describe(root: &Path, lab: &Lab, programs: Vec<(&'static str, String)>) -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let models = cpuinfo
            .lines()
            .filter(|line| line.starts_with("model name"));
        let model = models.clone().next().and_then(|line| line.split_once(": "));
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let date = first_line(root, &["date", "-u", "+%Y-%m-%d %H:%M UTC"]);
        Self {
            date: date.unwrap_or_default(),
            cpu_model: model.map_or("unknown CPU", |(_, name)| name).to_owned(),
            cpus: models.count(),
            kernel: kernel.trim().to_owned(),
            server_cpu: lab.server_cpu,
            client_cpu: lab.client_cpu,
            between: "loopback",
            programs,
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let Self {
            cpus,
            kernel,
            server_cpu,
            client_cpu,
            between,
            ..
        } = self;
        let mut lines = vec![
            format!("date: {}", self.date),
            format!("machine: {}, {cpus} CPUs, Linux {kernel}", self.cpu_model),
            format!("CPUs: server on {server_cpu}, client on {client_cpu}, {between} between them"),
        ];
        let programs = self.programs.iter();
        lines.extend(programs.map(|(part, version)| format!("{part}: {version}")));
        lines
    }
}

/// A program of this workspace, as the checkout names it (where the checkout lies is nobody's business),
/// with the commit.
pub(super) fn built(root: &Path, program: &Path) -> String {
    let commit = first_line(root, &["git", "describe", "--always", "--dirty"]);
    let program = program.strip_prefix(root).unwrap_or(program).display();
    format!("{program}, commit {}", commit.unwrap_or_default())
}

/// The first line that a program says, on whichever stream.
pub(super) fn first_line(folder: &Path, command: &[&str]) -> Option<String> {
    let (program, arguments) = command.split_first()?;
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let streams =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let lines = streams.iter().flat_map(|text| text.lines());
    lines
        .map(str::trim)
        .find(|line| !line.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::first_line;

    #[test]
    fn the_first_line_of_either_stream_is_taken() {
        let here = Path::new("/");
        for (script, expected) in [
            ("echo; echo a; echo b", Some("a")),
            ("echo a >&2; exit 1", Some("a")),
            ("true", None),
        ] {
            let line = first_line(here, &["sh", "-c", script]);
            assert_eq!(line.as_deref(), expected, "{script}");
        }
        assert_eq!(first_line(here, &["./no/such/program"]), None);
    }
}
