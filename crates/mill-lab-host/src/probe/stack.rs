//! Stacks as `perf script -F comm,pid,ip,sym,dso` prints them, folded and counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Samples of a profile by their stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stacks {
    /// `command;outermost;…;innermost` to samples.
    folded: BTreeMap<String, u64>,
    /// Command, object and symbol to samples in it and below it.
    rows: BTreeMap<(String, String, String), Hits>,
    pub samples: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Hits {
    own: u64,
    children: u64,
}

/// One line of a stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    symbol: String,
    object: String,
}

impl Stacks {
    /// Samples are separated by empty lines; the first line of each is the command and the process.
    pub(super) fn parse(text: &str) -> Self {
        let mut stacks = Self::default();
        let mut command: Option<String> = None;
        let mut frames: Vec<Frame> = Vec::new();
        for line in text.lines().chain([""]) {
            if line.is_empty() {
                if let Some(command) = command.take() {
                    stacks.add(&command, &frames);
                }
                frames.clear();
            } else if line.starts_with(char::is_whitespace) {
                frames.extend(frame(line));
            } else if !line.starts_with('#') {
                command = Some(command_of(line));
            }
        }
        stacks
    }

    /// Innermost frame first, as perf prints them.
    fn add(&mut self, command: &str, frames: &[Frame]) {
        let unknown = Frame {
            symbol: String::from("[unknown]"),
            object: String::from("[unknown]"),
        };
        let Some(leaf) = frames.first().or(Some(&unknown)) else {
            return;
        };
        self.samples += 1;
        let mut folded = word(command);
        for frame in frames.iter().rev() {
            folded.push(';');
            folded.push_str(&word(&frame.symbol));
            if frame.object.starts_with("[kernel") || frame.object.ends_with(".ko") {
                // As flame graphs mark the kernel's frames.
                folded.push_str("_[k]");
            }
        }
        *self.folded.entry(folded).or_insert(0) += 1;
        let row = |frame: &Frame| {
            (
                command.to_owned(),
                frame.object.clone(),
                frame.symbol.clone(),
            )
        };
        self.rows.entry(row(leaf)).or_default().own += 1;
        // Recursion counts once.
        let all: BTreeSet<&Frame> = frames
            .iter()
            .chain(frames.is_empty().then_some(leaf))
            .collect();
        for frame in all {
            self.rows.entry(row(frame)).or_default().children += 1;
        }
    }

    /// One stack a line with its samples, the most frequent first, at most `bytes_max`.
    pub(super) fn folded(&self, bytes_max: usize) -> String {
        let mut stacks: Vec<(&String, &u64)> = self.folded.iter().collect();
        stacks.sort_by(|left, right| right.1.cmp(left.1).then(left.0.cmp(right.0)));
        let mut text = String::new();
        for (stack, samples) in stacks {
            let line = format!("{stack} {samples}\n");
            if text.len() + line.len() > bytes_max {
                break;
            }
            text.push_str(&line);
        }
        text
    }

    /// As `perf report --children`: the `count` rows with most own samples.
    pub(super) fn table(&self, count: usize) -> String {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by(|left, right| right.1.own.cmp(&left.1.own).then(left.0.cmp(right.0)));
        let mut text = String::from(
            "Children      Self  Command          Shared Object                   Symbol\n",
        );
        for ((command, object, symbol), hits) in rows.into_iter().take(count) {
            let (children, own) = (self.percent(hits.children), self.percent(hits.own));
            let name = object.rsplit('/').next().unwrap_or(object);
            let kernel = if object.starts_with("[kernel") {
                "[k]"
            } else {
                "[.]"
            };
            let _ = writeln!(
                text,
                "{children:>7.2}%  {own:>7.2}%  {command:<16} {name:<31} {kernel} {symbol}"
            );
        }
        text
    }

    /// The symbols with most own samples, of all processes: name and percent.
    pub(super) fn hottest(&self, count: usize) -> Vec<(String, f64)> {
        let mut symbols: BTreeMap<&str, u64> = BTreeMap::new();
        for ((_, _, symbol), hits) in &self.rows {
            *symbols.entry(symbol).or_insert(0) += hits.own;
        }
        let mut symbols: Vec<(&str, u64)> = symbols
            .into_iter()
            .filter(|(symbol, own)| *own > 0 && *symbol != "[unknown]")
            .collect();
        symbols.sort_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(right.0)));
        symbols
            .into_iter()
            .take(count)
            .map(|(symbol, own)| (symbol.to_owned(), self.percent(own)))
            .collect()
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a profile has far less than 2⁵³ samples"
    )]
    fn percent(&self, samples: u64) -> f64 {
        samples as f64 * 100.0 / (self.samples.max(1) as f64)
    }
}

/// `\t 7f00 symbol name (object)`.
fn frame(line: &str) -> Option<Frame> {
    let (_, rest) = line.trim().split_once(' ')?;
    // Symbols of C++ and Rust hold blanks and parentheses; objects begin after the last blank and parenthesis.
    let (symbol, object) = rest.rsplit_once(" (")?;
    Some(Frame {
        symbol: symbol.to_owned(),
        object: object.strip_suffix(')').unwrap_or(object).to_owned(),
    })
}

/// `name of the command 4242`, which may hold blanks.
fn command_of(line: &str) -> String {
    let line = line.trim_end();
    match line.rsplit_once(' ') {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            name.trim_end().to_owned()
        }
        _ => line.to_owned(),
    }
}

/// A frame of a folded stack holds no semicolon, which parts frames.
fn word(text: &str) -> String {
    text.replace(';', ":")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "\
nginx 42 
	ffffffff8171a015 tcp_sendmsg ([kernel.kallsyms])
	ffffffff816e81e7 do_syscall_64 ([kernel.kallsyms])
	           d4ad7 __libc_send (/usr/lib/x86_64-linux-gnu/libc.so.6)
	           27240 main (/usr/sbin/nginx)

opt cgu.03 20070 
	           11c86 core::ops::<impl Fn(u8)>::call (/usr/bin/my prog)

nginx 42 
	ffffffff8171a015 tcp_sendmsg ([kernel.kallsyms])
	ffffffff816e81e7 do_syscall_64 ([kernel.kallsyms])
	           d4ad7 __libc_send (/usr/lib/x86_64-linux-gnu/libc.so.6)
	           27240 main (/usr/sbin/nginx)

nginx 42 
	           27240 main (/usr/sbin/nginx)
	           27240 main (/usr/sbin/nginx)
";

    #[test]
    fn equal_stacks_are_one_line_from_the_outermost_in() {
        let stacks = Stacks::parse(SCRIPT);
        assert_eq!(stacks.samples, 4);
        assert_eq!(
            stacks.folded(1 << 20),
            "nginx;main;__libc_send;do_syscall_64_[k];tcp_sendmsg_[k] 2\n\
             nginx;main;main 1\n\
             opt cgu.03;core::ops::<impl Fn(u8)>::call 1\n"
        );
    }

    #[test]
    fn a_table_has_own_samples_and_those_below() {
        let table = Stacks::parse(SCRIPT).table(2);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3);
        let words: Vec<&str> = lines[1].split_ascii_whitespace().collect();
        let expected = [
            "50.00%",
            "50.00%",
            "nginx",
            "[kernel.kallsyms]",
            "[k]",
            "tcp_sendmsg",
        ];
        assert_eq!(words, expected);
        let main: Vec<&str> = lines[2].split_ascii_whitespace().collect();
        assert_eq!(main, ["75.00%", "25.00%", "nginx", "nginx", "[.]", "main"]);
    }

    #[test]
    fn the_hottest_symbols_go_first() {
        let hottest = Stacks::parse(SCRIPT).hottest(1);
        assert_eq!(hottest, [(String::from("tcp_sendmsg"), 50.0)]);
    }

    #[test]
    fn what_is_too_long_is_cut_at_a_line() {
        let folded = Stacks::parse(SCRIPT).folded(70);
        assert_eq!(folded.lines().count(), 1);
    }

    #[test]
    fn text_that_is_no_stack_is_no_sample() {
        assert_eq!(Stacks::parse(""), Stacks::default());
        assert_eq!(Stacks::parse("\t12 f (o)\n# comment\n\n").samples, 0);
        // A sample without a stack is still a sample.
        assert_eq!(Stacks::parse("nginx 42\n").folded(99), "nginx 1\n");
    }
}
