//! apr_getopt: one letter at a time, letters may be combined, the first argument that is no option ends it.

/// Walks over a command line without the program's name.
#[derive(Debug)]
pub(super) struct Getopt<'a> {
    arguments: &'a [Vec<u8>],
    /// The next argument to look at.
    index: usize,
    /// The rest of the argument that letters are being taken from.
    place: &'a [u8],
}

/// The result of a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// A letter, and its argument if it takes one.
    Letter(u8, &'a [u8]),
    End,
    /// An error that ends the walk, but ab goes on with what it has.
    Complaint(Vec<u8>),
}

impl<'a> Getopt<'a> {
    pub(super) const fn new(arguments: &'a [Vec<u8>]) -> Self {
        Self {
            arguments,
            index: 0,
            place: &[],
        }
    }

    /// The arguments that were not taken.
    pub(super) fn rest(&self) -> &'a [Vec<u8>] {
        self.arguments.get(self.index..).unwrap_or_default()
    }

    /// The next letter. `letters` are those that are known, followed by a colon if they take an argument.
    pub(super) fn next(&mut self, letters: &[u8]) -> Found<'a> {
        if self.place.is_empty() && !self.enter() {
            return Found::End;
        }
        let Some((&letter, place)) = self.place.split_first() else {
            return Found::End;
        };
        let known = letters
            .iter()
            .position(|known| *known == letter && letter != b':');
        let Some(known) = known else {
            return self.unknown(letter, place);
        };
        self.place = place;
        if letters.get(known + 1) != Some(&b':') {
            if place.is_empty() {
                self.index += 1;
            }
            return Found::Letter(letter, &[]);
        }
        self.place = &[];
        self.index += 1;
        if !place.is_empty() {
            return Found::Letter(letter, place);
        }
        let Some(argument) = self.arguments.get(self.index) else {
            return complaint("option requires an argument", letter);
        };
        self.index += 1;
        Found::Letter(letter, argument)
    }

    /// Steps into the next argument; false if it is no option, or ends them.
    fn enter(&mut self) -> bool {
        match self.arguments.get(self.index).map(Vec::as_slice) {
            // Any text after two dashes is ignored.
            Some([b'-', b'-', ..]) => {
                self.index += 1;
                false
            }
            Some([b'-']) => {
                self.place = b"-";
                true
            }
            Some([b'-', letters @ ..]) => {
                self.place = letters;
                true
            }
            _ => false,
        }
    }

    fn unknown(&mut self, letter: u8, place: &'a [u8]) -> Found<'a> {
        self.place = place;
        if letter == b'-' {
            return Found::End;
        }
        if place.is_empty() {
            self.index += 1;
        }
        complaint("illegal option", letter)
    }
}

fn complaint(text: &str, letter: u8) -> Found<'static> {
    let mut line = format!("ab: {text} -- ").into_bytes();
    line.push(letter);
    Found::Complaint(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters with their arguments, then `!` and an error if there is one, then `|` and the rest.
    #[track_caller]
    fn check(line: &str, expected: &str) {
        let arguments: Vec<Vec<u8>> = line.split(' ').map(Vec::from).collect();
        let mut walk = Getopt::new(&arguments);
        let mut seen = String::new();
        loop {
            match walk.next(b"n:kc:") {
                Found::Letter(letter, argument) => {
                    seen.push(char::from(letter));
                    seen.push_str(std::str::from_utf8(argument).unwrap());
                    seen.push(' ');
                }
                Found::End => break,
                Found::Complaint(line) => {
                    seen.push('!');
                    seen.push_str(std::str::from_utf8(&line).unwrap());
                    break;
                }
            }
        }
        let rest: Vec<String> = walk
            .rest()
            .iter()
            .map(|one| String::from_utf8(one.clone()).unwrap())
            .collect();
        assert_eq!(format!("{seen}| {}", rest.join(" ")), expected);
    }

    #[test]
    fn letters_are_taken_as_apr_takes_them() {
        check("-n 5 -k u", "n5 k | u");
        check("-kn5 u", "k n5 | u");
        check("-kkn 5 u", "k k n5 | u");
        check("u -n 5", "| u -n 5");
        check("-n -k u", "n-k | u");
        check("-k -- -n", "k | -n");
        check("--help u", "| u");
        check("-k - u", "k | - u");
        check("", "| ");
    }

    #[test]
    fn an_unknown_option_ends_the_walk_with_an_error() {
        check("-Q u", "!ab: illegal option -- Q| u");
        check("-Qk u", "!ab: illegal option -- Q| -Qk u");
        check("-: u", "!ab: illegal option -- :| u");
        check("-k -n", "k !ab: option requires an argument -- n| ");
    }
}
