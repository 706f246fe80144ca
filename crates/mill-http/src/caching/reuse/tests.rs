//! Uses of stored responses, over both sides of each boundary.

use super::*;
use crate::caching::freshness::{ExchangeTimes, LifetimeRules};
use crate::caching::response_directives::ResponseDirectives;
use crate::status::Status;

const NOW: i64 = 1_700_000_000;
const PLAIN: ReuseRules = ReuseRules {
    ignores_request_directives: false,
    ignores_must_revalidate: false,
    uses_stale_while_revalidating: false,
    uses_stale_on_error: false,
};

/// A response with these directives, stored now; a request with these, `after` seconds later.
fn decide(stored: &str, request: &str, after: i64, rules: ReuseRules) -> Reuse {
    let lines = [(b"Cache-Control".as_slice(), stored.as_bytes())];
    let directives = ResponseDirectives::of_fields(lines);
    let times = ExchangeTimes {
        request: NOW,
        response: NOW,
    };
    let stored = Freshness::of_response(
        Status::OK,
        lines,
        &directives,
        times,
        LifetimeRules::default(),
    );
    let asked = RequestDirectives::of_fields([(b"Cache-Control".as_slice(), request.as_bytes())]);
    may_reuse(&stored, &asked, NOW + after, rules)
}

/// `fresh`, `stale` and what it may: now, while revalidating, on error; or the reason of a validation.
fn summary(reuse: Reuse) -> &'static str {
    match reuse {
        Reuse::Fresh { .. } => "fresh",
        Reuse::Validate { reason, .. } => reason.word(),
        Reuse::Unavailable => "504",
        Reuse::Stale(one) => match (
            one.may_serve,
            one.may_serve_while_revalidating,
            one.may_serve_on_error,
            one.must_validate,
        ) {
            (true, false, true, false) => "now, error",
            (true, true, true, false) => "now, while, error",
            (false, true, true, false) => "while, error",
            (false, false, true, true) => "error",
            (false, false, false, true) => "never",
            _ => "contradiction",
        },
    }
}

fn check(stored: &str, request: &str, after: i64, expected: &str) {
    assert_eq!(
        summary(decide(stored, request, after, PLAIN)),
        expected,
        "{stored:?} {request:?} {after}"
    );
}

#[test]
fn a_response_is_fresh_until_its_age_is_its_lifetime() {
    assert_eq!(
        decide("max-age=60", "", 0, PLAIN),
        Reuse::Fresh { age: 0, ttl: 60 }
    );
    assert_eq!(
        decide("max-age=60", "", 59, PLAIN),
        Reuse::Fresh { age: 59, ttl: 1 }
    );
    let expected = StaleReuse {
        age: 60,
        stale_by: 0,
        may_serve: false,
        may_serve_while_revalidating: false,
        may_serve_on_error: false,
        must_validate: true,
    };
    assert_eq!(decide("max-age=60", "", 60, PLAIN), Reuse::Stale(expected));
    check("max-age=0", "", 0, "never");
    check("no-cache, max-age=60", "", 0, "stale");
    check("no-cache=\"x\", max-age=60", "", 0, "fresh");
}

#[test]
fn a_request_may_ask_for_less_age_and_more_freshness() {
    for (request, after, expected) in [
        ("no-cache", 0, "request"),
        ("no-store", 5, "fresh"),
        ("max-age=5", 5, "fresh"),
        ("max-age=5", 6, "request"),
        ("max-age=0", 0, "fresh"),
        ("max-age=0", 1, "request"),
        ("max-age=x", 1, "request"),
        ("min-fresh=10", 50, "fresh"),
        ("min-fresh=10", 51, "request"),
        ("min-fresh=60", 0, "fresh"),
        ("min-fresh=61", 0, "request"),
        ("min-fresh=x", 59, "fresh"),
        ("max-stale", 5, "fresh"),
        ("only-if-cached", 5, "fresh"),
        ("no-cache", 60, "stale"),
        ("max-age=5", 60, "stale"),
        ("min-fresh=1", 60, "stale"),
        ("min-fresh=0", 60, "never"),
    ] {
        check("max-age=60", request, after, expected);
    }
}

#[test]
fn max_stale_is_accepted_unless_the_response_forbids_it() {
    for (stored, request, after, expected) in [
        ("max-age=60", "max-stale", 1000, "now, error"),
        ("max-age=60", "max-stale=10", 70, "now, error"),
        ("max-age=60", "max-stale=10", 71, "never"),
        ("max-age=60", "max-stale=0", 60, "now, error"),
        ("max-age=60", "max-stale=10, max-age=65", 65, "now, error"),
        ("max-age=60", "max-stale=10, max-age=65", 66, "stale"),
        ("max-age=60", "max-stale, min-fresh=1", 66, "stale"),
        ("max-age=60", "max-stale, no-cache", 66, "stale"),
        ("max-age=60, must-revalidate", "max-stale", 60, "never"),
        ("max-age=60, proxy-revalidate", "max-stale", 60, "never"),
        ("s-maxage=60", "max-stale", 60, "never"),
        ("max-age=60, no-cache", "max-stale", 60, "stale"),
    ] {
        check(stored, request, after, expected);
    }
}

#[test]
fn stale_while_revalidate_and_stale_if_error_end() {
    for (stored, request, after, expected) in [
        ("max-age=60, stale-while-revalidate=10", "", 59, "fresh"),
        (
            "max-age=60, stale-while-revalidate=10",
            "",
            60,
            "while, error",
        ),
        (
            "max-age=60, stale-while-revalidate=10",
            "",
            69,
            "while, error",
        ),
        ("max-age=60, stale-while-revalidate=10", "", 70, "never"),
        ("max-age=60, stale-if-error=10", "", 69, "error"),
        ("max-age=60, stale-if-error=10", "", 70, "never"),
        ("max-age=60, stale-if-error=0", "", 60, "never"),
        (
            "s-maxage=60, stale-while-revalidate=10",
            "",
            65,
            "while, error",
        ),
        ("s-maxage=60, stale-if-error=10", "", 65, "error"),
        (
            "max-age=60, stale-while-revalidate=10, must-revalidate",
            "",
            65,
            "never",
        ),
        (
            "max-age=60, stale-if-error=10, proxy-revalidate",
            "",
            65,
            "never",
        ),
        (
            "max-age=60, stale-while-revalidate=10",
            "max-stale",
            65,
            "now, while, error",
        ),
        (
            "max-age=60, stale-while-revalidate=10",
            "no-cache",
            65,
            "stale",
        ),
        ("max-age=60", "stale-if-error=10", 69, "error"),
        ("max-age=60", "stale-if-error=10", 70, "never"),
        ("s-maxage=60", "stale-if-error=10", 65, "never"),
        (
            "max-age=60, must-revalidate",
            "stale-if-error=10",
            65,
            "never",
        ),
    ] {
        check(stored, request, after, expected);
    }
}

#[test]
fn only_if_cached_answers_from_the_cache_or_not_at_all() {
    for (stored, request, after, expected) in [
        ("max-age=60", "only-if-cached", 0, "fresh"),
        ("max-age=60", "only-if-cached", 60, "504"),
        ("max-age=60", "only-if-cached, no-cache", 0, "504"),
        ("max-age=60", "only-if-cached, max-stale", 60, "now, error"),
        ("max-age=60, stale-if-error=10", "only-if-cached", 60, "504"),
        (
            "max-age=60, stale-while-revalidate=10",
            "only-if-cached",
            60,
            "while, error",
        ),
        ("no-cache", "only-if-cached", 0, "504"),
    ] {
        check(stored, request, after, expected);
    }
}

#[test]
fn the_configuration_may_leave_request_and_must_revalidate_aside() {
    let check = |rules: ReuseRules, stored: &str, request: &str, after: i64, expected: &str| {
        assert_eq!(
            summary(decide(stored, request, after, rules)),
            expected,
            "{rules:?} {stored}"
        );
    };
    let deaf = ReuseRules {
        ignores_request_directives: true,
        ..PLAIN
    };
    check(deaf, "max-age=60", "no-cache, only-if-cached", 0, "fresh");
    check(deaf, "max-age=60", "max-stale, only-if-cached", 60, "never");
    let error = ReuseRules {
        uses_stale_on_error: true,
        ..PLAIN
    };
    check(error, "max-age=60", "", 1_000_000, "error");
    check(error, "max-age=60, must-revalidate", "", 60, "never");
    check(error, "s-maxage=60", "", 60, "never");
    let updating = ReuseRules {
        uses_stale_while_revalidating: true,
        ..PLAIN
    };
    check(updating, "max-age=60", "", 1_000_000, "while, error");
    check(updating, "max-age=60, proxy-revalidate", "", 60, "never");
    let nginx = ReuseRules {
        ignores_must_revalidate: true,
        ..error
    };
    check(nginx, "max-age=60, must-revalidate", "", 60, "error");
    check(nginx, "s-maxage=60", "", 60, "error");
    check(nginx, "max-age=60, no-cache", "", 0, "fresh");
}
