//! Our congestion control beside the kernel's, over the same emulated paths: goodput, standing queue, and the share of a bottleneck.
//!
//! ```text
//! testbed.rs     two namespaces, a TAP device in each
//! emulator.rs    frames from one to the other; what the path does to them is mill-sim's `Lane`
//! sender.rs      Millstream on kernel sockets, or on its stack
//! receiver.rs    a download, on kernel sockets
//! trial.rs       a download alone, or two together
//! report.rs      tables
//! ```

/// A path between two interfaces.
mod emulator;
/// A download as a client sees it.
mod receiver;
/// Tables of what was measured.
mod report;
/// What sends.
mod sender;
/// How much waits before the wire.
mod standing;
/// Two network namespaces.
mod testbed;
/// One trial.
mod trial;

use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::process::ExitCode;

use mill_lab_host::interrupt::Interrupt;

use super::count::count;
use super::recipe;
use crate::EXIT_USAGE;
use mill_simtest::standard_paths::{PATHS, StandardPath as Path};
use report::Results;
use sender::{Algorithm, Program, Stack, Subject};
use testbed::{Testbed, has_congestion};
use trial::{Stage, Trust};

const USAGE: &str = "\
Usage: cargo xtask bench paths [OPTION]...

Measures congestion control over ten emulated paths: CUBIC and BBR of the kernel, and of our own stack over AF_XDP, in turn, there
and back: Millstream serves on both, a client on kernel sockets downloads. Then two downloads at a time at one bottleneck. The path
is in this process, between TAP devices of two network namespaces, and counts frames that it delivers late. Takes root.

  --only NAME          only this path; may be repeated
  --list               the paths, then end
  --algorithm NAME     only cubic, or only bbr
  --part alone | share only downloads alone, or only those beside others
  --pairs same | all   beside a flow of the kernel with the same algorithm (default), or also with the other, and the kernel's
                       beside each other
  --rounds N           rounds, each there and back (default 1)
  --seconds N          of a download alone (default 8, satellite 20)
  --share-seconds N    that two downloads are measured for (default 20)
  --seed N             of what is lost and corrupted in the first round, the next has the next (default 1)
  --stack-options TEXT more options of our stack, such as pacing=on
  --server PATH        the Millstream to measure (default: builds target/release/millstream)
  --markdown FILE      writes the tables
";

pub(crate) fn run(root: &FilePath, options: &[&str]) -> ExitCode {
    let wish = match Wish::parse(options) {
        Ok(Some(wish)) => wish,
        Ok(None) => return ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask bench paths: {message}\n\n{USAGE}");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    match carry_out(root, &wish) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask bench paths: {message}");
            ExitCode::FAILURE
        }
    }
}

/// What is measured.
struct Wish {
    paths: Vec<Path>,
    algorithm: Option<Algorithm>,
    is_alone: bool,
    is_shared: bool,
    all_pairs: bool,
    rounds: u32,
    seconds: Option<u32>,
    share_seconds: u32,
    seed: u64,
    stack_options: String,
    server: Option<PathBuf>,
    markdown: Option<PathBuf>,
}

impl Default for Wish {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            algorithm: None,
            is_alone: true,
            is_shared: true,
            all_pairs: false,
            rounds: 1,
            seconds: None,
            share_seconds: 20,
            seed: 1,
            stack_options: String::new(),
            server: None,
            markdown: None,
        }
    }
}

impl Wish {
    /// `None` if what was asked for has been printed.
    fn parse(options: &[&str]) -> Result<Option<Self>, String> {
        let mut wish = Self::default();
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let mut value = || {
                let value = options.next().copied();
                value.ok_or_else(|| format!("{option} wants a value"))
            };
            match *option {
                "--help" | "-h" => {
                    print!("{USAGE}");
                    return Ok(None);
                }
                "--list" => {
                    for path in PATHS {
                        println!("{:<12} {}", path.name, path.description());
                    }
                    return Ok(None);
                }
                "--only" => {
                    let name = value()?;
                    let path = Path::named(name);
                    wish.paths.push(path.ok_or_else(|| {
                        format!("no path is called \"{name}\"; --list says which there are")
                    })?);
                }
                _ => wish.set(option, value()?)?,
            }
        }
        if wish.paths.is_empty() {
            wish.paths = PATHS.to_vec();
        }
        Ok(Some(wish))
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match (option, value) {
            ("--algorithm", "cubic") => self.algorithm = Some(Algorithm::Cubic),
            ("--algorithm", "bbr") => self.algorithm = Some(Algorithm::Bbr),
            ("--part", "alone") => self.is_shared = false,
            ("--part", "share") => self.is_alone = false,
            ("--pairs", "same" | "all") => self.all_pairs = value == "all",
            ("--rounds", _) => self.rounds = count(option, value)?,
            ("--seconds", _) => self.seconds = Some(count(option, value)?),
            ("--share-seconds", _) => self.share_seconds = count(option, value)?,
            ("--seed", _) => {
                let seed = value.parse();
                self.seed = seed.map_err(|_| format!("--seed wants a number, not \"{value}\""))?;
            }
            ("--stack-options", _) => self.stack_options = format!(",{value}"),
            ("--server", _) => self.server = Some(PathBuf::from(value)),
            ("--markdown", _) => self.markdown = Some(PathBuf::from(value)),
            _ => {
                return Err(format!(
                    "{option} {value}: there is no such option, or no such value"
                ));
            }
        }
        Ok(())
    }
}

fn carry_out(root: &FilePath, wish: &Wish) -> Result<(), String> {
    if !mill_sys::account::is_super_user() {
        return Err(String::from(
            "it takes root, for network namespaces and AF_XDP",
        ));
    }
    let server = wish.server.clone();
    let server = server.map_or_else(|| recipe::build(root, "millstream"), Ok)?;
    let said = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    // Before any other thread.
    let interrupt = Interrupt::listen().map_err(said("signals"))?;
    let algorithms: Vec<Algorithm> = [Algorithm::Cubic, Algorithm::Bbr]
        .into_iter()
        .filter(|algorithm| wish.algorithm.is_none_or(|only| only == *algorithm))
        .filter(|algorithm| {
            let is_there = has_congestion(algorithm.word());
            if !is_there {
                eprintln!("this kernel has no {}: not measured", algorithm.word());
            }
            is_there
        })
        .collect();
    let program = Program::prepare(server, &wish.stack_options);
    let stage = Stage {
        testbed: Testbed::raise().map_err(said("the network namespaces"))?,
        program: program.map_err(said("the files to serve"))?,
        interrupt,
    };
    let mut bench = Bench {
        wish,
        stage,
        algorithms,
        results: Results::default(),
    };
    let ended = bench.measure();
    println!("{}", bench.results.text());
    if let Some(file) = &wish.markdown {
        std::fs::write(file, bench.results.markdown()).map_err(said("the page"))?;
    }
    ended.map_err(|error| match error.kind() {
        io::ErrorKind::Interrupted => String::from("interrupted"),
        _ => error.to_string(),
    })
}

/// The measurement, and how far it is.
struct Bench<'a> {
    wish: &'a Wish,
    stage: Stage,
    algorithms: Vec<Algorithm>,
    results: Results,
}

impl Bench<'_> {
    fn measure(&mut self) -> io::Result<()> {
        for path in &self.wish.paths {
            if self.wish.is_alone {
                self.measure_alone(*path)?;
            }
            if self.wish.is_shared {
                self.measure_shared(*path)?;
            }
        }
        Ok(())
    }

    /// For each algorithm there and back: kernel, ours, ours, kernel.
    fn measure_alone(&mut self, path: Path) -> io::Result<()> {
        let seconds = self.wish.seconds.unwrap_or(path.seconds);
        for round in 0..self.wish.rounds {
            for algorithm in self.algorithms.clone() {
                for stack in [Stack::Kernel, Stack::Ours, Stack::Ours, Stack::Kernel] {
                    let subject = Subject { stack, algorithm };
                    let alone = self.undisturbed(round, |stage, seed| {
                        let alone = stage.alone(path, subject, (seconds, seed))?;
                        Ok((alone, alone.trust))
                    })?;
                    let (name, rate) = (subject.name(), alone.goodput / 1e6);
                    eprintln!("{} {name}: {rate:.1} Mbit/s", path.name);
                    self.results.alone.push((path, subject, alone));
                }
            }
        }
        Ok(())
    }

    /// Each pair twice: either flow begins once.
    fn measure_shared(&mut self, path: Path) -> io::Result<()> {
        let seconds = self.wish.share_seconds;
        for round in 0..self.wish.rounds {
            for [one, other] in self.pairs() {
                for subjects in [[one, other], [other, one]] {
                    let together = self.undisturbed(round, |stage, seed| {
                        let together = stage.together(path, subjects, (seconds, seed))?;
                        Ok((together, together.trust))
                    })?;
                    let [first, second] = subjects.map(Subject::name);
                    let [rate, beside] = together.goodput.map(|rate| rate / 1e6);
                    eprintln!(
                        "{} {first} {rate:.1}, {second} {beside:.1} Mbit/s",
                        path.name
                    );
                    self.results.together.push((path, subjects, together));
                }
            }
        }
        Ok(())
    }

    fn pairs(&self) -> Vec<[Subject; 2]> {
        let subject = |stack, algorithm| Subject { stack, algorithm };
        let mut pairs = Vec::new();
        for &ours in &self.algorithms {
            for &kernel in &self.algorithms {
                if ours == kernel || self.wish.all_pairs {
                    pairs.push([subject(Stack::Ours, ours), subject(Stack::Kernel, kernel)]);
                }
                // Each two of the kernel's once.
                if self.wish.all_pairs && (ours == kernel || ours == Algorithm::Bbr) {
                    pairs.push([subject(Stack::Kernel, ours), subject(Stack::Kernel, kernel)]);
                }
            }
        }
        pairs
    }

    /// Carries out a trial, and again, a few times, if the machine was busy with other things. All trials of a round have the same seed:
    /// as long as they send alike, they lose alike.
    fn undisturbed<T>(
        &mut self,
        round: u32,
        trial: impl Fn(&Stage, u64) -> io::Result<(T, Trust)>,
    ) -> io::Result<T> {
        let seed = self.wish.seed.wrapping_add(u64::from(round));
        let mut tries = 1;
        loop {
            let (result, trust) = trial(&self.stage, seed)?;
            if tries == TRIES || !trust.is_disturbed() {
                return Ok(result);
            }
            tries += 1;
            self.results.disturbed += 1;
            let (late, latest) = (trust.late_per_mille, trust.latest.as_secs_f64() * 1e3);
            eprintln!(
                "disturbed, again: {late:.1} of a thousand frames late, by up to {latest:.1} ms"
            );
        }
    }
}

/// Of a trial that is disturbed, before it counts nevertheless.
const TRIES: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_choose_paths_parts_and_rounds() {
        let wish = Wish::parse(&[
            "--only", "dsl", "--rounds", "3", "--part", "share", "--seed", "7",
        ]);
        let wish = wish.unwrap().unwrap();
        assert_eq!(
            wish.paths.iter().map(|path| path.name).collect::<Vec<_>>(),
            ["dsl"]
        );
        assert_eq!((wish.rounds, wish.seed), (3, 7));
        assert!(wish.is_shared && !wish.is_alone);
        assert_eq!(Wish::parse(&[]).unwrap().unwrap().paths.len(), PATHS.len());
    }

    #[test]
    fn what_is_no_option_or_no_value_is_refused() {
        for options in [
            &["--only", "moon"][..],
            &["--only"],
            &["--part", "both"],
            &["--seed", "x"],
            &["--rounds", "0"],
            &["--nothing", "1"],
        ] {
            assert!(Wish::parse(options).is_err(), "{options:?}");
        }
    }
}
