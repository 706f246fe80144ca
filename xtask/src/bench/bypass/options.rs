//! The command line of `cargo xtask bench bypass`.

use std::path::PathBuf;

use crate::bench::order::Order;

pub(super) const USAGE: &str = "\
Usage: cargo xtask bench bypass [OPTION]...

Measures the network stack of our own: nginx and Millstream on kernel sockets, Millstream over AF_XDP
and over memif, and raw frames over AF_XDP, in turn, each block with a fresh server on the first CPU
and a client on the second, in two network namespaces joined by a veth pair. Takes root.

  --only NAME      only this cell; may be repeated
  --full           every size, connection kind and number of connections, and a million idle ones
                   (idle-1m, which takes a minute); hours in all
  --list           the names of the cells, then end
  --seconds N      length of a timed block (default 1)
  --rounds N       rounds of all subjects there and back (default 2)
  --server PATH    the Millstream to measure (default: builds target/release/millstream)
  --json FILE      every block, for programs
  --markdown FILE  the tables with the machine and the meaning of the columns
";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) order: Order,
    pub(super) only: Vec<String>,
    pub(super) full: bool,
    pub(super) server: Option<PathBuf>,
}

impl Options {
    pub(super) fn parse(arguments: &[&str]) -> Result<Self, String> {
        let (mut only, mut full, mut server) = (Vec::new(), false, None);
        let order = Order::parse(arguments, |argument, value| {
            match argument {
                "--only" => only.push(value()?.to_owned()),
                "--full" => full = true,
                "--server" => server = Some(value()?.into()),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Self {
            order,
            only,
            full,
            server,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Options;
    use crate::bench::order::Order;

    #[test]
    fn each_option_is_taken() {
        let line = "--only a --seconds 3 --server /x/millstream --only b --full";
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let expected = Options {
            order: Order {
                seconds: Some(3),
                ..Order::default()
            },
            only: vec!["a".to_owned(), "b".to_owned()],
            full: true,
            server: Some("/x/millstream".into()),
        };
        assert_eq!(Options::parse(&arguments), Ok(expected));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_name() {
        for (arguments, message) in [
            (&["--only"][..], "--only wants a value"),
            (&["--case", "a"], "no option is called \"--case\""),
        ] {
            assert_eq!(Options::parse(arguments), Err(message.to_owned()));
        }
    }
}
