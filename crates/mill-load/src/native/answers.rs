//! Whether all answers were the same: how many different pairs of status and content length occurred.

/// The different answers of a thread, or of all threads, and their counts.
///
/// A run that measures one request expects one answer; a second one is often an error page, an empty file or another
/// server, and makes the figures worthless. Bounded: beyond [`KINDS_MAX`] kinds the rest is one number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    kinds: [Answer; KINDS_MAX],
    others: u64,
}

/// One kind of answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub content_bytes: u64,
    /// Its count; zero is an unused entry.
    pub count: u64,
}

/// Kinds that are counted separately: enough to recognise a problem, few enough to search for each answer.
pub const KINDS_MAX: usize = 16;

impl Answers {
    pub(crate) fn on_answer(&mut self, status: u16, content_bytes: u64) {
        self.count(Answer {
            status,
            content_bytes,
            count: 1,
        });
    }

    /// Adds `answer.count` of its kind. The first kind is found at once; no allocation.
    pub fn count(&mut self, answer: Answer) {
        if answer.count == 0 {
            return;
        }
        let place = self.kinds.iter_mut().find(|kind| {
            kind.count == 0
                || (kind.status == answer.status && kind.content_bytes == answer.content_bytes)
        });
        match place {
            Some(kind) => {
                kind.count += answer.count;
                (kind.status, kind.content_bytes) = (answer.status, answer.content_bytes);
            }
            None => self.others += answer.count,
        }
    }

    /// The kinds, in the order in which they first came.
    pub fn kinds(&self) -> impl Iterator<Item = Answer> + '_ {
        self.kinds.iter().copied().filter(|kind| kind.count > 0)
    }

    /// Answers of kinds beyond [`KINDS_MAX`].
    pub const fn others(&self) -> u64 {
        self.others
    }

    /// Counts what `other` counted.
    pub fn add(&mut self, other: &Self) {
        for kind in other.kinds() {
            self.count(kind);
        }
        self.others += other.others;
    }

    /// Adds answers of unknown kinds.
    pub fn count_others(&mut self, count: u64) {
        self.others += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(answers: &[(u16, u64)]) -> Answers {
        let mut all = Answers::default();
        for (status, content_bytes) in answers {
            all.on_answer(*status, *content_bytes);
        }
        all
    }

    #[test]
    fn kinds_differ_by_status_and_length() {
        let check = |answers: &[(u16, u64)], expected: &[(u16, u64, u64)]| {
            let kinds: Vec<(u16, u64, u64)> = of(answers)
                .kinds()
                .map(|kind| (kind.status, kind.content_bytes, kind.count))
                .collect();
            assert_eq!(kinds, expected);
        };
        check(&[], &[]);
        check(&[(200, 5), (200, 5)], &[(200, 5, 2)]);
        check(
            &[(200, 5), (404, 5), (200, 6), (200, 5)],
            &[(200, 5, 2), (404, 5, 1), (200, 6, 1)],
        );
    }

    #[test]
    fn more_kinds_than_places_are_counted_together() {
        let many: Vec<(u16, u64)> = (0..20).map(|bytes| (200, bytes)).collect();
        let all = of(&many);
        assert_eq!((all.kinds().count(), all.others()), (KINDS_MAX, 4));
    }

    #[test]
    fn the_answers_of_threads_add_up() {
        let mut sum = of(&[(200, 5), (404, 9)]);
        sum.add(&of(&[(404, 9), (200, 5), (200, 5)]));
        assert_eq!(sum, of(&[(200, 5), (404, 9), (404, 9), (200, 5), (200, 5)]));
    }
}
