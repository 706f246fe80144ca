//! Validation of stored responses: what to ask, and which of them an answer concerns. RFC 9111 4.3.

use alloc::vec::Vec;

use crate::date::{imf_fixdate, parse_http_date};
use crate::etag::{is_weak, opaque_tag};
use crate::status::Status;

/// Seconds that `Date` must be later than `Last-Modified` for the latter to be a strong validator (RFC 9110 8.8.2.2:
/// clocks need not be the same).
pub const STRONG_DATE_SECONDS: i64 = 60;

/// What tells one state of a representation from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseValidators<'a> {
    /// The value of `ETag`, quotes included.
    pub etag: Option<&'a [u8]>,
    /// Unix seconds of `Last-Modified`.
    pub last_modified: Option<i64>,
    /// Unix seconds of `Date`, or of arrival.
    pub date: i64,
}

impl<'a> ResponseValidators<'a> {
    /// Those of a response's field lines, the first of each name; `date` is that of `Date`, or of arrival.
    pub fn of_fields(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>, date: i64) -> Self {
        let mut found = Self {
            etag: None,
            last_modified: None,
            date,
        };
        for (name, value) in fields {
            if name.eq_ignore_ascii_case(b"etag") && !value.is_empty() {
                found.etag.get_or_insert(value);
            } else if name.eq_ignore_ascii_case(b"last-modified") && found.last_modified.is_none() {
                found.last_modified = parse_http_date(value);
            }
        }
        found
    }
}

impl ResponseValidators<'_> {
    /// Equal ones mean the same bytes: there is a strong one.
    pub fn has_strong(&self) -> bool {
        self.is_same_strongly(self)
    }

    fn strong_etag(&self) -> Option<&[u8]> {
        self.etag
            .filter(|etag| is_entity_tag(etag) && !is_weak(etag))
    }

    fn strong_date(&self) -> Option<i64> {
        let is_old = |modified: &i64| self.date.saturating_sub(*modified) >= STRONG_DATE_SECONDS;
        self.last_modified.filter(is_old)
    }

    const fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }

    /// Both have the same strong validator (RFC 9110 8.8.3.2): the same bytes. A strong tag on either side decides alone.
    pub fn is_same_strongly(&self, other: &Self) -> bool {
        match (self.strong_etag(), other.strong_etag()) {
            (None, None) => {
                let has_weak = self.etag.is_some() || other.etag.is_some();
                !has_weak
                    && self.strong_date().is_some()
                    && self.strong_date() == other.strong_date()
            }
            (one, another) => one == another,
        }
    }

    /// None of the validators that both have differs, and both have one: equivalent content.
    pub fn is_same_weakly(&self, other: &Self) -> bool {
        let tags = self
            .etag
            .zip(other.etag)
            .map(|(one, another)| opaque_tag(one) == opaque_tag(another));
        let dates = self
            .last_modified
            .zip(other.last_modified)
            .map(|(one, another)| one == another);
        match (tags, dates) {
            (Some(tags), dates) => tags && dates != Some(false),
            (None, dates) => dates == Some(true),
        }
    }
}

/// RFC 9110 8.8.3: optionally `W/`, then quotes around bytes that are neither quotes nor blanks nor controls.
pub fn is_entity_tag(value: &[u8]) -> bool {
    let is_tag_byte = |byte: &u8| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..);
    match opaque_tag(value) {
        [b'"', tag @ .., b'"'] => tag.iter().all(is_tag_byte),
        _ => false,
    }
}

/// The values of the conditional fields of a validation (RFC 9111 4.3.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationFields {
    pub if_none_match: Option<Vec<u8>>,
    pub if_modified_since: Option<Vec<u8>>,
}

/// The most entity tags in one `If-None-Match`: those of the variants listed first.
pub const TAGS_ASKED_MAX: usize = 16;

/// What to ask about the stored responses to a target, the one that would be used first. All valid tags are sent;
/// `Last-Modified` only where there is one response, since a date cannot tell several apart. With
/// `may_ask_by_date`, a single response without validators is asked about by its `Date` (RFC 9110 13.1.3).
pub fn validation_fields(
    stored: &[ResponseValidators<'_>],
    may_ask_by_date: bool,
) -> ValidationFields {
    let tags = stored
        .iter()
        .filter_map(|one| one.etag)
        .filter(|tag| is_entity_tag(tag));
    let tags: Vec<&[u8]> = tags.take(TAGS_ASKED_MAX).collect();
    let since = match stored {
        [one] if one.is_empty() => may_ask_by_date.then_some(one.date),
        [one] => one.last_modified,
        _ => None,
    };
    ValidationFields {
        if_none_match: (!tags.is_empty()).then(|| tags.join(b", ".as_slice())),
        if_modified_since: since.map(|date| imf_fixdate(date).to_vec()),
    }
}

/// Which stored responses a 304 validates (RFC 9111 4.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All that are the same as it strongly: [`ResponseValidators::is_same_strongly`].
    AllSameStrongly,
    /// The one with this index.
    One(usize),
    /// None: the 304 must not update anything; ask again without conditions.
    None,
}

/// Selects among the stored responses that were asked about, the newest first. A 304 without any validator means the
/// only one: RFC 9111 asks that this has none either, but servers leave `ETag` out, and only that one was asked about.
pub fn select_validated(
    stored: &[ResponseValidators<'_>],
    not_modified: &ResponseValidators<'_>,
) -> Selection {
    if not_modified.strong_etag().is_some() {
        return match stored.iter().any(|one| one.is_same_strongly(not_modified)) {
            true => Selection::AllSameStrongly,
            false => Selection::None,
        };
    }
    if not_modified.is_empty() {
        return match stored {
            [_] => Selection::One(0),
            _ => Selection::None,
        };
    }
    let found = stored
        .iter()
        .position(|one| one.is_same_weakly(not_modified));
    found.map_or(Selection::None, Selection::One)
}

/// What the response to a HEAD means for the stored response to GET (RFC 9111 4.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadEffect {
    /// Its fields update the stored ones.
    Update,
    /// The stored response counts as stale from now on.
    Invalidate,
    /// It says nothing of it.
    None,
}

/// Compares validators and lengths: each that both have must be the same.
pub fn head_effect(
    stored: &ResponseValidators<'_>,
    stored_length: Option<u64>,
    status: Status,
    head: &ResponseValidators<'_>,
    head_length: Option<u64>,
) -> HeadEffect {
    if status != Status::OK {
        return HeadEffect::None;
    }
    let has_other_tag = stored.etag != head.etag;
    let has_other_date = stored.last_modified != head.last_modified;
    let has_other_length = stored_length
        .zip(head_length)
        .is_some_and(|(one, another)| one != another);
    if has_other_tag || has_other_date || has_other_length {
        HeadEffect::Invalidate
    } else {
        HeadEffect::Update
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000;

    const fn tagged(etag: &str) -> ResponseValidators<'_> {
        ResponseValidators {
            etag: Some(etag.as_bytes()),
            last_modified: None,
            date: NOW,
        }
    }

    const fn dated(before: i64) -> ResponseValidators<'static> {
        ResponseValidators {
            etag: None,
            last_modified: Some(NOW - before),
            date: NOW,
        }
    }

    const NONE: ResponseValidators<'_> = ResponseValidators {
        etag: None,
        last_modified: None,
        date: NOW,
    };
    const A: ResponseValidators<'_> = tagged("\"a\"");
    const WEAK_A: ResponseValidators<'_> = tagged("W/\"a\"");
    const B: ResponseValidators<'_> = tagged("\"b\"");

    #[test]
    fn entity_tags_are_quoted() {
        for tag in ["\"a\"", "\"\"", "W/\"a\"", "\"a,b\"", "\"\u{e9}\""] {
            assert!(is_entity_tag(tag.as_bytes()), "{tag}");
        }
        for tag in [
            "",
            "a",
            "\"",
            "\"a",
            "a\"",
            "w/\"a\"",
            "W/",
            "\"a b\"",
            "\"a\"b\"",
            "\"a\r\"",
            "\"a\x7f\"",
        ] {
            assert!(!is_entity_tag(tag.as_bytes()), "{tag}");
        }
    }

    #[test]
    fn validators_are_compared_strongly_and_weakly() {
        let both = |etag, before| ResponseValidators {
            etag: Some(etag),
            ..dated(before)
        };
        for (one, other, strongly, weakly) in [
            (A, A, true, true),
            (A, B, false, false),
            (A, WEAK_A, false, true),
            (WEAK_A, WEAK_A, false, true),
            (tagged("a"), tagged("a"), false, true),
            (dated(60), dated(60), true, true),
            (dated(59), dated(59), false, true),
            (dated(60), dated(61), false, false),
            (NONE, NONE, false, false),
            (A, NONE, false, false),
            (A, dated(60), false, false),
            (both(b"\"a\"", 60), A, true, true),
            (both(b"\"a\"", 60), both(b"\"a\"", 61), true, false),
            (both(b"W/\"a\"", 60), both(b"W/\"a\"", 60), false, true),
            (both(b"W/\"a\"", 60), dated(60), false, true),
        ] {
            assert_eq!(one.is_same_strongly(&other), strongly, "{one:?} {other:?}");
            assert_eq!(other.is_same_strongly(&one), strongly, "{one:?} {other:?}");
            assert_eq!(one.is_same_weakly(&other), weakly, "{one:?} {other:?}");
        }
    }

    #[test]
    fn validators_are_read_from_the_first_fields_of_their_names() {
        let lines: &[(&[u8], &[u8])] = &[
            (b"etag", b""),
            (b"ETag", b"\"a\""),
            (b"ETag", b"\"b\""),
            (b"Last-Modified", b"never"),
            (b"last-modified", b"Tue, 14 Nov 2023 22:12:20 GMT"),
            (b"Last-Modified", b"Tue, 14 Nov 2023 22:13:20 GMT"),
        ];
        let found = ResponseValidators::of_fields(lines.iter().copied(), NOW);
        let expected = ResponseValidators {
            etag: A.etag,
            ..dated(60)
        };
        assert_eq!(found, expected);
        assert!(found.has_strong());
        for (one, is_strong) in [
            (A, true),
            (WEAK_A, false),
            (dated(60), true),
            (dated(59), false),
            (NONE, false),
        ] {
            assert_eq!(one.has_strong(), is_strong, "{one:?}");
        }
    }

    #[test]
    fn what_is_known_is_asked_about() {
        let check = |stored: &[ResponseValidators<'_>],
                     by_date,
                     tags: Option<&str>,
                     since: Option<&str>| {
            let found = validation_fields(stored, by_date);
            assert_eq!(
                found.if_none_match.as_deref(),
                tags.map(str::as_bytes),
                "{stored:?}"
            );
            assert_eq!(
                found.if_modified_since.as_deref(),
                since.map(str::as_bytes),
                "{stored:?}"
            );
        };
        let minute = "Tue, 14 Nov 2023 22:12:20 GMT";
        check(&[], true, None, None);
        check(&[A], false, Some("\"a\""), None);
        check(&[A, WEAK_A, B], false, Some("\"a\", W/\"a\", \"b\""), None);
        check(&[tagged("bad"), B], false, Some("\"b\""), None);
        check(&[tagged("\"a\r\nX: y\"")], false, None, None);
        check(&[dated(60)], false, None, Some(minute));
        check(
            &[ResponseValidators {
                etag: A.etag,
                ..dated(60)
            }],
            false,
            Some("\"a\""),
            Some(minute),
        );
        check(&[dated(60), A], false, Some("\"a\""), None);
        check(&[NONE], false, None, None);
        check(&[NONE], true, None, Some("Tue, 14 Nov 2023 22:13:20 GMT"));
        let many = [A; TAGS_ASKED_MAX + 1];
        let asked = validation_fields(&many, false).if_none_match.unwrap();
        assert_eq!(asked.split(|byte| *byte == b',').count(), TAGS_ASKED_MAX);
    }

    #[test]
    fn a_304_validates_what_it_names() {
        use Selection::{AllSameStrongly, None as Nothing, One};
        for (stored, answer, expected) in [
            (&[A][..], A, AllSameStrongly),
            (&[B, A], A, AllSameStrongly),
            (&[B], A, Nothing),
            (&[WEAK_A], A, Nothing),
            (&[B, WEAK_A, A], WEAK_A, One(1)),
            (&[A], WEAK_A, One(0)),
            (&[B], WEAK_A, Nothing),
            (&[dated(5), dated(60)], dated(60), One(1)),
            (&[dated(5)], dated(60), Nothing),
            (&[NONE], NONE, One(0)),
            (&[A], NONE, One(0)),
            (&[A, B], NONE, Nothing),
            (&[], NONE, Nothing),
            (&[], A, Nothing),
        ] {
            assert_eq!(
                select_validated(stored, &answer),
                expected,
                "{stored:?} {answer:?}"
            );
        }
    }

    #[test]
    fn a_head_updates_what_it_agrees_with() {
        use HeadEffect::{Invalidate, None as Nothing, Update};
        for (stored, length, status, head, head_length, expected) in [
            (A, Some(5), 200, A, Some(5), Update),
            (A, Some(5), 200, A, None, Update),
            (A, Some(5), 200, A, Some(6), Invalidate),
            (A, Some(5), 200, B, Some(5), Invalidate),
            (A, Some(5), 200, NONE, Some(5), Invalidate),
            (dated(60), None, 200, dated(60), None, Update),
            (dated(60), None, 200, dated(59), None, Invalidate),
            (NONE, Some(5), 200, NONE, Some(5), Update),
            (A, Some(5), 404, B, Some(6), Nothing),
            (A, Some(5), 304, A, None, Nothing),
        ] {
            assert_eq!(
                head_effect(&stored, length, Status(status), &head, head_length),
                expected,
                "{head:?}"
            );
        }
    }
}
