//! A model of reassembly that keeps a byte for each byte, and pieces drawn at random for both.

use super::*;

/// What arrived of one datagram, byte by byte.
#[derive(Default)]
struct Model {
    bytes: BTreeMap<usize, (u8, usize)>,
    end: Option<usize>,
    is_given_up: bool,
}

impl Model {
    /// `number` tells the pieces apart: a duplicate is one that covers exactly what another did.
    fn push(
        &mut self,
        range: (usize, usize),
        is_last: bool,
        payload: &[u8],
        number: usize,
    ) -> Option<Vec<u8>> {
        let (start, end) = range;
        let covered: Vec<Option<(u8, usize)>> = (start..end)
            .map(|at| self.bytes.get(&at).copied())
            .collect();
        let numbers: Vec<usize> = covered
            .iter()
            .flatten()
            .map(|(_, number)| *number)
            .collect();
        let is_duplicate = numbers.len() == end - start
            && numbers.iter().all(|number| *number == numbers[0])
            && self
                .bytes
                .values()
                .filter(|(_, of)| *of == numbers[0])
                .count()
                == end - start
            && covered
                .iter()
                .flatten()
                .map(|(byte, _)| *byte)
                .eq(payload[start..end].iter().copied());
        let beyond = self.bytes.keys().any(|at| is_last && *at >= end);
        let contradicts = match self.end {
            Some(known) => end > known || (is_last && end != known),
            None => beyond || (is_duplicate && is_last),
        };
        if self.is_given_up || contradicts || (!numbers.is_empty() && !is_duplicate) {
            self.is_given_up = true;
            return None;
        }
        let number = numbers.first().copied().unwrap_or(number);
        for (at, byte) in (start..end).zip(&payload[start..end]) {
            self.bytes.insert(at, (*byte, number));
        }
        if is_last {
            self.end = Some(end);
        }
        let known = self.end?;
        let whole = self.bytes.len() == known;
        whole.then(|| self.bytes.values().map(|(byte, _)| *byte).collect())
    }
}

#[test]
fn random_pieces_do_what_the_model_does() {
    let mut completed = 0;
    for seed in 1..=400 {
        let mut random = Random::new(seed * 77);
        let mut below = |bound: usize| usize::try_from(random.below(bound as u64)).unwrap();
        let is_ipv6 = below(2) == 0;
        let payload = bytes(32 + below(64));
        let mut model = Model::default();
        let mut reassembler = Reassembler::new(1 << 20);
        // Mostly pieces of a common size, so that they fit; now and then any.
        let step = 8 * (1 + below(3));
        for number in 0..30 {
            let any = below(60) == 0;
            let units = payload.len() / 8;
            let start = if any {
                8 * below(units)
            } else {
                step * below(payload.len().div_ceil(step))
            };
            let end = if any {
                start + 8 * (1 + below(4))
            } else {
                start + step
            };
            let end = end.min(payload.len());
            let is_last = end == payload.len();
            let packet = packet(source(is_ipv6, 9), 5, 200, (start, end), &payload);
            let found = whole(push(&mut reassembler, &packet, at(0)));
            let expected = model.push((start, end), is_last, &payload, number);
            assert_eq!(found, expected, "seed {seed}, piece {number}");
            if let Some(found) = found {
                assert_eq!(found, payload, "seed {seed}");
                completed += 1;
                break;
            }
        }
    }
    assert!(completed > 50, "{completed}");
}
