//! Directives of responses: each alone, repeated, malformed, and any bytes.

use super::*;
use alloc::format;
use alloc::string::String;

fn of(value: &str) -> ResponseDirectives {
    ResponseDirectives::of_fields([(b"Cache-Control".as_slice(), value.as_bytes())])
}

fn boxed(names: &[&str]) -> Vec<Box<[u8]>> {
    names
        .iter()
        .map(|name| Box::from(name.as_bytes()))
        .collect()
}

/// Changes the default by `change` and compares.
fn check(value: &str, change: impl FnOnce(&mut ResponseDirectives)) {
    let mut expected = ResponseDirectives::default();
    change(&mut expected);
    assert_eq!(of(value), expected, "{value}");
}

#[test]
fn directives_without_arguments_are_there_in_any_case_and_with_any_argument() {
    for text in [
        "no-store",
        "NO-Store",
        "no-store=1",
        "no-store=\"x\"",
        "no-store=",
        "no-store; x",
        "x, no-store ,",
    ] {
        check(text, |one| one.no_store = true);
    }
    check("public", |one| one.public = true);
    check("must-revalidate", |one| one.must_revalidate = true);
    check("proxy-revalidate", |one| one.proxy_revalidate = true);
    check("must-understand", |one| one.must_understand = true);
    check("no-transform", |one| one.no_transform = true);
    check("immutable", |one| one.immutable = true);
    check("no-cache", |one| one.no_cache = true);
    check("private", |one| one.private = true);
    for text in [
        "",
        "no-storex",
        "xno-store",
        "x=\"no-store, private\"",
        "only-if-cached",
        "x=no-store",
    ] {
        check(text, |_| ());
    }
}

#[test]
fn field_names_qualify_and_what_is_no_name_does_not() {
    check("no-cache=\"Set-Cookie\"", |one| {
        one.no_cache_fields = boxed(&["set-cookie"])
    });
    check("no-cache=Set-Cookie", |one| {
        one.no_cache_fields = boxed(&["set-cookie"])
    });
    check("private=\"a, B ,,c\"", |one| {
        one.private_fields = boxed(&["a", "b", "c"])
    });
    check("private=\"a\", private=\"b\"", |one| {
        one.private_fields = boxed(&["a", "b"])
    });
    for text in [
        "private=\"\"",
        "private=\" , \"",
        "private=",
        "private=\"\\a\"",
        "private =x",
    ] {
        check(text, |one| one.private = true);
    }
    check("private=\"a b\"", |one| one.private = true);
    check("private=\"a, b c\"", |one| {
        one.private = true;
        one.private_fields = boxed(&["a"]);
    });
    check("no-cache, no-cache=\"a\"", |one| {
        one.no_cache = true;
        one.no_cache_fields = boxed(&["a"]);
    });
    check("no-cache=\"a, max-age=5", |one| {
        one.no_cache = true;
        one.max_age = Some(5);
    });
}

#[test]
fn too_many_field_names_concern_the_whole_response() {
    for (count, is_whole) in [(FIELD_NAMES_MAX, false), (FIELD_NAMES_MAX + 1, true)] {
        let names: Vec<String> = (0..count).map(|index| format!("f{index}")).collect();
        let found = of(&format!("private=\"{}\"", names.join(",")));
        assert_eq!(found.private, is_whole, "{count}");
        assert_eq!(found.private_fields.len(), FIELD_NAMES_MAX);
    }
}

#[test]
fn the_first_lifetime_counts_and_an_invalid_one_is_none() {
    for (argument, expected) in [
        ("=60", 60),
        ("=\"60\"", 60),
        ("=060", 60),
        ("=0", 0),
        ("=99999999999999", 1 << 31),
        ("", 0),
        ("=", 0),
        ("=x", 0),
        ("=-60", 0),
        ("=60.5", 0),
        ("=60s", 0),
        ("=6 0", 0),
        ("= 60", 0),
        (" =60", 0),
        ("=60;", 0),
        ("='60'", 0),
        ("=\"60", 0),
    ] {
        check(&format!("max-age{argument}"), |one| {
            one.max_age = Some(expected)
        });
        check(&format!("S-MaxAge{argument}"), |one| {
            one.s_maxage = Some(expected)
        });
    }
    check("max-age=5, max-age=60", |one| one.max_age = Some(5));
    check("max-age=60, max-age=5", |one| one.max_age = Some(60));
    check("max-age=60, max-age=x", |one| one.max_age = Some(0));
    check("max-age=x, max-age=60", |one| one.max_age = Some(0));
    check("x=\"max-age=60\", max-age=5", |one| one.max_age = Some(5));
}

#[test]
fn the_smallest_leave_to_be_stale_counts() {
    for (argument, expected) in [("=60", 60), ("=x", 0), ("", 0), ("=\"7\"", 7)] {
        check(&format!("stale-while-revalidate{argument}"), |one| {
            one.stale_while_revalidate = Some(expected);
        });
        check(&format!("stale-if-error{argument}"), |one| {
            one.stale_if_error = Some(expected)
        });
    }
    check("stale-if-error=9, stale-if-error=5", |one| {
        one.stale_if_error = Some(5)
    });
    check("stale-if-error=5, stale-if-error=9", |one| {
        one.stale_if_error = Some(5)
    });
}

#[test]
fn lines_are_one_list_and_a_quote_ends_with_its_line() {
    let lines: [(&[u8], &[u8]); 4] = [
        (b"cache-control", b"max-age=5, x=\"y"),
        (b"Expires", b"0"),
        (b"CACHE-CONTROL", b"private, z=\""),
        (b"CDN-Cache-Control", b"no-store"),
    ];
    let found = ResponseDirectives::of_fields(lines);
    assert!(found.private && !found.no_store);
    assert_eq!(found.max_age, Some(5));
}

#[test]
fn any_bytes_are_read_without_panic_and_prefixes_never_hide_no_store() {
    let alphabet = b"no-store,max-age=05\"\\ \t;=private\x00\xff";
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..20_000 {
        let mut value = Vec::new();
        for _ in 0..state % 24 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let index = usize::try_from(state >> 33).unwrap() % alphabet.len();
            value.push(alphabet[index]);
        }
        state = state.wrapping_add(1).rotate_left(7);
        let found =
            ResponseDirectives::of_fields([(b"cache-control".as_slice(), value.as_slice())]);
        assert!(found.max_age.is_none_or(|seconds| seconds <= 1 << 31));
        // After a closed list element, the directive is seen, whatever came before it in another line.
        let lines = [
            (b"cache-control".as_slice(), value.as_slice()),
            (b"cache-control", b"no-store"),
        ];
        assert!(ResponseDirectives::of_fields(lines).no_store);
    }
}
