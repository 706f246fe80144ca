//! What must hold of any fields that a cache reads. Each line of the input is a name, a colon and a value. Used by the
//! fuzz target and by the ordinary test that replays the corpus.

use mill_http::caching::directive::{DELTA_SECONDS_MAX, Directives};
use mill_http::caching::freshness::{ExchangeTimes, Freshness, LifetimeRules};
use mill_http::caching::nginx_validity::{ConfiguredValidity, IgnoredFields, nginx_validity};
use mill_http::caching::partial::parse_content_range;
use mill_http::caching::request_directives::RequestDirectives;
use mill_http::caching::response_directives::{FIELD_NAMES_MAX, ResponseDirectives};
use mill_http::caching::tags::{TAG_BYTES_MAX, TAGS_MAX, Tags};
use mill_http::caching::targeted::targeted_directives;
use mill_http::caching::uri_reference::{BaseUri, resolve_in_origin};
use mill_http::caching::vary::Vary;
use mill_http::field::is_token_byte;
use mill_http::status::Status;

const NOW: i64 = 1_700_000_000;
const BASE: BaseUri<'_> = BaseUri {
    scheme: b"http",
    authority: b"a",
    path: b"/b/c",
    query: Some(b"q"),
};

type Line<'a> = (&'a [u8], &'a [u8]);

/// Panics if a parser breaks a promise on `input`.
pub(crate) fn check(input: &[u8]) {
    let lines: Vec<Line<'_>> = input.split(|byte| *byte == b'\n').map(line).collect();
    for (_, value) in &lines {
        assert!(Directives::of(value).all(|one| one.name.iter().all(|byte| is_token_byte(*byte))));
        assert!(Directives::of(value).count() <= value.len());
        if let Some(found) = parse_content_range(value) {
            assert!(found.range.start < found.range.end);
        }
        if let Some(path) = resolve_in_origin(&BASE, value) {
            assert!(path.starts_with(b"/") && !path.contains(&b'#'));
        }
    }
    directives(&lines);
    let vary = Vary::of_fields(lines.iter().copied());
    let mut key = Vec::new();
    if vary.emit_key(lines.iter().copied(), &mut key) {
        assert!(vary.matches(&key, lines.iter().copied()));
    }
    for tags in [
        Tags::of_response(lines.iter().copied()),
        Tags::invalidated(lines.iter().copied()),
    ] {
        assert!(tags.tags.len() <= TAGS_MAX);
        assert!(
            tags.tags
                .iter()
                .all(|tag| (1..=TAG_BYTES_MAX).contains(&tag.len()))
        );
    }
}

fn line(text: &[u8]) -> Line<'_> {
    let end = text.iter().position(|byte| *byte == b':').unwrap_or(0);
    (&text[..end], text.get(end + 1..).unwrap_or_default())
}

/// Directives, and what follows from them; another line that forbids is never hidden by those before it.
fn directives(lines: &[Line<'_>]) {
    let asked = RequestDirectives::of_fields(lines.iter().copied());
    assert!(
        asked
            .max_age
            .is_none_or(|seconds| seconds <= DELTA_SECONDS_MAX)
    );
    let targets: [&[u8]; 1] = [b"cdn-cache-control"];
    let targeted = targeted_directives(lines.iter().copied(), &targets);
    let plain = ResponseDirectives::of_fields(lines.iter().copied());
    assert!(targeted.is_targeted || targeted == plain);
    for found in [&targeted, &plain] {
        assert!(found.private_fields.len() <= FIELD_NAMES_MAX);
        let times = ExchangeTimes {
            request: NOW,
            response: NOW,
        };
        let rules = LifetimeRules::default();
        let fresh = Freshness::of_response(Status::OK, lines.iter().copied(), found, times, rules);
        assert!(fresh.lifetime <= DELTA_SECONDS_MAX && fresh.initial_age <= DELTA_SECONDS_MAX);
        assert_eq!(
            fresh.is_fresh(NOW),
            fresh.age(NOW) < u64::from(fresh.lifetime)
        );
    }
    let mut more = lines.to_vec();
    more.push((b"cache-control", b"no-store, private"));
    let forbidden = ResponseDirectives::of_fields(more.iter().copied());
    assert!(forbidden.no_store && forbidden.private);
    let any = [ConfiguredValidity {
        status: None,
        seconds: 1,
    }];
    let ignored = IgnoredFields::default();
    if let Ok(found) = nginx_validity(Status::OK, lines.iter().copied(), ignored, &any, NOW) {
        let stored = Freshness::of_nginx(Status::OK, lines.iter().copied(), &found, NOW);
        assert_eq!(stored.is_fresh(NOW), found.valid_until >= NOW);
    }
}
