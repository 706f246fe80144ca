//! The options of every measurement: how long, how often, and where to write the figures.

use std::path::PathBuf;

use super::count::count;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) list: bool,
    pub(super) help: bool,
    /// The length of a timed block.
    pub(super) seconds: Option<u32>,
    pub(super) rounds: Option<u32>,
    pub(super) timed_only: bool,
    pub(super) json: Option<PathBuf>,
    pub(super) markdown: Option<PathBuf>,
}

/// Takes the value that follows an option.
pub(super) type TakeValue<'a, 'w> = dyn FnMut() -> Result<&'w str, String> + 'a;

impl Order {
    /// Parses a command line. An option that not every measurement has goes to `own`, which returns whether it knows
    /// it.
    pub(super) fn parse<'w>(
        arguments: &[&'w str],
        mut own: impl FnMut(&str, &mut TakeValue<'_, 'w>) -> Result<bool, String>,
    ) -> Result<Self, String> {
        let mut order = Self::default();
        let mut arguments = arguments.iter().copied();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.ok_or_else(|| format!("{argument} wants a value"))
            };
            match argument {
                "--list" => order.list = true,
                "--help" | "-h" => order.help = true,
                "--seconds" => order.seconds = Some(count(argument, value()?)?),
                "--rounds" => order.rounds = Some(count(argument, value()?)?),
                "--timed-only" => order.timed_only = true,
                "--json" => order.json = Some(value()?.into()),
                "--markdown" => order.markdown = Some(value()?.into()),
                _ if own(argument, &mut value)? => {}
                _ => return Err(format!("no option is called \"{argument}\"")),
            }
        }
        Ok(order)
    }
}

#[cfg(test)]
mod tests {
    use super::Order;

    /// For a measurement whose only option of its own is "--own VALUE".
    fn check(line: &str, expected: Result<(Order, &str), &str>) {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let mut taken = String::new();
        let order = Order::parse(&arguments, |argument, value| {
            let is_own = argument == "--own";
            if is_own {
                value()?.clone_into(&mut taken);
            }
            Ok(is_own)
        });
        let found = order.map(|order| (order, taken.as_str()));
        assert_eq!(found, expected.map_err(str::to_owned), "{line}");
    }

    #[test]
    fn each_option_is_taken_and_those_of_the_measurement_are_handed_on() {
        let all = Order {
            list: true,
            help: true,
            seconds: Some(1),
            rounds: Some(2),
            timed_only: true,
            json: Some("j".into()),
            markdown: Some("m".into()),
        };
        check(
            "--list -h --seconds 1 --own x --rounds 2 --timed-only --json j --markdown m",
            Ok((all, "x")),
        );
        check("", Ok((Order::default(), "")));
    }

    #[test]
    fn a_wrong_option_is_refused_with_its_name() {
        for (line, message) in [
            ("--own", "--own wants a value"),
            ("--json", "--json wants a value"),
            ("--fast", "no option is called \"--fast\""),
            (
                "--seconds 0",
                "--seconds wants a number from 1 to 3600, not \"0\"",
            ),
            (
                "--rounds x",
                "--rounds wants a number from 1 to 3600, not \"x\"",
            ),
        ] {
            check(line, Err(message));
        }
    }
}
