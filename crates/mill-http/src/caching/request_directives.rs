//! What a request asks of caches: its `Cache-Control` and `Pragma`, RFC 9111 5.2.1 and 5.4.

use super::directive::{Argument, Directive, Directives};

/// The cache directives of a request. Where one is repeated, the most restrictive counts. One with an invalid
/// argument is as if it were not there, but for `max-age`, which then is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// RFC 9111 5.2.1.4, and `Pragma: no-cache` of a request without `Cache-Control` (5.4).
    pub no_cache: bool,
    /// RFC 9111 5.2.1.5
    pub no_store: bool,
    /// RFC 9111 5.2.1.6
    pub no_transform: bool,
    /// RFC 9111 5.2.1.7
    pub only_if_cached: bool,
    /// Seconds, RFC 9111 5.2.1.1.
    pub max_age: Option<u32>,
    /// Seconds, RFC 9111 5.2.1.3.
    pub min_fresh: Option<u32>,
    /// RFC 9111 5.2.1.2
    pub max_stale: Option<MaxStale>,
    /// Seconds, RFC 5861 4.
    pub stale_if_error: Option<u32>,
}

/// How stale an answer may be that the client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxStale {
    /// `max-stale` without a value.
    Any,
    Seconds(u32),
}

impl MaxStale {
    /// An answer that has been stale for `stale_by` seconds is accepted.
    pub fn accepts(self, stale_by: u64) -> bool {
        match self {
            Self::Any => true,
            Self::Seconds(seconds) => stale_by <= u64::from(seconds),
        }
    }
}

impl RequestDirectives {
    /// Gathers the directives of a request's field lines.
    pub fn of_fields<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let mut found = Self::default();
        let mut has_cache_control = false;
        let mut pragma_no_cache = false;
        for (name, value) in fields {
            if name.eq_ignore_ascii_case(b"cache-control") {
                has_cache_control = true;
                Directives::of(value).for_each(|directive| found.apply(directive));
            } else if name.eq_ignore_ascii_case(b"pragma") {
                pragma_no_cache |= Directives::of(value).any(|directive| directive.is("no-cache"));
            }
        }
        found.no_cache |= pragma_no_cache && !has_cache_control;
        found
    }

    fn apply(&mut self, directive: Directive<'_>) {
        let seconds = directive.argument.seconds();
        if directive.is("no-cache") {
            self.no_cache = true;
        } else if directive.is("no-store") {
            self.no_store = true;
        } else if directive.is("no-transform") {
            self.no_transform = true;
        } else if directive.is("only-if-cached") {
            self.only_if_cached = true;
        } else if directive.is("max-age") {
            self.max_age = smaller(self.max_age, Some(seconds.unwrap_or(0)));
        } else if directive.is("min-fresh") {
            self.min_fresh = self.min_fresh.max(seconds);
        } else if directive.is("max-stale") {
            self.apply_max_stale(directive);
        } else if directive.is("stale-if-error") {
            self.stale_if_error = smaller(self.stale_if_error, seconds);
        }
    }

    fn apply_max_stale(&mut self, directive: Directive<'_>) {
        let asked = match directive.argument {
            Argument::None => Some(MaxStale::Any),
            argument => argument.seconds().map(MaxStale::Seconds),
        };
        self.max_stale = match (self.max_stale, asked) {
            (Some(MaxStale::Seconds(one)), Some(MaxStale::Seconds(other))) => {
                Some(MaxStale::Seconds(one.min(other)))
            }
            (known @ Some(MaxStale::Seconds(_)), _) | (known, None) => known,
            (_, asked) => asked,
        };
    }
}

fn smaller(known: Option<u32>, other: Option<u32>) -> Option<u32> {
    match (known, other) {
        (Some(known), Some(other)) => Some(known.min(other)),
        (known, other) => known.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[(&str, &str)]) -> RequestDirectives {
        let lines = lines.iter();
        RequestDirectives::of_fields(lines.map(|(name, value)| (name.as_bytes(), value.as_bytes())))
    }

    #[test]
    fn each_directive_of_a_request_is_read() {
        let check = |value: &str, expected: RequestDirectives| {
            assert_eq!(of(&[("Cache-Control", value)]), expected, "{value}");
        };
        let none = RequestDirectives::default();
        check("", none);
        check("x, public=1, s-maxage=5", none);
        check(
            "no-cache",
            RequestDirectives {
                no_cache: true,
                ..none
            },
        );
        check(
            "No-Cache",
            RequestDirectives {
                no_cache: true,
                ..none
            },
        );
        check(
            "no-cache=\"x\"",
            RequestDirectives {
                no_cache: true,
                ..none
            },
        );
        check(
            "no-store",
            RequestDirectives {
                no_store: true,
                ..none
            },
        );
        check(
            "no-transform",
            RequestDirectives {
                no_transform: true,
                ..none
            },
        );
        check(
            "only-if-cached",
            RequestDirectives {
                only_if_cached: true,
                ..none
            },
        );
        check("foo=\"no-store\"", none);
        check(
            "foo=\"no-store",
            RequestDirectives {
                no_store: true,
                ..none
            },
        );
        for (value, seconds) in [
            ("max-age=5", 5),
            ("MAX-AGE=\"5\"", 5),
            ("max-age=0", 0),
            ("max-age=7, max-age=5", 5),
            ("max-age=x", 0),
            ("max-age", 0),
            ("max-age=-1", 0),
            ("max-age=5, max-age=", 0),
        ] {
            check(
                value,
                RequestDirectives {
                    max_age: Some(seconds),
                    ..none
                },
            );
        }
        for (value, seconds) in [
            ("min-fresh=5", Some(5)),
            ("min-fresh=5, min-fresh=7", Some(7)),
            ("min-fresh=x", None),
            ("min-fresh", None),
        ] {
            check(
                value,
                RequestDirectives {
                    min_fresh: seconds,
                    ..none
                },
            );
        }
        for (value, expected) in [
            ("max-stale", Some(MaxStale::Any)),
            ("max-stale=5", Some(MaxStale::Seconds(5))),
            ("max-stale=7, max-stale=5", Some(MaxStale::Seconds(5))),
            ("max-stale, max-stale=5", Some(MaxStale::Seconds(5))),
            ("max-stale=5, max-stale", Some(MaxStale::Seconds(5))),
            ("max-stale, max-stale=x", Some(MaxStale::Any)),
            ("max-stale=x", None),
            ("max-stale=", None),
        ] {
            check(
                value,
                RequestDirectives {
                    max_stale: expected,
                    ..none
                },
            );
        }
        for (value, seconds) in [("stale-if-error=5", Some(5)), ("stale-if-error", None)] {
            check(
                value,
                RequestDirectives {
                    stale_if_error: seconds,
                    ..none
                },
            );
        }
    }

    #[test]
    fn lines_are_gathered_and_pragma_counts_without_cache_control_only() {
        let check = |lines: &[(&str, &str)], no_cache: bool, max_age: Option<u32>| {
            let found = of(lines);
            assert_eq!(
                (found.no_cache, found.max_age),
                (no_cache, max_age),
                "{lines:?}"
            );
        };
        check(&[], false, None);
        check(
            &[
                ("cache-control", "no-cache"),
                ("CACHE-CONTROL", "max-age=1"),
            ],
            true,
            Some(1),
        );
        check(&[("Pragma", "no-cache")], true, None);
        check(&[("Pragma", "x, No-Cache")], true, None);
        check(&[("Pragma", "x=\"no-cache\"")], false, None);
        check(
            &[("Pragma", "no-cache"), ("Cache-Control", "max-age=9")],
            false,
            Some(9),
        );
        check(
            &[("Pragma", "no-cache"), ("Cache-Control", "")],
            false,
            None,
        );
        check(
            &[("Cache-Control", "x"), ("Pragma", "no-cache")],
            false,
            None,
        );
        check(&[("X-Cache-Control", "no-cache")], false, None);
    }

    #[test]
    fn max_stale_accepts_up_to_its_seconds() {
        assert!(MaxStale::Any.accepts(u64::MAX));
        assert!(MaxStale::Seconds(5).accepts(5) && !MaxStale::Seconds(5).accepts(6));
    }
}
