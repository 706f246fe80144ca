//! Conditional requests, RFC 9110 13, evaluated in nginx's order.
//!
//! nginx differs from RFC 9110 13.2.2 in two points, kept here because existing caches depend on them:
//! `If-Unmodified-Since` is evaluated even beside `If-Match`, and with both `If-Modified-Since` and `If-None-Match`
//! present both must say "not modified".

use crate::date::parse_http_date;
use crate::etag::{Comparison, list_matches};
use crate::field::KnownField;
use crate::head::RequestHead;

/// The validators of the representation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validators<'a> {
    /// Unix seconds of `Last-Modified`.
    pub last_modified: Option<i64>,
    /// `ETag`, quotes included.
    pub etag: Option<&'a [u8]>,
}

/// The request's five conditional fields.
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

impl Conditions<'_> {
    /// As RFC 9110 13.2.2 has them: a date is ignored beside a list of tags, if it is none (13.1.3, 13.1.4), and where no date
    /// of the representation is known. nginx's order, that of [`evaluate`] alone, has dates count all the same.
    #[must_use]
    pub fn by_precedence(self, validators: &Validators<'_>) -> Self {
        let is_useful =
            |date: &&[u8]| validators.last_modified.is_some() && parse_http_date(date).is_some();
        let no_tags = |tags: Option<&[u8]>| tags.is_none();
        let until = self.if_unmodified_since.filter(is_useful);
        let since = self.if_modified_since.filter(is_useful);
        Self {
            if_unmodified_since: until.filter(|_| no_tags(self.if_match)),
            if_modified_since: since.filter(|_| no_tags(self.if_none_match)),
            ..self
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

/// Evaluates the conditions on a representation that would be answered with 200.
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

/// Whether a tag is a weak one, which selects no ranges: `If-Range` wants the strong comparison (RFC 9110 13.1.5).
pub fn is_weak_tag(value: &[u8]) -> bool {
    value.starts_with(b"W/")
}

/// Whether `If-Range` (RFC 9110 13.1.5) allows the `Range` field: the tag is the same byte for byte, or the date is
/// exactly `Last-Modified`. A value that ends in a quote is a tag.
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
    use super::IfModifiedSince::{Before, Exact, Off};
    use super::Verdict::{NotModified, PreconditionFailed, Proceed};
    use super::*;

    const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
    const TAG: &str = "\"a\"";
    const WEAK: &str = "W/\"a\"";
    const OTHER: &str = "\"b\"";
    const KNOWN: Validators<'_> = Validators {
        last_modified: Some(784_111_777),
        etag: Some(TAG.as_bytes()),
    };
    const UNKNOWN: Validators<'_> = Validators {
        last_modified: None,
        etag: None,
    };

    /// If-Match, If-Unmodified-Since, If-None-Match, If-Modified-Since; empty for none.
    type Row<'a> = [&'a str; 4];

    fn check(
        validators: Validators<'_>,
        row: Row<'_>,
        setting: IfModifiedSince,
        expected: Verdict,
    ) {
        let [
            if_match,
            if_unmodified_since,
            if_none_match,
            if_modified_since,
        ] = row.map(|value| (!value.is_empty()).then_some(value.as_bytes()));
        let conditions = Conditions {
            if_match,
            if_unmodified_since,
            if_none_match,
            if_modified_since,
            if_range: None,
        };
        assert_eq!(
            evaluate(&validators, &conditions, setting),
            expected,
            "{row:?} {setting:?}"
        );
    }

    #[test]
    fn dates_are_judged_by_the_setting() {
        for (date, exact, before) in [
            (EARLIER, Proceed, Proceed),
            (SAME, NotModified, NotModified),
            (LATER, Proceed, NotModified),
            ("tea", Proceed, Proceed),
        ] {
            check(KNOWN, ["", "", "", date], Exact, exact);
            check(KNOWN, ["", "", "", date], Before, before);
            check(KNOWN, ["", "", "", date], Off, Proceed);
        }
    }

    #[test]
    fn each_condition_alone_and_in_pairs() {
        for (row, expected) in [
            (["", "", "", ""], Proceed),
            (["", EARLIER, "", ""], PreconditionFailed),
            (["", SAME, "", ""], Proceed),
            (["", LATER, "", ""], Proceed),
            (["", "tea", "", ""], PreconditionFailed),
            ([TAG, "", "", ""], Proceed),
            (["*", "", "", ""], Proceed),
            ([WEAK, "", "", ""], PreconditionFailed),
            (["", "", WEAK, ""], NotModified),
            (["", "", OTHER, ""], Proceed),
            // Both must say that it is not modified.
            (["", "", TAG, SAME], NotModified),
            (["", "", TAG, EARLIER], Proceed),
            (["", "", OTHER, SAME], Proceed),
            // A failed precondition comes first, and either of the two is enough.
            ([OTHER, "", TAG, SAME], PreconditionFailed),
            ([TAG, EARLIER, TAG, SAME], PreconditionFailed),
            ([TAG, SAME, TAG, SAME], NotModified),
        ] {
            check(KNOWN, row, Exact, expected);
        }
    }

    #[test]
    fn by_precedence_a_date_is_ignored_beside_tags_and_where_it_tells_nothing() {
        let check = |validators: Validators<'_>, row: Row<'_>, expected| {
            let [
                if_match,
                if_unmodified_since,
                if_none_match,
                if_modified_since,
            ] = row.map(|value| (!value.is_empty()).then_some(value.as_bytes()));
            let conditions = Conditions {
                if_match,
                if_unmodified_since,
                if_none_match,
                if_modified_since,
                if_range: None,
            };
            let conditions = conditions.by_precedence(&validators);
            assert_eq!(
                evaluate(&validators, &conditions, Before),
                expected,
                "{row:?}"
            );
        };
        for (row, expected) in [
            (["", "", TAG, EARLIER], NotModified),
            (["", "", OTHER, SAME], Proceed),
            (["", "", "", SAME], NotModified),
            (["", "", "", LATER], NotModified),
            (["", "", "", EARLIER], Proceed),
            (["", "", "", "tea"], Proceed),
            ([TAG, EARLIER, "", ""], Proceed),
            ([OTHER, LATER, "", ""], PreconditionFailed),
            (["", EARLIER, "", ""], PreconditionFailed),
            (["", "tea", "", ""], Proceed),
            ([TAG, EARLIER, TAG, EARLIER], NotModified),
        ] {
            check(KNOWN, row, expected);
        }
        check(UNKNOWN, ["", EARLIER, "", ""], Proceed);
        check(UNKNOWN, ["", "", "", LATER], Proceed);
    }

    #[test]
    fn a_weak_tag_is_told_from_a_strong_one() {
        assert!(is_weak_tag(WEAK.as_bytes()));
        assert!(!is_weak_tag(TAG.as_bytes()));
    }

    #[test]
    fn without_validators_nothing_matches_but_the_asterisk() {
        for (row, expected) in [
            (["*", "", "", ""], Proceed),
            ([TAG, "", "", ""], PreconditionFailed),
            (["", "", "*", ""], NotModified),
            (["", "", TAG, ""], Proceed),
            (["", LATER, "", ""], PreconditionFailed),
            (["", "", "", LATER], Proceed),
        ] {
            check(UNKNOWN, row, Exact, expected);
        }
    }

    #[test]
    fn if_range_holds_only_for_the_very_same() {
        for (value, expected) in [
            (TAG, true),
            (WEAK, false),
            (OTHER, false),
            (SAME, true),
            (EARLIER, false),
            (LATER, false),
            ("tea", false),
        ] {
            assert_eq!(
                if_range_holds(value.as_bytes(), &KNOWN),
                expected,
                "{value}"
            );
        }
        assert!(!if_range_holds(b"tea", &UNKNOWN));
        assert!(!if_range_holds(TAG.as_bytes(), &UNKNOWN));
    }
}
