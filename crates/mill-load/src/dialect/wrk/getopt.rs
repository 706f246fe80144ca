//! Options as glibc's `getopt_long` reads them: clusters, abbreviations, operands anywhere, and its error messages.

/// Whether an option takes an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    Argument,
}

/// One option. Its letter identifies it, even if it cannot be written as a letter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opt {
    pub(crate) letter: u8,
    /// Can be written `-x`.
    pub(crate) short: bool,
    /// Can be written `--word`; empty if not.
    pub(crate) long: &'static str,
    pub(crate) takes: Takes,
    /// Not of the tool's own: abbreviations mean its own options first.
    pub(crate) beyond: bool,
}

/// What was found next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    Option(u8, Option<&'a [u8]>),
    /// An unknown option, or one without its argument: the error message, without the tool's name.
    Fault(String),
}

/// Reads a command line; an iterator over its options. Operands are collected.
#[derive(Debug)]
pub(crate) struct Getopt<'a> {
    options: &'a [Opt],
    arguments: &'a [Vec<u8>],
    next: usize,
    /// The rest of a cluster of letters.
    cluster: &'a [u8],
    operands: Vec<&'a [u8]>,
}

impl<'a> Getopt<'a> {
    pub(crate) fn new(options: &'a [Opt], arguments: &'a [Vec<u8>]) -> Self {
        Self {
            options,
            arguments,
            next: 0,
            cluster: &[],
            operands: Vec::new(),
        }
    }

    /// The operands: complete once the iterator has ended.
    pub(crate) fn into_operands(self) -> Vec<&'a [u8]> {
        self.operands
    }

    fn next_argument(&mut self) -> Option<&'a [u8]> {
        let argument = self.arguments.get(self.next)?;
        self.next += 1;
        Some(argument)
    }

    fn short(&mut self) -> Option<Found<'a>> {
        let (letter, rest) = self.cluster.split_first()?;
        self.cluster = rest;
        let known = self
            .options
            .iter()
            .find(|option| option.short && option.letter == *letter);
        let Some(option) = known else {
            return Some(fault("invalid option -- ", &[*letter]));
        };
        if option.takes == Takes::Nothing {
            return Some(Found::Option(option.letter, None));
        }
        let attached = std::mem::take(&mut self.cluster);
        let argument = if attached.is_empty() {
            self.next_argument()
        } else {
            Some(attached)
        };
        Some(match argument {
            None => fault("option requires an argument -- ", &[*letter]),
            argument => Found::Option(option.letter, argument),
        })
    }

    fn long(&mut self, text: &'a [u8]) -> Found<'a> {
        let equals = text.iter().position(|byte| *byte == b'=');
        let (name, value) = match equals {
            Some(at) => (&text[..at], text.get(at + 1..)),
            None => (text, None),
        };
        let option = match self.named(name) {
            Ok(option) => option,
            Err(candidates) if candidates.is_empty() => {
                return Found::Fault(format!("unrecognized option '--{}'", shown(text)));
            }
            Err(candidates) => {
                return Found::Fault(format!(
                    "option '--{}' is ambiguous; possibilities:{}",
                    shown(text),
                    candidates
                        .iter()
                        .map(|name| format!(" '--{name}'"))
                        .collect::<String>()
                ));
            }
        };
        match (option.takes, value) {
            (Takes::Nothing, None) => Found::Option(option.letter, None),
            (Takes::Nothing, Some(_)) => Found::Fault(format!(
                "option '--{}' doesn't allow an argument",
                option.long
            )),
            (Takes::Argument, value) => match value.or_else(|| self.next_argument()) {
                None => Found::Fault(format!("option '--{}' requires an argument", option.long)),
                argument => Found::Option(option.letter, argument),
            },
        }
    }

    /// The option of that name or abbreviation; else the candidates.
    fn named(&self, name: &[u8]) -> Result<Opt, Vec<&'static str>> {
        let worded = || self.options.iter().filter(|option| !option.long.is_empty());
        if let Some(exact) = worded().find(|option| option.long.as_bytes() == name) {
            return Ok(*exact);
        }
        let begins = |beyond: bool| {
            worded()
                .filter(|option| {
                    option.beyond == beyond && option.long.as_bytes().starts_with(name)
                })
                .copied()
                .collect::<Vec<Opt>>()
        };
        let own = begins(false);
        let candidates = if own.is_empty() { begins(true) } else { own };
        match candidates.as_slice() {
            [only] => Ok(*only),
            several => Err(several.iter().map(|option| option.long).collect()),
        }
    }
}

impl<'a> Iterator for Getopt<'a> {
    type Item = Found<'a>;

    fn next(&mut self) -> Option<Found<'a>> {
        if !self.cluster.is_empty() {
            return self.short();
        }
        loop {
            match self.next_argument()? {
                b"--" => {
                    let rest = self.arguments.get(self.next..).unwrap_or_default();
                    self.operands.extend(rest.iter().map(Vec::as_slice));
                    self.next = self.arguments.len();
                    return None;
                }
                [b'-', b'-', text @ ..] => return Some(self.long(text)),
                [b'-', cluster @ ..] if !cluster.is_empty() => {
                    self.cluster = cluster;
                    return self.short();
                }
                operand => self.operands.push(operand),
            }
        }
    }
}

fn fault<'a>(what: &str, letter: &[u8]) -> Found<'a> {
    Found::Fault(format!("{what}'{}'", shown(letter)))
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn option(letter: u8, long: &'static str, takes: Takes, beyond: bool) -> Opt {
        Opt {
            letter,
            short: true,
            long,
            takes,
            beyond,
        }
    }

    const OPTIONS: &[Opt] = &[
        option(b'c', "connections", Takes::Argument, false),
        option(b't', "threads", Takes::Argument, false),
        option(b'T', "timeout", Takes::Argument, false),
        option(b'L', "latency", Takes::Nothing, false),
        option(b'C', "connreqs", Takes::Argument, true),
        option(b'N', "nothing", Takes::Nothing, true),
    ];

    /// Options as `x` or `x=argument`, errors as they are, operands last.
    fn read(line: &[&str]) -> String {
        let arguments: Vec<Vec<u8>> = line.iter().map(|word| word.as_bytes().to_vec()).collect();
        let mut getopt = Getopt::new(OPTIONS, &arguments);
        let mut read = Vec::new();
        for found in &mut getopt {
            read.push(match found {
                Found::Option(letter, None) => char::from(letter).to_string(),
                Found::Option(letter, Some(argument)) => {
                    format!("{}={}", char::from(letter), shown(argument))
                }
                Found::Fault(text) => text,
            });
        }
        let operands = getopt.into_operands();
        read.push(format!(
            "[{}]",
            operands
                .iter()
                .map(|word| shown(word))
                .collect::<Vec<_>>()
                .join(" ")
        ));
        read.join(", ")
    }

    #[test]
    fn options_are_read_as_getopt_does() {
        let check = |line: &[&str], expected| assert_eq!(read(line), expected, "{line:?}");
        check(&["-c8", "-t", "2", "u"], "c=8, t=2, [u]");
        check(&["--connections=8", "--threads", "2"], "c=8, t=2, []");
        check(&["-Lc8"], "L, c=8, []");
        check(&["-LNc", "8"], "L, N, c=8, []");
        check(&["u", "-c2", "v", "--", "-t2", "--"], "c=2, [u v -t2 --]");
        check(&["--lat", "--thr=4"], "L, t=4, []");
        check(&["-", "-c="], "c==, [-]");
        check(&["--connections="], "c=, []");
        check(&["-c", "--", "u"], "c=--, [u]");
        check(&[], "[]");
    }

    #[test]
    fn an_abbreviation_means_the_tools_own_option_first() {
        let check = |line: &[&str], expected| assert_eq!(read(line), expected, "{line:?}");
        check(&["--con=4"], "c=4, []");
        check(&["--connr=4"], "C=4, []");
        check(&["--n"], "N, []");
    }

    #[test]
    fn complaints_have_glibcs_words() {
        let check = |line: &[&str], expected| assert_eq!(read(line), expected, "{line:?}");
        check(&["-q"], "invalid option -- 'q', []");
        check(&["-c"], "option requires an argument -- 'c', []");
        check(
            &["--threads"],
            "option '--threads' requires an argument, []",
        );
        check(&["--bogus=1"], "unrecognized option '--bogus=1', []");
        check(
            &["--latency=3"],
            "option '--latency' doesn't allow an argument, []",
        );
        check(
            &["--t=4"],
            "option '--t=4' is ambiguous; possibilities: '--threads' '--timeout', []",
        );
    }
}
