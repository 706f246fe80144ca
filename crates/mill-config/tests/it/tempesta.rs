//! Tempesta FW's language: what it resolves into, and what is refused.

/// Access logs: the kernel's, and rows of a table.
mod access_log;

/// Errors with their lines and carets.
mod errors;

/// Files that are included, the worker's texts, and the choice of the language.
mod files;

/// What has no meaning.
mod remarks;

/// The configuration that comes of it.
mod resolved;

/// Chains of rules and locations.
mod rules;

/// Statements of nginx's language, construct by construct.
mod statements;

use mill_config::{Diagnostic, Failure, Loaded, Memory, Options, load, tempesta};

const PATH: &str = "/etc/tempesta/tempesta_fw.conf";

fn options() -> Options {
    let mut options = Options::default();
    options.paths.conf = PATH.as_bytes().to_vec();
    options.is_tempesta = true;
    options
}

/// The result of a text.
fn resolved(text: &str) -> Result<Loaded, Box<Failure>> {
    load(&Memory::new().with(PATH, text), &options())
}

/// All messages about a text, the error last.
fn said(text: &str) -> Vec<Diagnostic> {
    match resolved(text) {
        Ok(loaded) => loaded.remarks,
        Err(failure) => {
            let mut said = failure.remarks;
            said.push(failure.error);
            said
        }
    }
}

/// A text in nginx's language.
fn translated(text: &str) -> String {
    match tempesta::nginx_text(&Memory::new().with(PATH, text), &options()) {
        Ok(text) => text,
        Err(failure) => panic!("{}\n{text}", failure.error.render("millstream")),
    }
}
