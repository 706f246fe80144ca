//! Recent requests, byte for byte: a client repeats a request with the same bytes, and comparing them costs a tenth of
//! parsing them.

/// Requests and their answers, one entry for each hash value. A new request replaces the one at its index.
#[derive(Debug)]
pub(super) struct RecentRequests<A> {
    /// Empty before the first request.
    places: Vec<Option<RecentRequest<A>>>,
}

#[derive(Debug)]
struct RecentRequest<A> {
    source: Source,
    bytes: Vec<u8>,
    answer: A,
    keep: bool,
}

/// Where the bytes of a request come from: a text that was made of HTTP/2's fields is no request of HTTP/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) listener: u32,
    pub(super) is_of_fields: bool,
}

impl<A> RecentRequests<A> {
    /// The answer to a request that consists of `bytes`, and whether its connection stays open. Costs a look at each
    /// byte, unless the request is long or none is stored.
    pub(super) fn find(&self, source: Source, bytes: &[u8]) -> Option<(&A, bool)> {
        if bytes.len() > REQUEST_BYTES_MAX || self.places.is_empty() {
            return None;
        }
        let recent = self.places.get(place_of(bytes))?.as_ref()?;
        (recent.source == source && recent.bytes == bytes).then_some((&recent.answer, recent.keep))
    }

    /// Stores a request and its answer, unless the request is long.
    pub(super) fn note(&mut self, source: Source, bytes: &[u8], answer: A, keep: bool) {
        if bytes.len() > REQUEST_BYTES_MAX {
            return;
        }
        if self.places.is_empty() {
            self.places.resize_with(PLACES, || None);
        }
        let Some(place) = self.places.get_mut(place_of(bytes)) else {
            return;
        };
        let mut memory = place.take().map(|former| former.bytes).unwrap_or_default();
        memory.clear();
        memory.extend_from_slice(bytes);
        *place = Some(RecentRequest {
            source,
            bytes: memory,
            answer,
            keep,
        });
    }

    /// Removes all: answers have changed.
    pub(super) fn clear(&mut self) {
        self.places.clear();
    }
}

impl<A> Default for RecentRequests<A> {
    fn default() -> Self {
        Self { places: Vec::new() }
    }
}

/// The index of a request: its words are mixed one after the other (the step is FxHash's). A client that sends
/// colliding requests makes them as slow as unknown ones, not slower.
fn place_of(bytes: &[u8]) -> usize {
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(HASH_FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(bytes.len() as u64, |hash, word| {
        mix(hash, u64::from_le_bytes(*word))
    });
    let hash = rest
        .iter()
        .fold(hash, |hash, byte| mix(hash, u64::from(*byte)));
    usize::from((hash >> 48) as u16) % PLACES
}

/// Odd, with well distributed bits: 2^64 divided by pi.
const HASH_FACTOR: u64 = 0x517c_c1b7_2722_0a95;

/// Number of stored requests. With the longest ones they take 256 KiB.
const PLACES: usize = 256;

/// Bytes of a request: a browser's has about this length.
const REQUEST_BYTES_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const OF_ONE: Source = Source {
        listener: 1,
        is_of_fields: false,
    };

    #[test]
    fn only_the_same_bytes_at_the_same_listener_are_found() {
        let mut recent = RecentRequests::default();
        recent.note(OF_ONE, b"GET /a HTTP/1.1", 'a', true);
        recent.note(OF_ONE, b"GET /b HTTP/1.1", 'b', false);
        let check = |listener, bytes: &[u8], expected| {
            let source = Source { listener, ..OF_ONE };
            let found = recent.find(source, bytes);
            assert_eq!(found.map(|(answer, keep)| (*answer, keep)), expected);
        };
        check(1, b"GET /a HTTP/1.1", Some(('a', true)));
        check(1, b"GET /b HTTP/1.1", Some(('b', false)));
        check(2, b"GET /a HTTP/1.1", None);
        check(1, b"GET /a HTTP/1.1 ", None);
        check(1, b"GET /a HTTP/1.", None);
        check(1, b"", None);
        let of_fields = Source {
            is_of_fields: true,
            ..OF_ONE
        };
        assert!(recent.find(of_fields, b"GET /a HTTP/1.1").is_none());
    }

    #[test]
    fn a_request_with_the_same_index_replaces_another_and_clear_removes_all() {
        let mut recent = RecentRequests::default();
        let requests: Vec<String> = (0..2000).map(|n| format!("GET /{n}")).collect();
        for request in &requests {
            recent.note(OF_ONE, request.as_bytes(), request.clone(), true);
        }
        let known = requests.iter().filter(|request| {
            let found = recent.find(OF_ONE, request.as_bytes());
            found.is_some_and(|(answer, _)| answer == *request)
        });
        let known = known.count();
        assert!((PLACES / 2..=PLACES).contains(&known), "{known}");
        recent.clear();
        assert!(
            requests
                .iter()
                .all(|request| recent.find(OF_ONE, request.as_bytes()).is_none())
        );
    }

    #[test]
    fn a_long_request_is_not_kept() {
        let mut recent = RecentRequests::default();
        for (len, is_kept) in [(REQUEST_BYTES_MAX, true), (REQUEST_BYTES_MAX + 1, false)] {
            let bytes = vec![b'x'; len];
            recent.note(OF_ONE, &bytes, (), true);
            assert_eq!(recent.find(OF_ONE, &bytes).is_some(), is_kept, "{len}");
        }
    }
}
