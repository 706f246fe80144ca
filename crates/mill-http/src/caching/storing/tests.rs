//! What may be stored: a table for each clause of RFC 9111 3.

use super::*;
use crate::caching::freshness::{ExchangeTimes, LifetimeRules};
use alloc::vec::Vec;

const PLAIN: StoringRules = StoringRules {
    stores_parts: false,
    uses_stale: false,
    ignores_request_directives: false,
};
const MODIFIED: (&str, &str) = ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT");

struct Case<'a> {
    method: Method,
    request: &'a [(&'a str, &'a str)],
    status: u16,
    response: &'a [(&'a str, &'a str)],
    is_single_range: bool,
    rules: StoringRules,
}

const GET: Case<'_> = Case {
    method: Method::Get,
    request: &[],
    status: 200,
    response: &[],
    is_single_range: false,
    rules: PLAIN,
};

fn check(case: &Case<'_>, expected: Result<(), WhyNotStored>) {
    let request_lines = case
        .request
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let response_lines = case
        .response
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let asked = RequestDirectives::of_fields(request_lines);
    let directives = ResponseDirectives::of_fields(response_lines.clone());
    let freshness = Freshness::of_response(
        Status(case.status),
        response_lines.clone(),
        &directives,
        ExchangeTimes {
            request: 1_700_000_000,
            response: 1_700_000_000,
        },
        LifetimeRules::default(),
    );
    let vary = Vary::of_fields(response_lines);
    let request = RequestFacts {
        method: case.method,
        directives: &asked,
        has_authorization: case
            .request
            .iter()
            .any(|(name, _)| *name == "Authorization"),
    };
    let response = ResponseFacts {
        directives: &directives,
        freshness: &freshness,
        vary: &vary,
        is_single_range: case.is_single_range,
    };
    let found = may_store(&request, &response, case.rules);
    assert_eq!(
        found, expected,
        "{:?} {} {:?} {:?}",
        case.method, case.status, case.request, case.response
    );
}

#[test]
fn methods_that_the_cache_understands() {
    let response: &[_] = &[("Cache-Control", "max-age=5, public")];
    for method in [Method::Get, Method::Head] {
        check(
            &Case {
                method,
                response,
                ..GET
            },
            Ok(()),
        );
    }
    for method in [
        Method::Post,
        Method::Put,
        Method::Delete,
        Method::Options,
        Method::PropFind,
        Method::Other,
    ] {
        check(
            &Case {
                method,
                response,
                ..GET
            },
            Err(WhyNotStored::Method),
        );
    }
}

#[test]
fn statuses_are_final_and_understood_where_that_is_asked() {
    let fresh: &[_] = &[("Cache-Control", "max-age=5")];
    for status in [200, 203, 204, 301, 302, 307, 404, 410, 418, 500, 503, 599] {
        check(
            &Case {
                status,
                response: fresh,
                ..GET
            },
            Ok(()),
        );
    }
    for status in [100, 103, 199, 304] {
        check(
            &Case {
                status,
                response: fresh,
                ..GET
            },
            Err(WhyNotStored::Status),
        );
    }
    let understood: &[_] = &[("Cache-Control", "max-age=5, must-understand")];
    check(
        &Case {
            response: understood,
            ..GET
        },
        Ok(()),
    );
    check(
        &Case {
            status: 418,
            response: understood,
            ..GET
        },
        Err(WhyNotStored::Status),
    );
    let both: &[_] = &[("Cache-Control", "max-age=5, must-understand, no-store")];
    check(
        &Case {
            response: both,
            ..GET
        },
        Ok(()),
    );
    check(
        &Case {
            status: 599,
            response: both,
            ..GET
        },
        Err(WhyNotStored::Status),
    );
}

#[test]
fn directives_that_forbid() {
    let of = |value: &'static str, expected: Result<(), WhyNotStored>| {
        let response: &[_] = &[("Cache-Control", value), MODIFIED];
        check(&Case { response, ..GET }, expected);
    };
    of("max-age=5", Ok(()));
    of("max-age=5, no-store", Err(WhyNotStored::NoStore));
    of("max-age=5, private", Err(WhyNotStored::Private));
    of("max-age=5, private=", Err(WhyNotStored::Private));
    of("max-age=5, private=\"set-cookie\"", Ok(()));
    of("no-cache", Ok(()));
    of("x=\"private\", max-age=5", Ok(()));
    of("x=\"private, max-age=5", Err(WhyNotStored::Private));
    let request: &[_] = &[("Cache-Control", "no-store")];
    check(
        &Case {
            request,
            response: &[MODIFIED],
            ..GET
        },
        Err(WhyNotStored::RequestNoStore),
    );
    let rules = StoringRules {
        ignores_request_directives: true,
        ..PLAIN
    };
    check(
        &Case {
            request,
            rules,
            response: &[MODIFIED],
            ..GET
        },
        Ok(()),
    );
    check(
        &Case {
            request: &[("Cache-Control", "no-cache")],
            response: &[MODIFIED],
            ..GET
        },
        Ok(()),
    );
}

#[test]
fn authorised_requests_need_an_explicit_leave() {
    let request: &[_] = &[("Authorization", "Basic eDp5")];
    for (value, is_allowed) in [
        ("max-age=5", false),
        ("max-age=5, proxy-revalidate", false),
        ("max-age=5, must-revalidate", true),
        ("max-age=5, public", true),
        ("s-maxage=5", true),
        ("s-maxage=5, private", false),
    ] {
        let response: &[_] = &[("Cache-Control", value)];
        let why = if value.contains("private") {
            WhyNotStored::Private
        } else {
            WhyNotStored::Authorization
        };
        check(
            &Case {
                request,
                response,
                ..GET
            },
            if is_allowed { Ok(()) } else { Err(why) },
        );
    }
}

#[test]
fn something_must_say_that_it_may_be_stored() {
    let stored = |status, response: &[(&'static str, &'static str)], expected| {
        check(
            &Case {
                status,
                response,
                ..GET
            },
            expected,
        );
    };
    stored(200, &[MODIFIED], Ok(()));
    stored(302, &[MODIFIED], Err(WhyNotStored::NotCacheable));
    stored(302, &[MODIFIED, ("Cache-Control", "public")], Ok(()));
    stored(302, &[("Expires", "Fri, 31 Dec 2100 00:00:00 GMT")], Ok(()));
    stored(500, &[], Err(WhyNotStored::NotCacheable));
    stored(500, &[("Cache-Control", "s-maxage=5")], Ok(()));
}

#[test]
fn what_can_never_be_used_is_not_stored() {
    let useless = Err(WhyNotStored::Useless);
    let etag = ("ETag", "\"a\"");
    let control = |value: &'static str, expected| {
        check(
            &Case {
                response: &[("Cache-Control", value)],
                ..GET
            },
            expected,
        )
    };
    check(&GET, useless);
    check(
        &Case {
            response: &[etag],
            ..GET
        },
        Ok(()),
    );
    control("max-age=0", useless);
    control("no-cache, max-age=5", useless);
    control("max-age=0, stale-while-revalidate=5", Ok(()));
    control("max-age=0, stale-if-error=5", Ok(()));
    control("max-age=0, stale-if-error=5, must-revalidate", useless);
    control("no-cache, max-age=5, stale-if-error=5", useless);
    let rules = StoringRules {
        uses_stale: true,
        ..PLAIN
    };
    check(&Case { rules, ..GET }, Ok(()));
    check(
        &Case {
            response: &[("Expires", "0"), etag],
            ..GET
        },
        Ok(()),
    );
}

#[test]
fn vary_and_parts() {
    let control = ("Cache-Control", "max-age=5");
    check(
        &Case {
            response: &[control, ("Vary", "*")],
            ..GET
        },
        Err(WhyNotStored::Vary),
    );
    check(
        &Case {
            response: &[control, ("Vary", "a")],
            ..GET
        },
        Ok(()),
    );
    let part = |is_single_range, stores_parts, expected| {
        let rules = StoringRules {
            stores_parts,
            ..PLAIN
        };
        check(
            &Case {
                status: 206,
                response: &[control],
                is_single_range,
                rules,
                ..GET
            },
            expected,
        );
    };
    part(true, true, Ok(()));
    part(false, true, Err(WhyNotStored::Partial));
    part(true, false, Err(WhyNotStored::Partial));
}

#[test]
fn every_reason_has_a_word_of_its_own() {
    use WhyNotStored::{
        Authorization, Expired, InvalidSeconds, Method, NoCache, NoLifetime, NoStore, NotCacheable,
        Partial, Private, RequestNoStore, SetCookie, Status, Useless, Vary,
    };
    let all = [
        Method,
        Status,
        NoStore,
        RequestNoStore,
        Private,
        Authorization,
        Vary,
        Partial,
        NotCacheable,
        Useless,
        SetCookie,
        NoCache,
        Expired,
        InvalidSeconds,
        NoLifetime,
    ];
    let mut words: Vec<_> = all.map(WhyNotStored::word).into();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), all.len());
    assert!(
        words
            .iter()
            .all(|word| word.bytes().all(crate::field::is_token_byte))
    );
}
