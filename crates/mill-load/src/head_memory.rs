//! The last response head of a thread: a server repeats the same head for equal requests, for at least a second, and
//! comparing it costs a tenth of parsing it.

use mill_http::h1::response::ResponseHead;

/// A head and its parsed form, for the kind of request that it answered.
#[derive(Debug, Default)]
pub(crate) struct HeadMemory {
    bytes: Vec<u8>,
    meaning: Option<(ResponseHead, bool)>,
}

impl HeadMemory {
    /// The parsed form of the head that `bytes` begin with, if it equals the last one.
    pub(crate) fn recall(&self, bytes: &[u8], answers_head: bool) -> Option<ResponseHead> {
        let (head, answered_head) = self.meaning?;
        (answered_head == answers_head && bytes.starts_with(&self.bytes)).then_some(head)
    }

    /// Keeps the head that `bytes` begin with.
    pub(crate) fn keep(&mut self, bytes: &[u8], head: ResponseHead, answers_head: bool) {
        self.meaning = None;
        if let Some(bytes) = bytes
            .get(..head.len)
            .filter(|head| head.len() <= KEPT_MAX_BYTES)
        {
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            self.meaning = Some((head, answers_head));
        }
    }
}

/// Longer heads are parsed each time: copying them would cost more than it saves if they differ.
const KEPT_MAX_BYTES: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_http::h1::response::{RequestKind, parse_response_head};
    use mill_http::limits::ResponseRules;

    fn parse(text: &str, kind: RequestKind) -> ResponseHead {
        parse_response_head(text.as_bytes(), kind, &ResponseRules::lenient())
            .unwrap()
            .unwrap()
    }

    #[test]
    fn only_the_same_head_for_the_same_kind_of_request_is_recalled() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        let head = parse(text, RequestKind::Other);
        let mut memory = HeadMemory::default();
        assert_eq!(memory.recall(text.as_bytes(), false), None);
        memory.keep(text.as_bytes(), head, false);
        let with_content = format!("{text}hello");
        assert_eq!(memory.recall(with_content.as_bytes(), false), Some(head));
        assert_eq!(memory.recall(text.as_bytes(), true), None);
        let longer = with_content.replace(": 5", ": 50");
        assert_eq!(memory.recall(longer.as_bytes(), false), None);
        assert_eq!(memory.recall(&text.as_bytes()[..30], false), None);
    }

    #[test]
    fn a_head_that_is_too_long_to_keep_forgets_the_one_before() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        let mut memory = HeadMemory::default();
        memory.keep(text.as_bytes(), parse(text, RequestKind::Other), false);
        let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(3000));
        memory.keep(long.as_bytes(), parse(&long, RequestKind::Other), false);
        assert_eq!(memory.recall(text.as_bytes(), false), None);
    }
}
