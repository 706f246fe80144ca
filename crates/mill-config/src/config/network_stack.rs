//! The network stack of our own, as far as configurations know it: a text, and where it stands.

use super::LogLevel;
use crate::Text;
use crate::diagnostic::{Diagnostic, Place, Snippet};

/// `network_stack DEVICE [OPTION=VALUE]…`. Whoever makes the stack understands it, and says what is wrong with it.
#[derive(Debug, Clone)]
pub struct NetworkStack {
    /// Device and options with commas between them, as on the command line.
    pub text: Text,
    pub(crate) place: Place,
    pub(crate) snippet: Snippet,
}

impl NetworkStack {
    /// Where it stands: `FILE:LINE`.
    pub fn place(&self) -> String {
        match &self.place {
            Place::None => String::new(),
            Place::CommandLine => String::from("the command line"),
            Place::File { path, line } => format!("{}:{line}", path.display()),
        }
    }

    /// A message about it.
    pub fn diagnostic(&self, level: LogLevel, message: impl Into<String>) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(level, message, self.place.clone());
        diagnostic.snippet = Some(self.snippet.clone());
        diagnostic
    }
}

/// Two are the same that say the same, wherever they stand.
impl PartialEq for NetworkStack {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NetworkStack {}
