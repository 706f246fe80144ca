//! The network stack of our own as a configuration has it: a text, and its place.

use crate::Text;
use crate::diagnostic::Spot;

/// `network_stack DEVICE [OPTION=VALUE]…`. The code that makes the stack parses it, and reports its errors.
#[derive(Debug, Clone)]
pub struct NetworkStack {
    /// Device and options with commas between them, as on the command line.
    pub text: Text,
    /// Where it is written.
    pub spot: Spot,
}

/// Equal texts are equal, wherever they are written.
impl PartialEq for NetworkStack {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NetworkStack {}
