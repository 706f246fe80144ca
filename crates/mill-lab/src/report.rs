//! Findings to pages: one HTML file that needs nothing else, Markdown with SVG files beside it, CSV.
//!
//! ```text
//! page        the HTML file: page.html (the template) and style.css
//! markdown    the same for a repository
//! csv         the same for a spreadsheet
//! words       sentences common to all formats
//! quiet       tables with each reason stated once
//! comparison  a comparison as a row and as a bar
//! legend      what the small print in cells means
//! tone        a sign for each tone
//! number      figures in readable form
//! escape      text that others wrote, made harmless
//! chart       pictures
//! ```
//!
//! The same findings give the same bytes: no part of this reads a clock.

mod chart;
mod comparison;
mod csv;
mod escape;
#[cfg(test)]
mod example;
mod legend;
mod markdown;
mod number;
mod page;
mod quiet;
#[cfg(test)]
mod tests;
mod tone;
mod words;

pub(crate) use escape::csv as csv_field;
pub(crate) use words::counted;

use crate::findings::Findings;

/// One self-contained page, below 2 MB.
pub fn html(findings: &Findings) -> String {
    page::emit(findings)
}

/// The same for a repository: text, and (file name, SVG) to lie beside it.
pub fn markdown(findings: &Findings) -> (String, Vec<(String, String)>) {
    markdown::emit(findings)
}

/// Every table, one after the other: (file name, text).
pub fn csv(findings: &Findings) -> Vec<(String, String)> {
    csv::files(findings)
}
