//! A command line of the experiments, and its changes for a short run.

use super::site::Site;
use std::process::{Command, Output};

/// A command line in words.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// wrk, ab or millstream.
    pub(super) tool: String,
    pub(super) arguments: Vec<String>,
}

impl Line {
    /// Splits a command as typed into a shell. The words before the tool, such as `taskset`, are its prefix.
    pub(super) fn parse(command: &str) -> Self {
        let mut words = words(command).into_iter();
        let tool = words.find_map(|word| {
            let name = word.rsplit('/').next().unwrap_or_default();
            let is_known = ["wrk", "wrk2", "ab", "millstream"].contains(&name);
            is_known.then(|| String::from(name))
        });
        Self {
            tool: tool.expect("the command names a tool"),
            arguments: words.collect(),
        }
    }

    /// Changes the value of an option; `-d 30` and `-d30s` are both recognised.
    #[track_caller]
    pub(super) fn set(&mut self, option: &str, value: &str) {
        let place = self.place(option);
        if self.arguments[place] == option {
            self.arguments[place + 1] = String::from(value);
        } else {
            self.arguments[place] = format!("{option}{value}");
        }
    }

    /// The number that an option has.
    #[track_caller]
    pub(super) fn number(&self, option: &str) -> u64 {
        let place = self.place(option);
        let value = match self.arguments[place].strip_prefix(option) {
            Some("") => &self.arguments[place + 1],
            glued => glued.unwrap(),
        };
        value.trim_end_matches('s').parse().unwrap()
    }

    /// Points the last word at our server: everything except the path is replaced.
    pub(super) fn aim(&mut self, site: &Site) -> String {
        let url = self.arguments.last_mut().unwrap();
        let rest = url.split_once("://").unwrap().1;
        let path = rest.find('/').map_or("/", |slash| &rest[slash..]);
        let path = String::from(path);
        *url = format!("http://{}{path}", site.address);
        path
    }

    pub(super) fn url(&self) -> &str {
        self.arguments.last().unwrap()
    }

    pub(super) fn has(&self, option: &str) -> bool {
        self.arguments.iter().any(|word| word == option)
    }

    /// Through the link of the tool's name.
    pub(super) fn command(&self, site: &Site) -> Command {
        let mut command = Command::new(site.program(&self.tool));
        command.args(&self.arguments);
        command
    }

    #[track_caller]
    fn place(&self, option: &str) -> usize {
        let is_it = |word: &String| {
            let glued = word.strip_prefix(option).unwrap_or("-");
            glued.is_empty()
                || (option.len() == 2 && glued.starts_with(|c: char| c.is_ascii_digit()))
        };
        let place = self.arguments.iter().position(is_it);
        place.unwrap_or_else(|| panic!("no {option} in {:?}", self.arguments))
    }
}

/// The output of a process, checked to be text.
pub(super) struct Printed {
    pub(super) out: String,
    pub(super) err: String,
    pub(super) status: Option<i32>,
}

impl From<Output> for Printed {
    fn from(output: Output) -> Self {
        Self {
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            status: output.status.code(),
        }
    }
}

/// Words between blanks; within single quotes blanks belong to the word.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in text.chars() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            letter => words.last_mut().unwrap().push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn command_lines_are_taken_apart_as_a_shell_does() {
    let line = Line::parse("taskset -c [0-31] ./wrk -t 1 -H 'Connection: close' -d30s http://a/b");
    assert_eq!(line.tool, "wrk");
    let expected = ["-t", "1", "-H", "Connection: close", "-d30s", "http://a/b"];
    assert_eq!(line.arguments, expected);
    assert_eq!((line.number("-t"), line.number("-d")), (1, 30));
    let mut short = line.clone();
    short.set("-d", "1");
    short.set("-t", "2");
    let expected = ["-t", "2", "-H", "Connection: close", "-d1", "http://a/b"];
    assert_eq!(short.arguments, expected);
}
