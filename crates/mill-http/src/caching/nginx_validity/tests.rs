//! nginx's rules, field by field and in their order.

use super::WhyNotStored::{
    Expired, InvalidSeconds, NoCache, NoLifetime, NoStore, Private, SetCookie,
};
use super::*;
use alloc::vec::Vec;

/// Tue, 14 Nov 2023 22:13:20 GMT
const NOW: i64 = 1_700_000_000;
const IN_A_MINUTE: &str = "Tue, 14 Nov 2023 22:14:20 GMT";
const A_MINUTE_AGO: &str = "Tue, 14 Nov 2023 22:12:20 GMT";
const NONE_IGNORED: IgnoredFields = IgnoredFields {
    x_accel_expires: false,
    expires: false,
    cache_control: false,
    set_cookie: false,
    vary: false,
    directives: IgnoredDirectives {
        no_cache: false,
        no_store: false,
        private: false,
        max_age: false,
        s_maxage: false,
    },
};

type Lines<'a> = &'a [(&'a str, &'a str)];

fn decide(
    lines: Lines<'_>,
    ignored: IgnoredFields,
    configured: &[ConfiguredValidity],
    status: u16,
) -> Result<NginxValidity, WhyNotStored> {
    let fields: Vec<_> = lines
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
        .collect();
    nginx_validity(Status(status), fields, ignored, configured, NOW)
}

/// Seconds from now, or why not.
fn check(lines: Lines<'_>, expected: Result<i64, WhyNotStored>) {
    let found = decide(lines, NONE_IGNORED, &[], 200);
    assert_eq!(
        found.map(|one| one.valid_until - NOW),
        expected,
        "{lines:?}"
    );
}

#[test]
fn x_accel_expires_is_seconds_or_a_time() {
    let one = |value: &str, expected| check(&[("X-Accel-Expires", value)], expected);
    one("60", Ok(60));
    one("@1700000060", Ok(60));
    one("@1699999940", Ok(-60));
    one("0", Err(Expired));
    one("00", Err(Expired));
    for value in [
        "off",
        "",
        "-1",
        "@",
        "@x",
        "6 0",
        "60,",
        "@0",
        "99999999999999999999",
    ] {
        one(value, Err(NoLifetime));
    }
    check(
        &[("X-Accel-Expires", "60"), ("X-Accel-Expires", "0")],
        Ok(60),
    );
    check(
        &[("X-Accel-Expires", "x"), ("X-Accel-Expires", "60")],
        Err(NoLifetime),
    );
}

#[test]
fn cache_control_is_searched_for_words() {
    let one = |value: &str, expected| check(&[("Cache-Control", value)], expected);
    one("max-age=60", Ok(60));
    one("MAX-AGE=60", Ok(60));
    one("max-age=60, s-maxage=30", Ok(30));
    one("s-maxage=30,max-age=60", Ok(30));
    one("max-age=60;x", Ok(60));
    one("max-age=60 x", Ok(60));
    one("public, max-age=060", Ok(60));
    one("x-max-age=60", Ok(60));
    one("max-age=99999999999999999999", Ok(i64::MAX - NOW));
    for value in [
        "max-age=0",
        "max-age=",
        "max-age= 60",
        "s-maxage=0, max-age=60",
    ] {
        one(value, Err(Expired));
    }
    for value in [
        "max-age=x",
        "max-age=\"60\"",
        "max-age=-1",
        "max-age=60\t",
        "max-age=60, stale-if-error=x",
    ] {
        one(value, Err(InvalidSeconds));
    }
    for value in ["max-age", "public", "", "must-revalidate"] {
        one(value, Err(NoLifetime));
    }
    for value in [
        "no-cache",
        "max-age=60, No-Cache",
        "no-cache=\"x\", max-age=60",
        "x=no-cache-y",
    ] {
        one(value, Err(NoCache));
    }
    one("max-age=60, no-store", Err(NoStore));
    one("max-age=60, private", Err(Private));
    one("private=\"x\"", Err(Private));
}

#[test]
fn the_stronger_field_counts_in_either_order() {
    let both = |one: (&str, &str), other: (&str, &str), expected| {
        check(&[one, other], expected);
        check(&[other, one], expected);
    };
    let accel = ("X-Accel-Expires", "30");
    let control = ("Cache-Control", "max-age=40");
    both(accel, control, Ok(30));
    both(accel, ("Cache-Control", "no-store"), Ok(30));
    both(accel, ("Cache-Control", "max-age=0"), Ok(30));
    both(accel, ("Expires", IN_A_MINUTE), Ok(30));
    both(accel, ("Expires", A_MINUTE_AGO), Ok(30));
    both(("X-Accel-Expires", "0"), control, Err(Expired));
    both(("X-Accel-Expires", "off"), control, Ok(40));
    both(control, ("Expires", IN_A_MINUTE), Ok(40));
    both(control, ("Expires", A_MINUTE_AGO), Ok(40));
    both(
        ("Cache-Control", "private"),
        ("Expires", IN_A_MINUTE),
        Err(Private),
    );
    both(
        ("Cache-Control", "public"),
        ("Expires", IN_A_MINUTE),
        Ok(60),
    );
    both(("Cache-Control", "private"), control, Err(Private));
    both(accel, ("Set-Cookie", "a=b"), Err(SetCookie));
    both(control, ("Vary", "*"), Err(WhyNotStored::Vary));
    // What is no number is only looked at where it counts, and then for good.
    let malformed = ("Cache-Control", "max-age=x");
    check(&[accel, malformed], Ok(30));
    check(&[malformed, accel], Err(InvalidSeconds));
}

#[test]
fn expires_is_a_date_that_is_not_past() {
    check(&[("Expires", IN_A_MINUTE)], Ok(60));
    check(&[("Expires", "Tue, 14 Nov 2023 22:13:20 GMT")], Ok(0));
    check(&[("Expires", A_MINUTE_AGO)], Err(Expired));
    check(&[("Expires", "0")], Err(Expired));
    check(&[("Expires", IN_A_MINUTE), ("Expires", "0")], Ok(60));
}

#[test]
fn stale_seconds_are_taken_with_and_without_x_accel_expires() {
    let check = |lines: Lines<'_>, expected: (u64, u64)| {
        let found = decide(lines, NONE_IGNORED, &[], 200).unwrap();
        assert_eq!(
            (found.stale_while_revalidate, found.stale_if_error),
            expected,
            "{lines:?}"
        );
    };
    let control = |value| [("X-Accel-Expires", "60"), ("Cache-Control", value)];
    check(&control("stale-while-revalidate=5"), (5, 5));
    check(&control("stale-if-error=5"), (0, 5));
    check(
        &control("stale-while-revalidate=5, stale-if-error=7"),
        (5, 7),
    );
    check(
        &[(
            "Cache-Control",
            "max-age=1, stale-if-error=7, stale-while-revalidate=5",
        )],
        (5, 7),
    );
}

#[test]
fn ignored_fields_have_no_effect() {
    let check = |lines: Lines<'_>, ignored: IgnoredFields, expected: Result<i64, WhyNotStored>| {
        let found = decide(lines, ignored, &[], 200);
        assert_eq!(
            found.map(|one| one.valid_until - NOW),
            expected,
            "{lines:?}"
        );
    };
    let all = NONE_IGNORED;
    let control = ("Cache-Control", "max-age=40");
    check(
        &[control, ("X-Accel-Expires", "0")],
        IgnoredFields {
            x_accel_expires: true,
            ..all
        },
        Ok(40),
    );
    check(
        &[("Cache-Control", "private"), ("Expires", IN_A_MINUTE)],
        IgnoredFields {
            cache_control: true,
            ..all
        },
        Ok(60),
    );
    check(
        &[("Expires", "0")],
        IgnoredFields {
            expires: true,
            ..all
        },
        Err(NoLifetime),
    );
    check(
        &[control, ("Set-Cookie", "a")],
        IgnoredFields {
            set_cookie: true,
            ..all
        },
        Ok(40),
    );
    check(
        &[control, ("Vary", "*")],
        IgnoredFields { vary: true, ..all },
        Ok(40),
    );
}

#[test]
fn configured_times_are_searched_by_status_in_their_order() {
    let rows = [(Some(404), 0), (Some(200), 10), (None, 20), (Some(500), 30)];
    let configured: Vec<_> = rows
        .map(|(code, seconds)| ConfiguredValidity {
            status: code.map(Status),
            seconds,
        })
        .into();
    for (status, expected) in [
        (200, Ok(10)),
        (301, Ok(20)),
        (500, Ok(20)),
        (404, Err(NoLifetime)),
    ] {
        let found = decide(&[], NONE_IGNORED, &configured, status);
        assert_eq!(found.map(|one| one.valid_until - NOW), expected, "{status}");
        assert!(found.is_err() || found.unwrap().source == LifetimeSource::Configured);
    }
    let field = decide(
        &[("Cache-Control", "max-age=5")],
        NONE_IGNORED,
        &configured,
        404,
    )
    .unwrap();
    assert_eq!(
        (field.valid_until, field.source),
        (NOW + 5, LifetimeSource::MaxAge)
    );
}

#[test]
fn vary_is_as_long_as_nginx_stores() {
    let control = ("Cache-Control", "max-age=5");
    let longest = "x".repeat(NGINX_VARY_BYTES_MAX);
    check(&[control, ("Vary", &longest)], Ok(5));
    check(
        &[control, ("Vary", &longest), ("Vary", "")],
        Err(WhyNotStored::Vary),
    );
    check(
        &[control, ("Vary", &longest[..100]), ("Vary", &longest[..26])],
        Ok(5),
    );
    check(
        &[control, ("Vary", &longest[..100]), ("Vary", &longest[..27])],
        Err(WhyNotStored::Vary),
    );
    // Only alone is the asterisk known.
    check(&[control, ("Vary", "a, *")], Ok(5));
}

#[test]
fn what_nginx_keeps_is_fresh_through_its_last_second() {
    use super::super::freshness::Freshness;
    let fields: [(&[u8], &[u8]); 2] = [(b"Age", b"1000"), (b"X-Accel-Expires", b"60")];
    let validity = nginx_validity(Status::OK, fields, NONE_IGNORED, &[], NOW).unwrap();
    let stored = Freshness::of_nginx(Status::OK, fields, &validity, NOW);
    assert_eq!(stored.age(NOW), 0);
    assert!(stored.is_fresh(NOW + 60) && !stored.is_fresh(NOW + 61));
    let past = NginxValidity {
        valid_until: NOW - 1,
        ..validity
    };
    assert!(!Freshness::of_nginx(Status::OK, fields, &past, NOW).is_fresh(NOW));
}

#[test]
fn single_directives_may_have_no_effect() {
    let check = |control: &str, directives: IgnoredDirectives, expected| {
        let ignored = IgnoredFields {
            directives,
            ..NONE_IGNORED
        };
        let fields = [(&b"Cache-Control"[..], control.as_bytes())];
        let found = nginx_validity(Status::OK, fields, ignored, &[], NOW);
        let found = found.map(|validity| validity.valid_until - NOW);
        assert_eq!(found, expected, "{control}");
    };
    let none = IgnoredDirectives::default();
    let all = IgnoredDirectives {
        no_cache: true,
        no_store: true,
        private: true,
        max_age: true,
        s_maxage: true,
    };
    let no_store = IgnoredDirectives {
        no_store: true,
        ..none
    };
    let s_maxage = IgnoredDirectives {
        s_maxage: true,
        ..none
    };
    check("no-store, max-age=9", none, Err(NoStore));
    check("no-store, max-age=9", no_store, Ok(9));
    check("no-store, no-cache, max-age=9", no_store, Err(NoCache));
    check("s-maxage=5, max-age=9", none, Ok(5));
    check("s-maxage=5, max-age=9", s_maxage, Ok(9));
    check("private, no-cache, no-store", all, Err(NoLifetime));
    check("s-maxage=5, max-age=9", all, Err(NoLifetime));
}
