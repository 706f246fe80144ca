//! The blocks of wrk and ab that a text quotes, each with the words around it.
//!
//! ```text
//! VM-to-VM: 1 CPU SUT                        section: the last short line that is no label
//! Nginx:                                     label: the line before the command
//! # wrk --latency … http://…:9090/           asked
//! Running 30s test @ http://…:9090/          the block: to "Transfer/sec", or to ab's "(longest request)"
//! ```

use super::sample::Sample;
use crate::command::ClientCommand;
use crate::output;
use crate::recipe::Tool;

/// All blocks of a text, and what could not be read of it: (place, problem).
pub(super) fn of(name: &str, text: &str) -> (Vec<Sample>, Vec<(String, String)>) {
    let mut reader = Reader {
        name,
        samples: Vec::new(),
        problems: Vec::new(),
        context: Vec::new(),
        label: String::new(),
        section: String::new(),
        labels: Vec::new(),
        allocators: Vec::new(),
    };
    let lines: Vec<&str> = text.lines().collect();
    let mut index = 0;
    while let Some(line) = lines.get(index) {
        if let Some(tool) = begins(line) {
            let end = end_of(tool, &lines, index);
            reader.block(tool, index, &lines[index..end]);
            index = end;
        } else {
            reader.context.push(line);
            index += 1;
        }
    }
    let (mut samples, problems) = (reader.samples, reader.problems);
    shorten_labels(&mut samples);
    (samples, problems)
}

struct Reader<'a> {
    name: &'a str,
    samples: Vec<Sample>,
    problems: Vec<(String, String)>,
    /// Lines since the last block.
    context: Vec<&'a str>,
    label: String,
    section: String,
    /// Those of the section so far.
    labels: Vec<String>,
    allocators: Vec<String>,
}

impl<'a> Reader<'a> {
    /// What the lines before this block name, and what held for the block before. Before the first block it is only the last lines: tables
    /// of contents and lists of software name everything.
    fn name_allocators(&mut self) {
        let lines = self.context.len();
        let from = if self.samples.is_empty() {
            lines.saturating_sub(NEAR_LINES)
        } else {
            0
        };
        let near = self.context[from..].join("\n").to_ascii_lowercase();
        for allocator in ALLOCATORS {
            let known = self.allocators.iter().any(|known| known == allocator);
            if near.contains(allocator) && !known {
                self.allocators.push(String::from(allocator));
            }
        }
    }

    fn block(&mut self, tool: Tool, index: usize, lines: &[&str]) {
        self.name_allocators();
        let asked = self.take_context();
        let place = format!("{}:{}", self.name, index + 1);
        let mut text = lines.join("\n");
        text.push('\n');
        match output::parse(tool, &text) {
            Ok(printed) => {
                let url = printed.url.clone();
                self.samples.push(Sample {
                    label: self.label.clone(),
                    scope: url.as_deref().map_or(String::new(), path),
                    section: self.section.clone(),
                    place,
                    figures: printed.figures,
                    url,
                    asked,
                    interrupted: printed.interrupted || text.contains("^C"),
                    allocators: self.allocators.clone(),
                });
            }
            Err(error) => self.problems.push((place, error.to_string())),
        }
    }

    /// Reads label, section and command from the lines before a block; what is missing carries over from the block
    /// before.
    fn take_context(&mut self) -> Option<ClientCommand> {
        let context: Vec<&str> = self.context.drain(..).collect();
        let command = context
            .iter()
            .rposition(|line| ClientCommand::parse(line).is_some());
        let asked = command.and_then(|at| ClientCommand::parse(context[at]));
        let before = &context[..command.unwrap_or(context.len())];
        let mut headings = before
            .iter()
            .rev()
            .map(|line| words_of(line))
            .filter(|line| line.chars().any(char::is_alphabetic));
        let is_heading = |line: &&str| is_short(line) && !line.ends_with('.');
        let label = headings.by_ref().take(LABEL_LINES).find(is_heading);
        let section = headings.find(is_heading);
        if let Some(label) = label {
            let section = section.map(String::from);
            self.enter(label, section);
        }
        asked
    }

    /// A label that comes again, and is not the last one, begins a section; if that has no heading, the last label was one.
    fn enter(&mut self, label: &str, section: Option<String>) {
        let again = label != self.label && self.labels.iter().any(|known| known == label);
        let section = section.or_else(|| again.then(|| self.label.clone()));
        if let Some(section) = section
            && section != self.section
        {
            self.section = section;
            self.labels.clear();
        }
        label.clone_into(&mut self.label);
        self.labels.push(String::from(label));
    }
}

/// A heading or a line that introduces a block, not a sentence of the text or an option of some file.
fn is_short(line: &str) -> bool {
    line.chars().count() <= HEADING_CHARACTERS && !line.contains(['=', '{', '/'])
}

/// Without the marks of Markdown and a colon at the end.
fn words_of(line: &str) -> &str {
    line.trim_matches(|mark: char| mark.is_whitespace() || matches!(mark, '#' | '*' | '`' | ':'))
}

fn begins(line: &str) -> Option<Tool> {
    if line.contains("Running ") && line.contains(" test @ ") {
        return Some(Tool::Wrk);
    }
    let line = line.trim_start();
    let is_ab = line.starts_with("This is ApacheBench") || line.starts_with("Server Software:");
    is_ab.then_some(Tool::Ab)
}

/// The line after a block: its own last line, or where another begins.
fn end_of(tool: Tool, lines: &[&str], start: usize) -> usize {
    let last = if tool == Tool::Ab {
        "(longest request)"
    } else {
        "Transfer/sec:"
    };
    for (index, line) in lines.iter().enumerate().skip(start) {
        if line.contains(last) {
            return index + 1;
        }
        let inside = index == start || line.trim_start().starts_with("Server Software:");
        if !inside && begins(line).is_some() {
            return index;
        }
    }
    lines.len()
}

/// `/` of `http://host:port/`.
fn path(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/')
        .map_or_else(|| String::from("/"), |at| String::from(&rest[at..]))
}

/// "The results for Nginx are" is "Nginx", if there is such a label: the shortest one whose words another has is meant.
fn shorten_labels(samples: &mut [Sample]) {
    let words = |label: &str| -> Vec<String> {
        label
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let mut labels: Vec<String> = samples.iter().map(|sample| sample.label.clone()).collect();
    labels.sort_by_key(|label| words(label).len());
    labels.dedup();
    for sample in samples {
        let own = words(&sample.label);
        let shorter = labels.iter().find(|label| {
            let parts = words(label);
            !parts.is_empty() && own.windows(parts.len()).any(|part| part == parts)
        });
        if let Some(shorter) = shorter {
            shorter.clone_into(&mut sample.label);
        }
    }
}

/// The most lines between a label and its command: a sentence or two may come between.
const LABEL_LINES: usize = 4;

/// The most lines before the first block that describe it.
const NEAR_LINES: usize = 60;

/// Characters of a line that can be a heading.
const HEADING_CHARACTERS: usize = 60;

/// Allocators that replace libc's, by the name that their libraries have.
pub(super) const ALLOCATORS: [&str; 3] = ["jemalloc", "tcmalloc", "mimalloc"];

#[cfg(test)]
mod tests;
