//! nginx's command line: single letters, which may be joined, with their values joined or separate.

/// The options of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) show_help: bool,
    pub(crate) show_version: bool,
    pub(crate) show_configure: bool,
    pub(crate) test: bool,
    pub(crate) dump: bool,
    pub(crate) quiet: bool,
    /// `-p`
    pub(crate) prefix: Option<Vec<u8>>,
    /// `-c`
    pub(crate) conf: Option<Vec<u8>>,
    /// `-e`
    pub(crate) error_log: Option<Vec<u8>>,
    /// `-g`
    pub(crate) globals: Option<Vec<u8>>,
    /// `-s`
    pub(crate) signal: Option<Order>,
}

/// The values of `-s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Stop,
    Quit,
    Reopen,
    Reload,
}

/// Why a command line is refused: nginx's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) message: String,
    /// The option that was refused, if it is one that does not exist.
    pub(crate) unknown: Option<String>,
}

impl Order {
    pub(crate) const ALL: [(&'static str, Self); 4] = [
        ("stop", Self::Stop),
        ("quit", Self::Quit),
        ("reopen", Self::Reopen),
        ("reload", Self::Reload),
    ];

    fn parse(name: &[u8]) -> Option<Self> {
        let known = Self::ALL
            .into_iter()
            .find(|(known, _)| known.as_bytes() == name);
        known.map(|(_, order)| order)
    }
}

/// Reads the arguments after the program's name.
pub(crate) fn parse(arguments: &[Vec<u8>]) -> Result<Options, Refused> {
    let mut options = Options::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let Some(letters) = argument.strip_prefix(b"-") else {
            return Err(invalid(argument));
        };
        let mut letters = letters.iter();
        while let Some(&letter) = letters.next() {
            if options.set_flag(letter) {
                continue;
            }
            let missing = match letter {
                b'p' => "directory name",
                b'c' | b'e' => "file name",
                b'g' | b's' => "parameter",
                _ => return Err(invalid(&[letter])),
            };
            // The rest of the argument, or the next one.
            let joined = letters.as_slice();
            let value = if joined.is_empty() {
                arguments.next()
            } else {
                Some(&joined.to_vec())
            };
            let Some(value) = value else {
                return Err(requires(letter, missing));
            };
            options.set_value(letter, value)?;
            break;
        }
    }
    Ok(options)
}

impl Options {
    fn set_flag(&mut self, letter: u8) -> bool {
        match letter {
            b'?' | b'h' => {
                self.show_version = true;
                self.show_help = true;
            }
            b'v' => self.show_version = true,
            b'V' => {
                self.show_version = true;
                self.show_configure = true;
            }
            b't' => self.test = true,
            b'T' => {
                self.test = true;
                self.dump = true;
            }
            b'q' => self.quiet = true,
            _ => return false,
        }
        true
    }

    fn set_value(&mut self, letter: u8, value: &[u8]) -> Result<(), Refused> {
        let owned = Some(value.to_vec());
        match letter {
            b'p' if value.is_empty() => return Err(requires(letter, "directory name")),
            b'c' | b'e' if value.is_empty() => return Err(requires(letter, "file name")),
            b'p' => self.prefix = owned,
            b'c' => self.conf = owned,
            b'e' => self.error_log = owned,
            b'g' => self.globals = owned,
            _ => {
                let order = Order::parse(value);
                let refused = || invalid(&[b"-s ", value].concat());
                self.signal = Some(order.ok_or_else(refused)?);
            }
        }
        Ok(())
    }
}

fn invalid(option: &[u8]) -> Refused {
    let option = String::from_utf8_lossy(option).into_owned();
    Refused {
        message: format!("invalid option: \"{option}\""),
        unknown: Some(option),
    }
}

fn requires(letter: u8, what: &str) -> Refused {
    Refused {
        message: format!("option \"-{}\" requires {what}", char::from(letter)),
        unknown: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &str) -> Result<Options, Refused> {
        let arguments: Vec<Vec<u8>> = words
            .split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect();
        parse(&arguments)
    }

    fn check(words: &str, expected: Options) {
        assert_eq!(parse_words(words), Ok(expected), "{words}");
    }

    fn check_refused(words: &str, expected: &str) {
        assert_eq!(parse_words(words).unwrap_err().message, expected, "{words}");
    }

    #[test]
    fn letters_may_be_joined_and_so_may_values() {
        let none = Options::default;
        check(
            "-t",
            Options {
                test: true,
                ..none()
            },
        );
        check(
            "-tq",
            Options {
                test: true,
                quiet: true,
                ..none()
            },
        );
        check(
            "-T",
            Options {
                test: true,
                dump: true,
                ..none()
            },
        );
        check(
            "-c a -p /b",
            Options {
                conf: Some(b"a".to_vec()),
                prefix: Some(b"/b".to_vec()),
                ..none()
            },
        );
        check(
            "-ca",
            Options {
                conf: Some(b"a".to_vec()),
                ..none()
            },
        );
        check(
            "-tca",
            Options {
                test: true,
                conf: Some(b"a".to_vec()),
                ..none()
            },
        );
        check(
            "-V",
            Options {
                show_version: true,
                show_configure: true,
                ..none()
            },
        );
        check(
            "-s quit",
            Options {
                signal: Some(Order::Quit),
                ..none()
            },
        );
        check(
            "-sreload",
            Options {
                signal: Some(Order::Reload),
                ..none()
            },
        );
        check("-", none());
    }

    #[test]
    fn refusals_are_worded_as_nginx_s() {
        check_refused("-x", "invalid option: \"x\"");
        check_refused("foo", "invalid option: \"foo\"");
        check_refused("--help", "invalid option: \"-\"");
        check_refused("-s foo", "invalid option: \"-s foo\"");
        check_refused("-c", "option \"-c\" requires file name");
        check_refused("-e", "option \"-e\" requires file name");
        check_refused("-p", "option \"-p\" requires directory name");
        check_refused("-g", "option \"-g\" requires parameter");
        check_refused("-s", "option \"-s\" requires parameter");
    }
}
