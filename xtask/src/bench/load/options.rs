//! The command line of `cargo xtask bench load`.

use std::path::PathBuf;

use super::case::{CASES, Case};
use super::server::Kind;
use crate::bench::order::Order;

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
    pub(super) order: Order,
    pub(super) cases: Vec<Case>,
    pub(super) server: Kind,
    pub(super) millstream: Option<PathBuf>,
}

impl Options {
    pub(super) fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut cases = Vec::new();
        let mut kind = Kind::Respond;
        let mut millstream = None;
        let order = Order::parse(arguments, |argument, value| {
            match argument {
                "--case" => cases.push(case(value()?)?),
                "--server" => kind = server(value()?)?,
                "--millstream" => millstream = Some(value()?.into()),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Self {
            order,
            cases,
            server: kind,
            millstream,
        })
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
    use crate::bench::order::Order;

    #[test]
    fn each_option_is_taken() {
        let line = "--case close-0 --seconds 1 --server floor --millstream /m";
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let expected = Options {
            order: Order {
                seconds: Some(1),
                ..Order::default()
            },
            cases: vec![CASES[3]],
            server: Kind::Floor,
            millstream: Some("/m".into()),
        };
        assert_eq!(Options::parse(&arguments), Ok(expected));
        let usual = Options {
            order: Order::default(),
            cases: Vec::new(),
            server: Kind::Respond,
            millstream: None,
        };
        assert_eq!(Options::parse(&[]), Ok(usual));
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
