//! The network stack of our own, as far as configurations know it: a text, and where it stands.

use crate::Text;
use crate::diagnostic::Spot;

/// `network_stack DEVICE [OPTION=VALUE]…`. Whoever makes the stack understands it, and says what is wrong with it.
#[derive(Debug, Clone)]
pub struct NetworkStack {
    /// Device and options with commas between them, as on the command line.
    pub text: Text,
    /// Where it stands.
    pub spot: Spot,
}

/// Two are the same that say the same, wherever they stand.
impl PartialEq for NetworkStack {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NetworkStack {}
