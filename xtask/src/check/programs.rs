//! The tests of the workspace: built at once, then run two programs at a time, since most of the time they wait for what
//! they have started.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::failures;

/// Takes nearly as long as all others together, with little of a processor: begins first, and runs so many tests at a time.
const LONGEST: &str = "bypass";
const ITS_TESTS_AT_A_TIME: &str = "--test-threads=3";

/// Programs that run at a time.
const AT_A_TIME: usize = 2;

/// A program of tests that cargo has built.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    package: String,
    target: String,
    executable: PathBuf,
    /// The folder that cargo runs it in.
    folder: PathBuf,
}

/// Builds every program with the command of cargo that `build` is, and runs it; its output goes to files in `logs`.
/// Returns a line for each test that failed, see [`failures::lines`]; an error is one of building.
pub(super) fn run(mut build: Command, logs: &Path) -> Result<Vec<String>, String> {
    let output = build
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err(String::from("the tests do not build"));
    }
    std::fs::create_dir_all(logs).map_err(|error| format!("{}: {error}", logs.display()))?;
    let programs = in_order(programs(&String::from_utf8_lossy(&output.stdout)));
    if programs.first().is_none_or(|first| first.target != LONGEST) {
        return Err(String::from(
            "cargo's messages do not name the programs of tests",
        ));
    }
    let waiting = Mutex::new(programs.into_iter());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                let next = || lock(&waiting).next();
                while let Some(program) = next() {
                    let failures = program.failures(logs);
                    lock(&failed).extend(failures);
                }
            });
        }
    });
    Ok(failed.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The programs of tests among cargo's messages, of which each line is one.
fn programs(messages: &str) -> Vec<Program> {
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    messages
        .filter_map(|message| Program::of(&message))
        .collect()
}

/// The longest one first.
fn in_order(mut programs: Vec<Program>) -> Vec<Program> {
    programs.sort_by_key(|program| program.target != LONGEST);
    programs
}

impl Program {
    fn of(message: &Value) -> Option<Self> {
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        Some(Self {
            package: folder.file_name()?.to_string_lossy().into_owned(),
            target: String::from(message["target"]["name"].as_str()?),
            executable: PathBuf::from(message["executable"].as_str()?),
            folder: folder.to_path_buf(),
        })
    }

    fn name(&self) -> String {
        format!("{}/{}", self.package, self.target)
    }

    /// Runs it to its end, and shows its last line, or all of it when it failed. Returns a line for each failure.
    fn failures(&self, logs: &Path) -> Vec<String> {
        let name = self.name();
        let log = logs.join(format!("{}.log", name.replace('/', "-")));
        println!("{name}: running");
        let (status, took) = super::timed(|| self.run(&log));
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let seconds = took.as_secs();
        let why = match status {
            Ok(status) if status.success() => {
                println!("{name}: {} ({seconds} s)", last_line(&text));
                return Vec::new();
            }
            Ok(status) => format!("{status} after {seconds} s"),
            Err(error) => format!("{}: {error}", self.executable.display()),
        };
        println!("{text}\n{name}: {why}, see above");
        failures::lines(&name, &text, &why)
    }

    fn run(&self, log: &Path) -> io::Result<ExitStatus> {
        let file = File::create(log)?;
        let more = (self.target == LONGEST).then_some(ITS_TESTS_AT_A_TIME);
        Command::new(&self.executable)
            .arg("--quiet")
            .args(more)
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .status()
    }
}

/// The last line that has something: the sum that a program of tests ends with.
fn last_line(text: &str) -> &str {
    text.lines()
        .rfind(|line| !line.trim().is_empty())
        .unwrap_or("no output")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn message(target: &str, is_test: bool) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"/a/crates/mill-x/Cargo.toml","target":{{"name":"{target}"}},"profile":{{"test":{is_test}}},"executable":"/a/target/{target}-1"}}"#
        )
    }

    #[test]
    fn programs_of_tests_are_found_among_messages_of_cargo() {
        let library = r#"{"reason":"compiler-artifact","manifest_path":"/a/Cargo.toml","target":{"name":"b"},"profile":{"test":true},"executable":null}"#;
        let messages = [
            message("attacks", true),
            message("bypass", true),
            message("millstream", false),
            String::from(library),
            String::from("no message"),
            message("it", true),
        ]
        .join("\n");
        let found = programs(&messages);
        let names: Vec<_> = found.iter().map(Program::name).collect();
        assert_eq!(names, ["mill-x/attacks", "mill-x/bypass", "mill-x/it"]);
        assert_eq!(found[1].folder, Path::new("/a/crates/mill-x"));
        let in_order = in_order(found);
        let names: Vec<_> = in_order.iter().map(Program::name).collect();
        assert_eq!(names, ["mill-x/bypass", "mill-x/attacks", "mill-x/it"]);
    }

    /// Each of the two opens an end of a FIFO, which waits until the other one opens the other end.
    #[test]
    fn two_programs_run_at_a_time() {
        let logs = std::env::temp_dir().join(format!("millstream-two-{}", std::process::id()));
        std::fs::create_dir_all(&logs).unwrap();
        let made = Command::new("mkfifo").arg(logs.join("fifo")).status();
        assert!(made.unwrap().success());
        let programs = [("bypass", ">"), ("other", "<")].map(|(name, direction)| {
            let path = logs.join(name);
            let script = format!("#!/bin/sh\nexec timeout 60 sh -c ': {direction} fifo'\n");
            std::fs::write(&path, script).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            message(name, true)
                .replace(&format!("/a/target/{name}-1"), &path.to_string_lossy())
                .replace("/a/crates/mill-x", &logs.to_string_lossy())
        });
        let mut build = Command::new("printf");
        build.args(["%s\n"]).args(programs);
        assert_eq!(run(build, &logs), Ok(Vec::new()));
        std::fs::remove_dir_all(&logs).unwrap();
    }

    #[test]
    fn programs_that_fail_or_cannot_start_are_named_and_the_others_run() {
        let logs = std::env::temp_dir().join(format!("millstream-check-{}", std::process::id()));
        let lines = [
            ("true", "/bin/true"),
            ("false", "/bin/false"),
            ("absent", "/no/such/program"),
            ("bypass", "/bin/false"),
        ]
        .map(|(target, executable)| {
            message(target, true)
                .replace(&format!("/a/target/{target}-1"), executable)
                .replace("/a/crates/mill-x", "/tmp")
        });
        let mut build = Command::new("printf");
        build.args(["%s\n"]).args(lines);
        let mut failed = run(build, &logs).unwrap();
        failed.sort();
        let names: Vec<_> = failed
            .iter()
            .filter_map(|line| line.split(':').next())
            .collect();
        assert_eq!(names, ["tmp/absent", "tmp/bypass", "tmp/false"]);
        std::fs::remove_dir_all(&logs).unwrap();
        assert_eq!(
            run(Command::new("false"), &logs),
            Err(String::from("the tests do not build"))
        );
    }
}
