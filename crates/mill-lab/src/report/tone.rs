//! A sign and a word for each tone, so that no information is in colour alone.

use crate::findings::Tone;

impl Tone {
    /// One character.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Gain => "▲",
            Self::Loss => "▼",
            Self::Same => "=",
            Self::Unsure => "?",
            Self::Plain => "•",
        }
    }

    /// What the sign means; nothing for plain sentences.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Gain => "better",
            Self::Loss => "worse",
            Self::Same => "no difference",
            Self::Unsure => "inconclusive",
            Self::Plain => "",
        }
    }

    /// Its class in the style sheets of pages and pictures.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Gain => "gain",
            Self::Loss => "loss",
            Self::Same => "same",
            Self::Unsure => "unsure",
            Self::Plain => "plain",
        }
    }
}
