//! A benchmark that is a recipe of the lab: its options become options of the lab, its figures come from the lab's
//! report.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use mill_lab::recipe;
use mill_lab_host::command::{self, Terminal};

use super::order::{Order, TakeValue};
use crate::EXIT_USAGE;

/// The properties of one benchmark.
#[derive(Debug)]
pub(super) struct Benchmark {
    /// Its name in `cargo xtask bench`; the recipe is named after it.
    pub(super) name: &'static str,
    pub(super) usage: &'static str,
    /// The axis that cases are values of, and the option that chooses some of them.
    pub(super) axis: &'static str,
    pub(super) option: &'static str,
    /// The option with the binary to measure, and the keys of the recipe that name it.
    pub(super) binary: &'static str,
    pub(super) millstream: &'static [&'static str],
    /// The variable that names the xtask to start, and whether the options ask for that.
    pub(super) xtask: &'static str,
    pub(super) starts_xtask: fn(&[String]) -> bool,
    /// The meaning of the option for the lab, if the benchmark has it; the value is taken only where it is needed.
    pub(super) own: OwnOption,
}

/// From an option to overrides of the recipe; `None` for another benchmark's option.
pub(super) type OwnOption = fn(&str, &mut TakeValue<'_, '_>) -> Result<Option<Vec<String>>, String>;

/// The parsed command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wish {
    order: Order,
    cases: Vec<String>,
    full: bool,
    server: Option<PathBuf>,
    sets: Vec<String>,
}

/// Measures what the options ask for.
pub(super) fn run(root: &Path, benchmark: &Benchmark, arguments: &[&str]) -> ExitCode {
    let name = benchmark.name;
    let wish = match Wish::parse(benchmark, arguments) {
        Ok(wish) => wish,
        Err(message) => {
            eprintln!("xtask bench {name}: {message}\n\n{}", benchmark.usage);
            return ExitCode::from(EXIT_USAGE);
        }
    };
    if wish.order.help {
        print!("{}", benchmark.usage);
        return ExitCode::SUCCESS;
    }
    let done = if wish.order.list {
        list(benchmark, &wish)
    } else {
        measure(root, benchmark, &wish)
    };
    match done {
        Ok(status) => ExitCode::from(status),
        Err(message) => {
            eprintln!("xtask bench {name}: {message}");
            ExitCode::FAILURE
        }
    }
}

impl Wish {
    fn parse(benchmark: &Benchmark, arguments: &[&str]) -> Result<Self, String> {
        let mut wish = Self::default();
        wish.order = Order::parse(arguments, |argument, value| {
            match argument {
                "--full" => wish.full = true,
                option if option == benchmark.option => wish.cases.push(value()?.to_owned()),
                option if option == benchmark.binary => wish.server = Some(value()?.into()),
                _ => match (benchmark.own)(argument, value)? {
                    Some(sets) => wish.sets.extend(sets),
                    None => return Ok(false),
                },
            }
            Ok(true)
        })?;
        Ok(wish)
    }

    /// Cases given by name may be any of the full list.
    fn size(&self) -> &'static str {
        if self.full || !self.cases.is_empty() {
            "full"
        } else {
            recipe::DEFAULT_SIZE
        }
    }

    /// The overrides of the recipe, without the programs.
    fn sets(&self, benchmark: &Benchmark) -> Vec<String> {
        let mut sets = self.sets.clone();
        if !self.cases.is_empty() {
            sets.push(format!("{}={}", benchmark.axis, self.cases.join(",")));
        }
        if let Some(seconds) = self.order.seconds {
            sets.push(format!("seconds={seconds}"));
            sets.push(format!("timeout={}", seconds + TIMEOUT_PAST_END_SECONDS));
        }
        if let Some(rounds) = self.order.rounds {
            // There and back (A B B A) in each round.
            sets.push(format!("repeat.blocks={}", 2 * rounds));
            sets.push(String::from("repeat.until_decided=false"));
        }
        if self.order.timed_only {
            sets.push(String::from("probe=[]"));
        }
        sets
    }
}

/// wrk drops latencies above its time-out; a longer one costs memory, for wrk has a counter for each microsecond of it.
const TIMEOUT_PAST_END_SECONDS: u32 = 5;

fn recipe_name(benchmark: &Benchmark) -> String {
    format!("bench-{}", benchmark.name)
}

/// The names of the cases.
fn list(benchmark: &Benchmark, wish: &Wish) -> Result<u8, String> {
    let resolved = recipe::resolve(&recipe_name(benchmark), wish.size(), &wish.sets(benchmark));
    let axes = resolved.map_err(|error| error.to_string())?.axes();
    let cases = axes.into_iter().filter(|axis| axis.name == benchmark.axis);
    for case in cases.flat_map(|axis| axis.values) {
        println!("{}", case.name);
    }
    Ok(0)
}

/// Runs the recipe; its figures go to the terminal and to the requested files.
fn measure(root: &Path, benchmark: &Benchmark, wish: &Wish) -> Result<u8, String> {
    let mut sets = wish.sets(benchmark);
    let millstream = match &wish.server {
        Some(path) => {
            fs::canonicalize(path).map_err(|error| format!("{}: {error}", path.display()))?
        }
        None => {
            if benchmark.name == "run" {
                build(root, "mill-preload")?;
            }
            build(root, "millstream")?
        }
    };
    let keys = benchmark.millstream.iter();
    sets.extend(keys.map(|key| format!("{key}={:?}", millstream.display().to_string())));
    let is_nginx = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("nginx"))
    };
    if benchmark.name == "serve" && wish.server.as_ref().is_some_and(is_nginx) {
        // Another nginx in Millstream's place gets nginx's command line.
        sets.push(String::from("system.millstream.kind=nginx"));
    }
    if (benchmark.starts_xtask)(&wish.sets) {
        let program = own_program(root)?.display().to_string();
        sets.push(format!("{}={program:?}", benchmark.xtask));
    }
    let name = recipe_name(benchmark);
    let store = root.join("target/bench");
    let report = store.join(&name);
    let mut words = words(&["run", &name, "--size", wish.size(), "--yes"]);
    words.extend(
        sets.iter()
            .flat_map(|set| ["--set".into(), OsString::from(set)]),
    );
    words.extend(["--report".into(), report.clone().into_os_string()]);
    let page = report.join("README.md");
    // The page of an older run is not that of one that never began.
    match fs::remove_file(&page) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(format!("{}: {error}", page.display()));
        }
        _ => {}
    }
    let status = lab(words, &store);
    if status != 0 && !page.exists() {
        return Ok(status);
    }
    let page = fs::read_to_string(&page).map_err(|error| format!("{}: {error}", page.display()))?;
    print!("\n{}", for_terminal(tables(&page)));
    if let Some(file) = &wish.order.markdown {
        fs::write(file, &page).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    if let Some(file) = &wish.order.json {
        let run = format!("latest:{name}");
        let mut words = self::words(&["export", &run, "--json", "-o"]);
        words.push(file.into());
        return Ok(status.max(lab(words, &store)));
    }
    Ok(status)
}

/// This program, optimised: the floor server is part of it.
fn own_program(root: &Path) -> Result<PathBuf, String> {
    if cfg!(debug_assertions) {
        return build(root, "xtask");
    }
    std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))
}

/// Builds an optimised binary of this workspace.
pub(super) fn build(root: &Path, package: &str) -> Result<PathBuf, String> {
    eprintln!("building {package}");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--package",
            package,
        ])
        .current_dir(root)
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return Err(format!("{package} does not build"));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), |target| root.join(target));
    Ok(target.join("release").join(package))
}

fn lab(mut words: Vec<OsString>, store: &Path) -> u8 {
    words.extend(["--store".into(), store.into()]);
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let status = command::main(&words, Terminal::default(), &mut out, &mut err);
    let _closed = out.flush();
    status
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// The part of a report's page that has the figures.
fn tables(page: &str) -> &str {
    let part = page.find("## Tables").and_then(|begin| page.get(begin..));
    let part = part.unwrap_or_default();
    let end = part.find("\n## ").map(|at| at + 1);
    part.get(..end.unwrap_or(part.len())).unwrap_or(part)
}

/// Marks of cells are printed once per line, and without markup.
fn for_terminal(text: &str) -> String {
    let mut plain = String::new();
    for line in text.lines() {
        let mut said: Vec<&str> = Vec::new();
        let mut parts = line.split("<br><sub>");
        plain += parts.next().unwrap_or_default();
        for part in parts {
            let (mark, rest) = part.split_once("</sub>").unwrap_or((part, ""));
            if !said.contains(&mark) {
                said.push(mark);
                plain += &format!(" ({mark})");
            }
            plain += rest;
        }
        plain.push('\n');
    }
    plain
        .replace("<sub>", "")
        .replace("</sub>", "")
        .replace('\\', "")
}

#[cfg(test)]
mod tests {
    use super::{Wish, for_terminal, recipe_name, tables};
    use crate::bench::bypass::BYPASS;
    use crate::bench::load::LOAD;
    use crate::bench::proxy::PROXY;
    use crate::bench::serve::SERVE;

    /// The lab's options for a command line.
    fn check(line: &str, expected: Result<(&str, &[&str]), &str>) {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let found = Wish::parse(&SERVE, &arguments).map(|wish| (wish.size(), wish.sets(&SERVE)));
        let expected =
            expected.map(|(size, sets)| (size, sets.iter().map(ToString::to_string).collect()));
        assert_eq!(found, expected.map_err(str::to_owned), "{line}");
    }

    #[test]
    fn options_are_what_the_lab_is_told() {
        check("", Ok(("smoke", &[])));
        check(
            "--full --floor",
            Ok(("full", &["system=nginx,millstream,floor"])),
        );
        let sets = [
            "case=gzip-1k,close-0",
            "seconds=3",
            "timeout=8",
            "repeat.blocks=4",
            "repeat.until_decided=false",
            "probe=[]",
        ];
        let line = "--case gzip-1k --case close-0 --seconds 3 --rounds 2 --timed-only";
        check(line, Ok(("full", &sets)));
        check("--fast", Err("no option is called \"--fast\""));
        check("--case", Err("--case wants a value"));
    }

    #[test]
    fn every_option_fits_its_recipe() {
        let lines = [
            (&SERVE, ""),
            (&SERVE, "--full"),
            (
                &SERVE,
                "--case gzip-1k --floor --timed-only --rounds 1 --seconds 1",
            ),
            (&BYPASS, ""),
            (
                &BYPASS,
                "--only idle-1m --only ka-318B-50000 --rounds 1 --timed-only --set half_rate=20000",
            ),
            (&LOAD, "--server nginx"),
            (&PROXY, ""),
            (
                &PROXY,
                "--case ka-1k --case xdp-1k --timed-only --rounds 1 --seconds 1 --set half_rate=9",
            ),
            (
                &LOAD,
                "--case close-0 --server floor --timed-only --rounds 1 --seconds 1",
            ),
        ];
        for (benchmark, line) in lines {
            let arguments: Vec<&str> = line.split_whitespace().collect();
            let wish = Wish::parse(benchmark, &arguments).unwrap();
            let sets = wish.sets(benchmark);
            let recipe = mill_lab::recipe::resolve(&recipe_name(benchmark), wish.size(), &sets);
            let problems = mill_lab::recipe::check(&recipe.unwrap());
            assert_eq!(problems, [], "{line}");
        }
    }

    #[test]
    fn figures_are_printed_with_their_marks_once() {
        let page = "# t\n\n## Tables\n\n| a<br><sub>busy</sub> | b<br><sub>busy</sub> | \\-1 |\n\n## Notes\n";
        assert_eq!(
            for_terminal(tables(page)),
            "## Tables\n\n| a (busy) | b | -1 |\n\n"
        );
        assert_eq!(tables("# t\n"), "");
    }
}
