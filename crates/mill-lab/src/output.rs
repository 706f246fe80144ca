//! What tools print, as figures.
//!
//! Names of figures are those of `metric`. A text that is cut off is an error that names the line that was looked for; nothing here
//! panics, whatever the text is.

mod ab;
mod curve;
mod figures;
mod h2load;
mod native;
pub(crate) mod quantity;
mod spectrum;
mod together;
mod wrk;

pub use wrk::SCRIPT as WRK_SCRIPT;

use crate::recipe::Tool;
use crate::record::Figures;
use mill_metrics::Histogram;
use std::collections::BTreeMap;

/// What was read of one client process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Printed {
    pub figures: Figures,
    /// (percent, seconds), ascending.
    pub percentiles: Vec<(f64, f64)>,
    /// The tool's own description of its run: wrk's "@ http://…", ab's "Document Path".
    pub url: Option<String>,
    /// It was ended early, or says so (ab's "apr_socket_recv", wrk's time far below the one asked for).
    pub interrupted: bool,
    /// Lines that are no figures but matter.
    pub notes: Vec<String>,
    /// By family (`latency_s`, `connect_s`), if the tool gave them: they add up, percentiles don't.
    pub histograms: BTreeMap<String, Histogram>,
}

/// Why there are no figures; the text has what was expected and what was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{tool}'s output: {problem}")]
pub struct OutputError {
    pub tool: &'static str,
    pub problem: String,
}

/// Reads what `tool` printed on standard output.
pub fn parse(tool: Tool, text: &str) -> Result<Printed, OutputError> {
    let name = tool.name();
    match tool {
        Tool::Wrk | Tool::MillstreamWrk | Tool::DpdkHttperf | Tool::Wrk2 | Tool::MillstreamWrk2 => {
            wrk::parse(name, text)
        }
        Tool::Ab | Tool::MillstreamAb => ab::parse(name, text),
        Tool::H2load => h2load::parse(name, text),
        Tool::MillstreamLoad => native::parse(name, text),
        Tool::None => Ok(Printed::default()),
    }
}

/// Several processes that ran side by side as one: rates and counts are added, percentiles are the
/// worst of any process (they can't be added; `spread_share` says how far processes lie apart) unless all brought histograms.
pub fn together(parts: &[Printed]) -> Printed {
    together::together(parts)
}

/// Names the expected line, and where the text ends instead.
fn missing(tool: &'static str, line: &str, text: &str) -> OutputError {
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    let problem = match last {
        None => String::from(
            "it printed nothing; its standard error says why, or run the command by hand",
        ),
        Some(last) => {
            let last: String = last.trim().chars().take(LAST_LINE_CHARACTERS).collect();
            format!("no line \"{line}\" that can be read; the last line is \"{last}\"")
        }
    };
    OutputError { tool, problem }
}

/// Characters of a line that an error quotes.
const LAST_LINE_CHARACTERS: usize = 120;

#[cfg(test)]
mod tests;
