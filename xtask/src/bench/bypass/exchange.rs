//! The frames in place of a request and its response.

/// One frame to the answering end and some back, with some exchanges in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Exchange {
    pub(super) mtu: u16,
    /// Exchanges in flight.
    pub(super) window: usize,
    pub(super) request_bytes: usize,
    /// Frames back for one frame sent.
    pub(super) frames: usize,
    pub(super) answer_bytes: usize,
    /// How many responses one exchange replaces.
    pub(super) answers: f64,
}

/// Bytes before TCP's payload in a frame, with timestamps: Ethernet, IPv4, TCP.
const HEADERS: usize = 14 + 20 + 32;

/// A request of the load generator, and the head of a response.
const REQUEST_BYTES: usize = 52;
const HEAD_BYTES: usize = 240;

/// Frames that may be in flight towards one end: the places in veth's queue. One more would be lost.
const FRAMES_MAX: usize = 256;

/// One acknowledgement for this many segments: a receiver that takes them in bursts sends no fewer.
const FRAMES_PER_REQUEST_MAX: usize = 32;

impl Exchange {
    /// For an MTU, a number of connections, and responses with this many bytes of content.
    pub(super) fn parse(words: [&str; 3]) -> Option<Self> {
        let [mtu, connections, bytes] = words.map(|word| word.parse::<usize>().ok());
        let (mtu, connections, bytes) = (mtu?, connections?.max(1), bytes?);
        // Segments of full length in a response.
        let payload = (14 + mtu).checked_sub(HEADERS).filter(|bytes| *bytes > 0)?;
        let whole = (HEAD_BYTES + bytes).div_ceil(payload);
        let frames = whole.min(FRAMES_PER_REQUEST_MAX);
        Some(Self {
            mtu: u16::try_from(mtu).ok()?,
            window: connections.min(FRAMES_MAX / frames),
            request_bytes: HEADERS + REQUEST_BYTES,
            frames,
            answer_bytes: (14 + mtu).min(HEADERS + HEAD_BYTES + bytes),
            answers: frames as f64 / whole as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Exchange;

    fn check(words: [&str; 3], expected: (usize, usize, usize, f64)) {
        let exchange = Exchange::parse(words).unwrap();
        let found = (exchange.window, exchange.frames, exchange.answer_bytes);
        assert_eq!(found, (expected.0, expected.1, expected.2), "{words:?}");
        assert!((exchange.answers - expected.3).abs() < 1e-9, "{exchange:?}");
    }

    #[test]
    fn a_case_has_frames_of_its_answers_lengths() {
        check(["1500", "1", "0"], (1, 1, 306, 1.0));
        check(["1500", "1024", "1000"], (256, 1, 1306, 1.0));
        check(["1500", "64", "10000"], (32, 8, 1514, 1.0));
        check(["1500", "16", "1000000"], (8, 32, 1514, 32.0 / 691.0));
        check(["9000", "16", "1000000"], (8, 32, 9014, 32.0 / 112.0));
        assert_eq!(Exchange::parse(["20", "1", "0"]), None);
    }
}
