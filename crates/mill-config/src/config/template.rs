//! Text with variables: nginx's complex value.

use super::Variable;
use crate::Text;

/// Text and variables, compiled once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    /// In order; two literals never follow each other, no literal is empty.
    parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// These bytes.
    Literal(Text),
    /// The value of a variable.
    Variable(Variable),
    /// `$1` to `$9`: a capture of the regular expression matched last; nothing if absent.
    Capture(u8),
}

impl Template {
    /// Text without variables.
    pub fn literal(text: impl Into<Text>) -> Self {
        let text = text.into();
        if text.is_empty() {
            Self::default()
        } else {
            Self {
                parts: vec![Part::Literal(text)],
            }
        }
    }

    /// From parts, joining neighbouring literals.
    pub fn from_parts(parts: impl IntoIterator<Item = Part>) -> Self {
        let mut joined: Vec<Part> = Vec::new();
        for part in parts {
            match (joined.last_mut(), part) {
                (Some(Part::Literal(before)), Part::Literal(text)) => {
                    *before = Text::from([before.as_bytes(), &*text].concat());
                }
                (_, Part::Literal(text)) if text.is_empty() => {}
                (_, part) => joined.push(part),
            }
        }
        Self { parts: joined }
    }

    /// The parts, in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The whole text if it has no variables (the empty text included).
    pub fn as_literal(&self) -> Option<&[u8]> {
        match self.parts.as_slice() {
            [] => Some(&[]),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// True if it always evaluates to nothing.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}
