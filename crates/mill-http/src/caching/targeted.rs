//! Directives for caches of one kind: RFC 9213, `CDN-Cache-Control` and its like.

use alloc::vec::Vec;

use super::directive::{Argument, Directive};
use super::response_directives::ResponseDirectives;
use super::structured::{Item, parse_dictionary};

/// The directives that count for a cache whose target list is `targets` (names of fields, the first first): those of
/// the first field that is there, is well-formed and is not empty (RFC 9213 2.2); otherwise those of `Cache-Control`.
///
/// Parameters are ignored. `?0` is as if the directive were not there. A value of another type than the directive has
/// is an invalid argument, as in `Cache-Control`.
pub fn targeted_directives<'a, Fields>(fields: Fields, targets: &[&[u8]]) -> ResponseDirectives
where
    Fields: Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
{
    let found = targets
        .iter()
        .find_map(|target| of_target(fields.clone(), target));
    found.unwrap_or_else(|| ResponseDirectives::of_fields(fields))
}

fn of_target<'a>(
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    target: &[u8],
) -> Option<ResponseDirectives> {
    let lines = fields.filter(|(name, _)| name.eq_ignore_ascii_case(target));
    let lines: Vec<&[u8]> = lines.map(|(_, value)| value).collect();
    let value = lines.join(b", ".as_slice());
    let members = parse_dictionary(&value).filter(|members| !members.is_empty())?;
    let mut directives = ResponseDirectives {
        is_targeted: true,
        ..ResponseDirectives::default()
    };
    for (name, item) in members {
        let argument = match item {
            Item::Boolean(false) => continue,
            Item::Boolean(true) => Argument::None,
            Item::Word(text) => Argument::Token(text),
            Item::Text(text) => Argument::Quoted(text),
            Item::Other => Argument::Invalid,
        };
        directives.apply(Directive { name, argument });
    }
    Some(directives)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGETS: [&[u8]; 2] = [b"millstream-cache-control", b"cdn-cache-control"];

    /// Lifetime, `no-store`, `private`, and whether a targeted field says so.
    type Found = (Option<u32>, bool, bool, bool);

    fn check(lines: &[(&str, &str)], expected: Found) {
        let fields = lines
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let found = targeted_directives(fields, &TARGETS);
        let found = (
            found.max_age,
            found.no_store,
            found.private,
            found.is_targeted,
        );
        assert_eq!(found, expected, "{lines:?}");
    }

    #[test]
    fn the_first_target_that_is_there_counts_alone() {
        let all = ("Cache-Control", "no-store");
        let cdn = ("CDN-Cache-Control", "max-age=60");
        let own = ("Millstream-Cache-Control", "private");
        check(&[], (None, false, false, false));
        check(&[all], (None, true, false, false));
        check(&[all, cdn], (Some(60), false, false, true));
        check(&[cdn, all, own], (None, false, true, true));
        check(
            &[cdn, ("CDN-Cache-Control", "no-store")],
            (Some(60), true, false, true),
        );
        check(
            &[("Other-Cache-Control", "max-age=60"), all],
            (None, true, false, false),
        );
    }

    #[test]
    fn what_is_empty_or_malformed_is_passed_over() {
        let all = ("Cache-Control", "no-store");
        for value in [
            "",
            " ",
            "max-age=60,",
            "Max-Age=60",
            "max-age=60; ",
            "a=\"x",
            "max-age 60",
            "max-age='60'",
        ] {
            check(
                &[("CDN-Cache-Control", value), all],
                (None, true, false, false),
            );
        }
        let own = ("Millstream-Cache-Control", "max-age=");
        check(
            &[own, ("CDN-Cache-Control", "max-age=5")],
            (Some(5), false, false, true),
        );
    }

    #[test]
    fn values_have_the_types_of_their_directives() {
        let one = |value: &str, expected: Found| check(&[("CDN-Cache-Control", value)], expected);
        one(
            "max-age=60;x=1, no-store=?0",
            (Some(60), false, false, true),
        );
        one("max-age=60, max-age=30", (Some(30), false, false, true));
        one("max-age=\"60\"", (Some(60), false, false, true));
        for value in [
            "max-age",
            "max-age=-1",
            "max-age=1.5",
            "max-age=x",
            "max-age=(60)",
        ] {
            one(value, (Some(0), false, false, true));
        }
        one(
            "max-age=999999999999999",
            (Some(1 << 31), false, false, true),
        );
        one("private=\"set-cookie\"", (None, false, false, true));
        one("private=(\"set-cookie\")", (None, false, true, true));
        one("unknown", (None, false, false, true));
    }
}
