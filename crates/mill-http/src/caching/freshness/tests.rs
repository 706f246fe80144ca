//! Age and lifetime: tables for RFC 9111 4.2.1, 4.2.2 and 4.2.3.

use super::*;
use crate::date::imf_fixdate;
use alloc::vec::Vec;

/// Tue, 14 Nov 2023 22:13:20 GMT
const NOW: i64 = 1_700_000_000;
const DATE: &str = "Tue, 14 Nov 2023 22:13:20 GMT";
const IN_A_MINUTE: &str = "Tue, 14 Nov 2023 22:14:20 GMT";
const A_MINUTE_AGO: &str = "Tue, 14 Nov 2023 22:12:20 GMT";
const TIMES: ExchangeTimes = ExchangeTimes {
    request: NOW,
    response: NOW,
};

fn of(
    status: u16,
    lines: &[(&str, &str)],
    times: ExchangeTimes,
    rules: LifetimeRules,
) -> Freshness {
    let fields: Vec<_> = lines
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
        .collect();
    let directives = ResponseDirectives::of_fields(fields.iter().copied());
    Freshness::of_response(
        Status(status),
        fields.iter().copied(),
        &directives,
        times,
        rules,
    )
}

#[test]
fn the_dates_of_this_table_are_what_they_say() {
    assert_eq!(imf_fixdate(NOW), DATE.as_bytes());
    assert_eq!(imf_fixdate(NOW + 60), IN_A_MINUTE.as_bytes());
    assert_eq!(imf_fixdate(NOW - 60), A_MINUTE_AGO.as_bytes());
}

#[test]
fn the_lifetime_is_that_of_the_first_source_which_says_one() {
    use LifetimeSource::{Expires, Heuristic, MaxAge, None as Without, SMaxage};
    let check = |status: u16, lines: &[(&str, &str)], lifetime: u32, source: LifetimeSource| {
        let found = of(status, lines, TIMES, LifetimeRules::default());
        assert_eq!(
            (found.lifetime, found.source),
            (lifetime, source),
            "{status} {lines:?}"
        );
    };
    let all = "max-age=20, s-maxage=10";
    check(
        200,
        &[("Cache-Control", all), ("Expires", IN_A_MINUTE)],
        10,
        SMaxage,
    );
    check(
        200,
        &[("Expires", IN_A_MINUTE), ("Cache-Control", "max-age=20")],
        20,
        MaxAge,
    );
    check(
        200,
        &[("Cache-Control", "max-age=x"), ("Expires", IN_A_MINUTE)],
        0,
        MaxAge,
    );
    check(
        200,
        &[("Cache-Control", "max-age=20, s-maxage=x")],
        0,
        SMaxage,
    );
    check(
        200,
        &[("Cache-Control", "max-age=9999999999")],
        1 << 31,
        MaxAge,
    );
    check(500, &[("Cache-Control", "max-age=20")], 20, MaxAge);
    check(
        200,
        &[("Expires", IN_A_MINUTE), ("Date", DATE)],
        60,
        Expires,
    );
    check(200, &[("Expires", IN_A_MINUTE)], 60, Expires);
    check(
        200,
        &[("Expires", IN_A_MINUTE), ("Date", A_MINUTE_AGO)],
        120,
        Expires,
    );
    check(
        200,
        &[("Expires", IN_A_MINUTE), ("Date", IN_A_MINUTE)],
        0,
        Expires,
    );
    check(200, &[("Expires", IN_A_MINUTE), ("Date", "x")], 60, Expires);
    check(200, &[("Expires", A_MINUTE_AGO)], 0, Expires);
    check(200, &[("Expires", "0")], 0, Expires);
    check(
        200,
        &[("Expires", "-1"), ("Last-Modified", A_MINUTE_AGO)],
        0,
        Expires,
    );
    check(
        200,
        &[("Expires", IN_A_MINUTE), ("Expires", DATE)],
        60,
        Expires,
    );
    check(
        200,
        &[("Expires", "0"), ("Expires", IN_A_MINUTE)],
        0,
        Expires,
    );
    check(200, &[("Last-Modified", A_MINUTE_AGO)], 6, Heuristic);
    check(
        200,
        &[("Last-Modified", A_MINUTE_AGO), ("Last-Modified", "x")],
        6,
        Heuristic,
    );
    check(
        200,
        &[("Last-Modified", "x"), ("Last-Modified", A_MINUTE_AGO)],
        0,
        Without,
    );
    check(200, &[("Last-Modified", IN_A_MINUTE)], 0, Heuristic);
    check(
        200,
        &[("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT")],
        86_400,
        Heuristic,
    );
    check(404, &[("Last-Modified", A_MINUTE_AGO)], 6, Heuristic);
    check(302, &[("Last-Modified", A_MINUTE_AGO)], 0, Without);
    let public = ("Cache-Control", "public");
    check(
        302,
        &[("Last-Modified", A_MINUTE_AGO), public],
        6,
        Heuristic,
    );
    check(200, &[], 0, Without);
}

#[test]
fn a_configured_lifetime_stands_between_what_is_said_and_what_is_guessed() {
    let rules = LifetimeRules {
        configured: Some(7),
        ..LifetimeRules::default()
    };
    let check = |lines: &[(&str, &str)], rules, lifetime: u32, source: LifetimeSource| {
        let found = of(200, lines, TIMES, rules);
        assert_eq!(
            (found.lifetime, found.source),
            (lifetime, source),
            "{lines:?}"
        );
    };
    check(&[], rules, 7, LifetimeSource::Configured);
    check(
        &[("Last-Modified", A_MINUTE_AGO)],
        rules,
        7,
        LifetimeSource::Configured,
    );
    check(&[("Expires", "0")], rules, 0, LifetimeSource::Expires);
    let none = LifetimeRules {
        heuristic_percent: 0,
        ..LifetimeRules::default()
    };
    check(
        &[("Last-Modified", A_MINUTE_AGO)],
        none,
        0,
        LifetimeSource::None,
    );
    let short = LifetimeRules {
        heuristic_max: 5,
        ..LifetimeRules::default()
    };
    check(
        &[("Last-Modified", A_MINUTE_AGO)],
        short,
        5,
        LifetimeSource::Heuristic,
    );
    let huge = LifetimeRules {
        configured: Some(u64::MAX),
        ..LifetimeRules::default()
    };
    check(&[], huge, 1 << 31, LifetimeSource::Configured);
}

#[test]
fn a_targeted_field_puts_expires_aside() {
    use crate::caching::targeted::targeted_directives;
    let lines: [(&[u8], &[u8]); 3] = [
        (b"Expires", IN_A_MINUTE.as_bytes()),
        (b"Cache-Control", b"max-age=5"),
        (b"CDN-Cache-Control", b"must-revalidate"),
    ];
    for (targets, expected) in [
        (
            &[b"cdn-cache-control".as_slice()][..],
            (0, LifetimeSource::None),
        ),
        (&[], (5, LifetimeSource::MaxAge)),
    ] {
        let directives = targeted_directives(lines.into_iter(), targets);
        let rules = LifetimeRules::default();
        let found = Freshness::of_response(Status::OK, lines, &directives, TIMES, rules);
        assert_eq!((found.lifetime, found.source), expected);
    }
}

#[test]
fn heuristics_are_for_the_statuses_of_the_rfc_only() {
    let found: Vec<u16> = (100..600)
        .filter(|code| is_heuristically_cacheable(Status(*code)))
        .collect();
    assert_eq!(
        found,
        [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501]
    );
}

#[test]
fn the_initial_age_is_corrected_by_date_age_and_delay() {
    let check = |lines: &[(&str, &str)], delay: i64, expected: u32| {
        let times = ExchangeTimes {
            request: NOW - delay,
            response: NOW,
        };
        let found = of(200, lines, times, LifetimeRules::default());
        assert_eq!(found.initial_age, expected, "{lines:?} {delay}");
    };
    check(&[], 0, 0);
    check(&[], 3, 3);
    check(&[], -3, 0);
    check(&[("Date", DATE)], 0, 0);
    check(&[("Date", A_MINUTE_AGO)], 3, 60);
    check(&[("Date", IN_A_MINUTE)], 3, 3);
    check(&[("Age", "59"), ("Date", A_MINUTE_AGO)], 0, 60);
    check(&[("Age", "59"), ("Date", A_MINUTE_AGO)], 3, 62);
    check(&[("Age", "100")], 0, 100);
    check(&[("Age", "100, 0")], 0, 100);
    check(&[("Age", "100"), ("Age", "0")], 0, 100);
    check(&[("Age", "x")], 0, 0);
    check(&[("Age", "-5")], 0, 0);
    check(&[("Age", "1.5")], 0, 0);
    check(&[("Age", "")], 0, 0);
    check(&[("Age", "99999999999999999999")], 5, 1 << 31);
    check(
        &[("Date", "Thu, 01 Jan 1970 00:00:00 GMT")],
        0,
        1_700_000_000,
    );
    check(&[("Date", DATE), ("Date", A_MINUTE_AGO)], 0, 0);
}

#[test]
fn age_grows_with_time_and_freshness_ends_when_it_reaches_the_lifetime() {
    let stored = of(
        200,
        &[("Cache-Control", "max-age=60"), ("Age", "10")],
        TIMES,
        LifetimeRules::default(),
    );
    for (after, age, ttl) in [
        (0, 10, 50),
        (49, 59, 1),
        (50, 60, 0),
        (51, 61, -1),
        (-5, 10, 50),
    ] {
        assert_eq!(stored.age(NOW + after), age, "{after}");
        assert_eq!(stored.ttl(NOW + after), ttl, "{after}");
        assert_eq!(stored.is_fresh(NOW + after), ttl > 0, "{after}");
    }
    assert!(!stored.is_fresh(i64::MAX) && stored.is_fresh(i64::MIN));
}

#[test]
fn flags_tell_what_the_response_asks_and_has() {
    let flags = |lines: &[(&str, &str)]| {
        let one = of(200, lines, TIMES, LifetimeRules::default());
        [
            one.must_revalidate(),
            one.no_cache(),
            one.has_etag(),
            one.has_last_modified(),
            one.is_immutable(),
        ]
    };
    let control = |value| flags(&[("Cache-Control", value)]);
    assert_eq!(
        control("must-revalidate"),
        [true, false, false, false, false]
    );
    assert_eq!(
        control("proxy-revalidate"),
        [true, false, false, false, false]
    );
    assert_eq!(control("no-cache"), [false, true, false, false, false]);
    assert_eq!(control("no-cache=\"a\""), [false; 5]);
    assert_eq!(control("immutable"), [false, false, false, false, true]);
    assert_eq!(
        flags(&[("ETag", "\"a\"")]),
        [false, false, true, false, false]
    );
    assert_eq!(flags(&[("ETag", "")]), [false; 5]);
    assert_eq!(
        flags(&[("Last-Modified", DATE)]),
        [false, false, false, true, false]
    );
    assert_eq!(flags(&[("Last-Modified", "x")]), [false; 5]);
    let both = "stale-while-revalidate=5, stale-if-error=6";
    let found = of(
        200,
        &[("Cache-Control", both)],
        TIMES,
        LifetimeRules::default(),
    );
    assert_eq!((found.stale_while_revalidate, found.stale_if_error), (5, 6));
}

#[test]
fn a_stored_value_may_go_to_another_thread() {
    const fn check<T: Send + Sync + Copy + 'static>() {}
    check::<Freshness>();
}
