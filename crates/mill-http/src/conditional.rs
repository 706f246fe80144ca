//! Conditional requests, RFC 9110 13, evaluated in nginx's order.
//!
//! nginx differs from RFC 9110 13.2.2 in two points, kept here because people's caches see them:
//! `If-Unmodified-Since` counts even beside `If-Match`, and with both `If-Modified-Since` and
//! `If-None-Match` present both must say "not modified".

use crate::date::parse_http_date;
use crate::etag::{Comparison, list_matches};
use crate::field::KnownField;
use crate::h1::head::RequestHead;

/// What is known of the representation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validators<'a> {
    /// Unix seconds of `Last-Modified`.
    pub last_modified: Option<i64>,
    /// `ETag`, quotes included.
    pub etag: Option<&'a [u8]>,
}

/// What the request asks: the values of its five conditional fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions<'a> {
    pub if_match: Option<&'a [u8]>,
    pub if_unmodified_since: Option<&'a [u8]>,
    pub if_none_match: Option<&'a [u8]>,
    pub if_modified_since: Option<&'a [u8]>,
    pub if_range: Option<&'a [u8]>,
}

impl<'a> Conditions<'a> {
    pub fn of(head: &RequestHead, bytes: &'a [u8]) -> Self {
        let value = |known| head.value(known).map(|span| span.of(bytes));
        Self {
            if_match: value(KnownField::IfMatch),
            if_unmodified_since: value(KnownField::IfUnmodifiedSince),
            if_none_match: value(KnownField::IfNoneMatch),
            if_modified_since: value(KnownField::IfModifiedSince),
            if_range: value(KnownField::IfRange),
        }
    }
}

/// The directive `if_modified_since`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfModifiedSince {
    Off,
    /// Not modified when the two dates are the same.
    #[default]
    Exact,
    /// Not modified when the representation is not newer.
    Before,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Answer as without conditions.
    Proceed,
    /// 304
    NotModified,
    /// 412
    PreconditionFailed,
}

/// Judges the conditions on a representation that would be answered with 200.
pub fn evaluate(
    validators: &Validators<'_>,
    conditions: &Conditions<'_>,
    setting: IfModifiedSince,
) -> Verdict {
    if let Some(date) = conditions.if_unmodified_since
        && !is_unmodified(validators, date)
    {
        return Verdict::PreconditionFailed;
    }
    if let Some(list) = conditions.if_match
        && !list_matches(list, validators.etag, Comparison::Strong)
    {
        return Verdict::PreconditionFailed;
    }
    if conditions.if_modified_since.is_none() && conditions.if_none_match.is_none() {
        return Verdict::Proceed;
    }
    if let Some(date) = conditions.if_modified_since
        && is_modified(validators, date, setting)
    {
        return Verdict::Proceed;
    }
    if let Some(list) = conditions.if_none_match
        && !list_matches(list, validators.etag, Comparison::Weak)
    {
        return Verdict::Proceed;
    }
    Verdict::NotModified
}

/// `If-Range` (RFC 9110 13.1.5) lets the `Range` field count: the tag is the same byte for byte,
/// or the date is exactly `Last-Modified`. A value that ends in a quote is a tag.
pub fn if_range_holds(value: &[u8], validators: &Validators<'_>) -> bool {
    if value.len() >= 2 && value.last() == Some(&b'"') {
        return validators.etag == Some(value);
    }
    validators.last_modified.is_some() && parse_http_date(value) == validators.last_modified
}

fn is_unmodified(validators: &Validators<'_>, date: &[u8]) -> bool {
    match (validators.last_modified, parse_http_date(date)) {
        (Some(modified), Some(date)) => date >= modified,
        _ => false,
    }
}

fn is_modified(validators: &Validators<'_>, date: &[u8], setting: IfModifiedSince) -> bool {
    let (Some(modified), Some(date)) = (validators.last_modified, parse_http_date(date)) else {
        return true;
    };
    match setting {
        IfModifiedSince::Off => true,
        IfModifiedSince::Exact => date != modified,
        IfModifiedSince::Before => date < modified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: &[u8] = b"Sun, 06 Nov 1994 08:49:36 GMT";
    const SAME: &[u8] = b"Sun, 06 Nov 1994 08:49:37 GMT";
    const LATER: &[u8] = b"Sun, 06 Nov 1994 08:49:38 GMT";
    const TAG: &[u8] = b"\"a\"";
    const KNOWN: Validators<'_> = Validators {
        last_modified: Some(784_111_777),
        etag: Some(TAG),
    };

    #[test]
    fn each_condition_alone_and_in_pairs() {
        use IfModifiedSince::{Before, Exact, Off};
        use Verdict::{NotModified, PreconditionFailed, Proceed};
        let none = Conditions::default();
        let check = |conditions: Conditions<'_>, setting, expected| {
            assert_eq!(
                evaluate(&KNOWN, &conditions, setting),
                expected,
                "{conditions:?}"
            );
        };
        check(none, Exact, Proceed);
        for (date, exact, before) in [
            (EARLIER, Proceed, Proceed),
            (SAME, NotModified, NotModified),
            (LATER, Proceed, NotModified),
            (b"tea", Proceed, Proceed),
        ] {
            let since = Conditions {
                if_modified_since: Some(date),
                ..none
            };
            check(since, Exact, exact);
            check(since, Before, before);
            check(since, Off, Proceed);
        }
        for (date, expected) in [
            (EARLIER, PreconditionFailed),
            (SAME, Proceed),
            (LATER, Proceed),
            (b"tea", PreconditionFailed),
        ] {
            check(
                Conditions {
                    if_unmodified_since: Some(date),
                    ..none
                },
                Exact,
                expected,
            );
        }
        check(
            Conditions {
                if_match: Some(TAG),
                ..none
            },
            Exact,
            Proceed,
        );
        check(
            Conditions {
                if_match: Some(b"*"),
                ..none
            },
            Exact,
            Proceed,
        );
        check(
            Conditions {
                if_match: Some(b"W/\"a\""),
                ..none
            },
            Exact,
            PreconditionFailed,
        );
        check(
            Conditions {
                if_none_match: Some(b"W/\"a\""),
                ..none
            },
            Exact,
            NotModified,
        );
        check(
            Conditions {
                if_none_match: Some(b"\"b\""),
                ..none
            },
            Exact,
            Proceed,
        );
        // Both must agree.
        let both = Conditions {
            if_none_match: Some(TAG),
            if_modified_since: Some(SAME),
            ..none
        };
        check(both, Exact, NotModified);
        check(
            Conditions {
                if_modified_since: Some(EARLIER),
                ..both
            },
            Exact,
            Proceed,
        );
        check(
            Conditions {
                if_none_match: Some(b"\"b\""),
                ..both
            },
            Exact,
            Proceed,
        );
        // A failed precondition comes first.
        check(
            Conditions {
                if_match: Some(b"\"b\""),
                ..both
            },
            Exact,
            PreconditionFailed,
        );
    }

    #[test]
    fn without_validators_nothing_matches_but_the_asterisk() {
        let unknown = Validators::default();
        let none = Conditions::default();
        let check = |conditions: Conditions<'_>, expected| {
            assert_eq!(
                evaluate(&unknown, &conditions, IfModifiedSince::Exact),
                expected
            );
        };
        check(
            Conditions {
                if_match: Some(b"*"),
                ..none
            },
            Verdict::Proceed,
        );
        check(
            Conditions {
                if_match: Some(TAG),
                ..none
            },
            Verdict::PreconditionFailed,
        );
        check(
            Conditions {
                if_none_match: Some(b"*"),
                ..none
            },
            Verdict::NotModified,
        );
        check(
            Conditions {
                if_none_match: Some(TAG),
                ..none
            },
            Verdict::Proceed,
        );
        check(
            Conditions {
                if_unmodified_since: Some(LATER),
                ..none
            },
            Verdict::PreconditionFailed,
        );
        check(
            Conditions {
                if_modified_since: Some(LATER),
                ..none
            },
            Verdict::Proceed,
        );
    }

    #[test]
    fn if_range_holds_only_for_the_very_same() {
        let check = |value: &[u8], expected: bool| {
            assert_eq!(if_range_holds(value, &KNOWN), expected, "{value:?}");
        };
        check(TAG, true);
        check(b"W/\"a\"", false);
        check(b"\"b\"", false);
        check(SAME, true);
        check(EARLIER, false);
        check(LATER, false);
        check(b"tea", false);
        assert!(!if_range_holds(b"tea", &Validators::default()));
        assert!(!if_range_holds(TAG, &Validators::default()));
    }
}
