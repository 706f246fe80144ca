//! Findings to pages: one HTML file that needs nothing else, Markdown with SVG files beside it, CSV.

use crate::findings::Findings;

/// One self-contained page, below 2 MB.
pub fn html(findings: &Findings) -> String {
    let _ = findings;
    String::new()
}

/// The same for a repository: text, and (file name, SVG) to lie beside it.
pub fn markdown(findings: &Findings) -> (String, Vec<(String, String)>) {
    let _ = findings;
    (String::new(), Vec::new())
}

/// Every table, one after the other: (file name, text).
pub fn csv(findings: &Findings) -> Vec<(String, String)> {
    let _ = findings;
    Vec::new()
}
