//! Errors of the authority (RFC 9457; RFC 8555 6.7).

use crate::identifier::Identifier;
use serde::Deserialize;
use std::fmt;

/// What went wrong, in the authority's words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Problem {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    subproblems: Vec<Subproblem>,
}

/// One of several.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Subproblem {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    detail: String,
    identifier: Option<Identifier>,
}

impl Problem {
    /// The kind without the namespace of ACME.
    pub fn kind(&self) -> &str {
        without_namespace(&self.kind)
    }

    /// A text of the authority as it may stand in a log line.
    pub(crate) fn cut(text: &str) -> String {
        Cut(text).to_string()
    }

    /// Whether the same would be answered for as long as the configuration is the same.
    pub(crate) fn is_of_configuration(&self) -> bool {
        matches!(
            self.kind(),
            "externalAccountRequired"
                | "invalidContact"
                | "invalidProfile"
                | "unsupportedContact"
                | "unsupportedIdentifier"
                | "rejectedIdentifier"
                | "badSignatureAlgorithm"
                | "badPublicKey"
                | "userActionRequired"
        )
    }
}

fn without_namespace(kind: &str) -> &str {
    kind.strip_prefix("urn:ietf:params:acme:error:")
        .unwrap_or(kind)
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.kind(), Cut(&self.detail))?;
        for part in self.subproblems.iter().take(SUBPROBLEMS_MAX) {
            let identifier = part.identifier.as_ref().map(|one| one.value.as_str());
            let (identifier, kind) = (identifier.unwrap_or("-"), without_namespace(&part.kind));
            write!(
                formatter,
                "; {}: {kind}: {}",
                Cut(identifier),
                Cut(&part.detail)
            )?;
        }
        Ok(())
    }
}

/// A text of a peer, as much of it as a log line takes, without control characters.
struct Cut<'a>(&'a str);

impl fmt::Display for Cut<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars().take(DETAIL_LETTERS_MAX) {
            let letter = if letter.is_control() { ' ' } else { letter };
            write!(formatter, "{letter}")?;
        }
        Ok(())
    }
}

const DETAIL_LETTERS_MAX: usize = 512;
const SUBPROBLEMS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::Problem;

    #[test]
    fn a_problem_is_told_in_one_line_with_its_parts() {
        let text = r#"{"type":"urn:ietf:params:acme:error:compound","detail":"two\nof them",
            "subproblems":[{"type":"urn:ietf:params:acme:error:caa","detail":"no",
                "identifier":{"type":"dns","value":"a.example"}},
                {"type":"urn:ietf:params:acme:error:dns","detail":"none"}]}"#;
        let problem: Problem = serde_json::from_str(text).unwrap();
        let line = "compound: two of them; a.example: caa: no; -: dns: none";
        assert_eq!(problem.to_string(), line);
        assert!(!problem.is_of_configuration());
    }
}
