//! The command line of `cargo xtask bench serve`.

use std::path::PathBuf;

use crate::bench::order::Order;

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

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) order: Order,
    pub(super) cases: Vec<String>,
    pub(super) full: bool,
    pub(super) floor: bool,
    pub(super) server: Option<PathBuf>,
}

impl Options {
    pub(super) fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        options.order = Order::parse(arguments, |argument, value| {
            match argument {
                "--case" => options.cases.push(value()?.to_owned()),
                "--full" => options.full = true,
                "--floor" => options.floor = true,
                "--server" => options.server = Some(value()?.into()),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::Options;
    use crate::bench::order::Order;

    #[test]
    fn each_option_is_taken() {
        let line = "--case a --seconds 1 --floor --server /x/nginx --case b --full";
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let expected = Options {
            order: Order {
                seconds: 1,
                ..Order::default()
            },
            cases: vec!["a".to_owned(), "b".to_owned()],
            full: true,
            floor: true,
            server: Some("/x/nginx".into()),
        };
        assert_eq!(Options::parse(&arguments), Ok(expected));
        assert_eq!(Options::parse(&[]), Ok(Options::default()));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_name() {
        for (arguments, message) in [
            (&["--case"][..], "--case wants a value"),
            (&["--fast"], "no option is called \"--fast\""),
        ] {
            assert_eq!(Options::parse(arguments), Err(message.to_owned()));
        }
    }
}
