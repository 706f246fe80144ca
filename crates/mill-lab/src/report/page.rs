//! The HTML page: prepares the template's data, and limits the page to a size that mail accepts.

mod table;
mod view;

use super::escape;
use crate::findings::Findings;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Output, State, Value};
use view::View;

/// One page without anything outside of it.
pub(super) fn emit(findings: &Findings) -> String {
    let mut page = String::new();
    for allowance in ALLOWANCES {
        page = render(&View::of(findings, allowance));
        if page.len() < PAGE_BYTES_MAX {
            break;
        }
    }
    page
}

/// The size that is promised: what a mail or an issue takes as an attachment without asking.
const PAGE_BYTES_MAX: usize = 2_000_000;

/// How much of what can grow without end a page shows.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    /// Of one printed block, and of all together.
    block_bytes: usize,
    blocks_bytes: usize,
    /// Pictures of each kind; further ones are in the run's folder.
    pictures: usize,
    /// Of rows of a table of one picture's figures.
    figures: usize,
    tables: usize,
    /// Of lines of any list or table.
    rows: usize,
}

/// Tried from the first on until the page is small enough. The last holds for any findings: its sum is far below the limit.
const ALLOWANCES: [Allowance; 3] = [
    Allowance {
        block_bytes: 20_000,
        blocks_bytes: 400_000,
        pictures: 60,
        figures: 60,
        tables: 200,
        rows: 1000,
    },
    Allowance {
        block_bytes: 6_000,
        blocks_bytes: 100_000,
        pictures: 20,
        figures: 0,
        tables: 40,
        rows: 300,
    },
    Allowance {
        block_bytes: 2_000,
        blocks_bytes: 20_000,
        pictures: 3,
        figures: 0,
        tables: 10,
        rows: 60,
    },
];

const TEMPLATE: &str = include_str!("page.html");

fn render(view: &View) -> String {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
        .expect("the delimiters are minijinja's own");
    environment.set_syntax(syntax);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(escaped);
    environment
        .render_str(TEMPLATE, Serde(view))
        .expect("the template and what it is given belong to this program, and a test renders both")
}

/// minijinja's own escaping lets control characters through, and writes slashes as six characters.
fn escaped(
    out: &mut Output<'_>,
    _state: &mut State<'_, '_>,
    value: &Value,
) -> Result<(), minijinja::Error> {
    let written = if value.is_none() || value.is_undefined() {
        Ok(())
    } else if value.is_safe() {
        out.write_str(value.as_str().unwrap_or_default())
    } else {
        out.write_str(&escape::markup(&value.to_string()))
    };
    Ok(written?)
}
