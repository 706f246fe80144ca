//! What tools print, as figures.

use crate::recipe::Tool;
use crate::record::Figures;

/// What was read of one client process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Printed {
    pub figures: Figures,
    /// (percent, seconds), ascending.
    pub percentiles: Vec<(f64, f64)>,
    /// What the tool itself says it did: wrk's "@ http://…", ab's "Document Path".
    pub url: Option<String>,
    /// It was ended early, or says so (ab's "apr_socket_recv", wrk's time far below the one asked for).
    pub interrupted: bool,
    /// Lines that are no figures but matter.
    pub notes: Vec<String>,
}

/// Why no figures came out; the text says what was looked for and what was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{tool}'s output: {problem}")]
pub struct OutputError {
    pub tool: &'static str,
    pub problem: String,
}

/// Reads what `tool` printed on standard output.
pub fn parse(tool: Tool, text: &str) -> Result<Printed, OutputError> {
    let _ = text;
    Err(OutputError {
        tool: tool.name(),
        problem: String::from("not read yet"),
    })
}

/// Several processes that ran side by side as one: rates and counts are added, percentiles are the
/// worst of any process (they can't be added; `spread_share` says how far processes lie apart) unless all brought histograms.
pub fn together(parts: &[Printed]) -> Printed {
    parts.first().cloned().unwrap_or_default()
}
