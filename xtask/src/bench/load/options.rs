//! The command line of `cargo xtask bench load`.

use std::path::PathBuf;

use super::case::{CASES, Case};
use super::server::Kind;
use crate::bench::count::count;

pub(super) const USAGE: &str = "\
Usage: cargo xtask bench load [OPTION]...

Measures load generators against one server that always answers the same: the server on the first
CPU, the clients in turn on the second. Speed beside wrk, ab and h2load; how well an open loop keeps
its times; whether known delays are told as they were; the verdicts on known situations.

  --case NAME      only the speed of this case; may be repeated
  --list           the names of the cases, then end
  --seconds N      length of a timed block (default 2)
  --rounds N       rounds of all clients and back (default 3)
  --server KIND    respond, floor or nginx (default respond): a client is the bound of a case only
                   where the server can do more; see \"bound\"
  --millstream PATH  the binary to measure (default: builds target/release/millstream)
  --timed-only     no system calls
  --json FILE      every block, for programs
  --markdown FILE  the tables with the machine and the meaning of the columns
";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) cases: Vec<Case>,
    pub(super) list: bool,
    pub(super) help: bool,
    pub(super) seconds: u32,
    pub(super) rounds: u32,
    pub(super) server: Kind,
    pub(super) millstream: Option<PathBuf>,
    pub(super) timed_only: bool,
    pub(super) json: Option<PathBuf>,
    pub(super) markdown: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cases: Vec::new(),
            list: false,
            help: false,
            seconds: 2,
            rounds: 3,
            server: Kind::Respond,
            millstream: None,
            timed_only: false,
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
                "--case" => options.cases.push(case(value()?)?),
                "--list" => options.list = true,
                "--help" | "-h" => options.help = true,
                "--seconds" => options.seconds = count(argument, value()?)?,
                "--rounds" => options.rounds = count(argument, value()?)?,
                "--server" => options.server = server(value()?)?,
                "--millstream" => options.millstream = Some(value()?.into()),
                "--timed-only" => options.timed_only = true,
                "--json" => options.json = Some(value()?.into()),
                "--markdown" => options.markdown = Some(value()?.into()),
                _ => return Err(format!("no option is called \"{argument}\"")),
            }
        }
        Ok(options)
    }
}

fn case(name: &str) -> Result<Case, String> {
    let case = CASES.into_iter().find(|case| case.name == name);
    case.ok_or_else(|| format!("no case is called \"{name}\"; --list names all"))
}

fn server(name: &str) -> Result<Kind, String> {
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    kind.ok_or_else(|| format!("--server wants respond, floor or nginx, not \"{name}\""))
}

#[cfg(test)]
mod tests {
    use super::super::case::CASES;
    use super::{Kind, Options};

    #[test]
    fn each_option_is_taken() {
        let line = "--case close-0 --seconds 1 --rounds 2 --server floor --millstream /m --json j \
                    --markdown m --timed-only --list --help";
        let expected = Options {
            cases: vec![CASES[3]],
            list: true,
            help: true,
            seconds: 1,
            rounds: 2,
            server: Kind::Floor,
            millstream: Some("/m".into()),
            timed_only: true,
            json: Some("j".into()),
            markdown: Some("m".into()),
        };
        let arguments: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(Options::parse(&arguments), Ok(expected));
        assert_eq!(Options::parse(&[]), Ok(Options::default()));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_name() {
        for (arguments, message) in [
            (&["--case"][..], "--case wants a value"),
            (
                &["--case", "x"],
                "no case is called \"x\"; --list names all",
            ),
            (
                &["--server", "x"],
                "--server wants respond, floor or nginx, not \"x\"",
            ),
            (&["--fast"], "no option is called \"--fast\""),
        ] {
            assert_eq!(Options::parse(arguments), Err(message.to_owned()));
        }
    }
}
