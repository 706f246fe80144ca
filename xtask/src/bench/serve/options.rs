//! The command line of `cargo xtask bench serve`.

use std::path::PathBuf;

use crate::bench::count::count;

pub(super) const USAGE: &str = "\
Usage: cargo xtask bench serve [OPTION]...

Measures Millstream against nginx with the same configuration, in turn, each block with a fresh
server: one worker pinned to the first CPU, wrk to the second.

  --case NAME      only this case; may be repeated
  --full           every size, connection kind and number of connections (about 40 minutes)
  --list           the names of the cases, then end
  --seconds N      length of a timed block (default 2)
  --rounds N       rounds of nginx, Millstream, Millstream, nginx (default 3)
  --floor          also measure a server that parses nothing, in the cases of 0 bytes
  --server PATH    the server to measure (default: builds target/release/millstream);
                   a program whose name begins with \"nginx\" gets nginx's command line
  --timed-only     no system calls, allocations and memory
  --json FILE      every block, for programs
  --markdown FILE  the tables with the machine and the meaning of the columns
";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) cases: Vec<String>,
    pub(super) full: bool,
    pub(super) list: bool,
    pub(super) help: bool,
    pub(super) seconds: u32,
    pub(super) rounds: u32,
    pub(super) floor: bool,
    pub(super) timed_only: bool,
    pub(super) server: Option<PathBuf>,
    pub(super) json: Option<PathBuf>,
    pub(super) markdown: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cases: Vec::new(),
            full: false,
            list: false,
            help: false,
            seconds: 2,
            rounds: 3,
            floor: false,
            timed_only: false,
            server: None,
            json: None,
            markdown: None,
        }
    }
}

impl Options {
    pub(super) fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut arguments = arguments.iter().copied();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.ok_or_else(|| format!("{argument} wants a value"))
            };
            match argument {
                "--case" => options.cases.push(value()?.to_owned()),
                "--full" => options.full = true,
                "--list" => options.list = true,
                "--help" | "-h" => options.help = true,
                "--seconds" => options.seconds = count(argument, value()?)?,
                "--rounds" => options.rounds = count(argument, value()?)?,
                "--floor" => options.floor = true,
                "--timed-only" => options.timed_only = true,
                "--server" => options.server = Some(value()?.into()),
                "--json" => options.json = Some(value()?.into()),
                "--markdown" => options.markdown = Some(value()?.into()),
                _ => return Err(format!("no option is called \"{argument}\"")),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    #[test]
    fn each_option_is_taken() {
        let arguments = [
            "--case",
            "a",
            "--seconds",
            "1",
            "--rounds",
            "2",
            "--floor",
            "--server",
            "/x/nginx",
            "--case",
            "b",
            "--json",
            "j",
            "--markdown",
            "m",
            "--full",
            "--timed-only",
            "--list",
        ];
        let expected = Options {
            cases: vec!["a".to_owned(), "b".to_owned()],
            full: true,
            list: true,
            help: false,
            seconds: 1,
            rounds: 2,
            floor: true,
            timed_only: true,
            server: Some("/x/nginx".into()),
            json: Some("j".into()),
            markdown: Some("m".into()),
        };
        assert_eq!(Options::parse(&arguments), Ok(expected));
        assert_eq!(Options::parse(&[]), Ok(Options::default()));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_name() {
        for (arguments, message) in [
            (&["--case"][..], "--case wants a value"),
            (&["--fast"], "no option is called \"--fast\""),
            (
                &["--seconds", "0"],
                "--seconds wants a number from 1 to 3600, not \"0\"",
            ),
            (
                &["--rounds", "x"],
                "--rounds wants a number from 1 to 3600, not \"x\"",
            ),
        ] {
            assert_eq!(Options::parse(arguments), Err(message.to_owned()));
        }
    }
}
