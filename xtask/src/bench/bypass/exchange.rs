//! What raw frames stand for a request and its answer.

use super::cell::Cell;

/// One frame there and some back, some of them in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    pub(super) mtu: u16,
    /// Exchanges in flight.
    pub(super) window: usize,
    pub(super) request_bytes: usize,
    /// Frames back for one there.
    pub(super) frames: usize,
    pub(super) answer_bytes: usize,
}

/// Bytes before TCP's payload in a frame, with timestamps: Ethernet, IPv4, TCP.
const HEADERS: usize = 14 + 20 + 32;

/// A request of the load generator.
const REQUEST_BYTES: usize = 52;

/// Frames that may be in flight towards one end: the places in veth's queue. One more is lost.
const FRAMES_MAX: usize = 256;

/// One acknowledgement for so many segments is as few as a receiver sends that takes them in bursts.
const FRAMES_PER_REQUEST_MAX: usize = 32;

impl Exchange {
    /// For a cell whose answers have a head of so many bytes.
    pub(super) fn of(cell: &Cell, head_bytes: usize) -> Self {
        let frames = frames_per_answer(cell, head_bytes).min(FRAMES_PER_REQUEST_MAX);
        let connections = usize::try_from(cell.concurrency).unwrap_or(usize::MAX);
        let len_max = 14 + usize::from(cell.mtu);
        Self {
            mtu: cell.mtu,
            window: connections.min(FRAMES_MAX / frames),
            request_bytes: HEADERS + REQUEST_BYTES,
            frames,
            answer_bytes: len_max.min(HEADERS + head_bytes + cell.body_bytes),
        }
    }

    /// For the command line of the processes that exchange.
    pub(super) fn emit(self) -> String {
        let Self {
            mtu,
            window,
            request_bytes,
            frames,
            answer_bytes,
        } = self;
        format!("{mtu},{window},{request_bytes},{frames},{answer_bytes}")
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<usize> = text
            .split(',')
            .map(|number| number.parse().ok())
            .collect::<Option<_>>()?;
        let &[mtu, window, request_bytes, frames, answer_bytes] = numbers.as_slice() else {
            return None;
        };
        let len_max = 14 + mtu;
        let is_possible = |bytes| (14..=len_max).contains(&bytes);
        (window > 0 && frames > 0 && is_possible(request_bytes) && is_possible(answer_bytes))
            .then_some(Self {
                mtu: u16::try_from(mtu).ok()?,
                window,
                request_bytes,
                frames,
                answer_bytes,
            })
    }

    /// How many answers of the cell one exchange is.
    pub(super) fn answers(self, cell: &Cell, head_bytes: usize) -> f64 {
        self.frames as f64 / frames_per_answer(cell, head_bytes) as f64
    }
}

/// Segments of full length that an answer takes.
fn frames_per_answer(cell: &Cell, head_bytes: usize) -> usize {
    let payload = usize::from(cell.mtu) + 14 - HEADERS;
    (head_bytes + cell.body_bytes).div_ceil(payload).max(1)
}

#[cfg(test)]
mod tests {
    use super::Exchange;
    use crate::bench::bypass::cell::full;

    /// Window, frames and their bytes, and answers in an exchange.
    fn check(name: &str, expected: (usize, usize, usize, f64)) {
        let cell = full().into_iter().find(|cell| cell.name == name).unwrap();
        let exchange = Exchange::of(&cell, 240);
        let answers = exchange.answers(&cell, 240);
        let found = (exchange.window, exchange.frames, exchange.answer_bytes);
        assert_eq!(found, (expected.0, expected.1, expected.2), "{name}");
        assert!((answers - expected.3).abs() < 1e-9, "{name}: {answers}");
        assert_eq!(Exchange::parse(&exchange.emit()), Some(exchange));
    }

    #[test]
    fn a_cell_has_frames_of_its_answers_lengths() {
        check("ka-0B-1", (1, 1, 306, 1.0));
        check("ka-0B-64", (64, 1, 306, 1.0));
        check("ka-1k-1024", (256, 1, 1306, 1.0));
        check("ka-10k-64", (32, 8, 1514, 1.0));
        check("ka-1M-16", (8, 32, 1514, 32.0 / 691.0));
        check("ka-1M-16-jumbo", (8, 32, 9014, 32.0 / 112.0));
    }

    #[test]
    fn frames_that_fit_nowhere_are_refused() {
        for text in [
            "",
            "1500,0,60,1,60",
            "1500,1,60,1,1515",
            "1500,1,13,1,60",
            "1,2,3",
        ] {
            assert_eq!(Exchange::parse(text), None, "{text}");
        }
    }
}
