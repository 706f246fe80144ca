//! The page: how many cases each program meets, by clause, and what it does in those that it does not.

use super::Done;
use mill_conformance::caching::Case;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How an outcome is to what is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Met,
    /// Something that is kept was used although it must not be.
    Used,
    /// The origin was asked although what is kept would do.
    Asked,
    Other,
}

impl Verdict {
    fn of(case: &Case, outcome: Option<&str>) -> Self {
        let expected = case.expected.outcome.as_str();
        let Some(outcome) = outcome else {
            return Self::Other;
        };
        let asks =
            |outcome: &str| outcome.starts_with("forwarded") || outcome.starts_with("validated");
        match (asks(expected), asks(outcome)) {
            _ if outcome == expected => Self::Met,
            (true, false) => Self::Used,
            (false, true) => Self::Asked,
            _ => Self::Other,
        }
    }
}

pub(super) fn page(cases: &[Case], done: &[Done]) -> String {
    let mut page = String::from(HEAD);
    for done in done {
        let _ = writeln!(page, "- {}: `{}`", done.kind.title(), done.version);
    }
    page += CONFIGURED;
    page += &summary(cases, done);
    page += "\n## By clause\n\nCases met of cases put.\n\n";
    page += &by_clause(cases, done);
    page += DIFFERENCES;
    page += &differences(cases, done);
    page
}

fn row(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<String> = cells.into_iter().collect();
    format!("| {} |\n", cells.join(" | "))
}

/// The head of a table: names of columns, then the programs.
fn head(names: &[&str], done: &[Done], ruler: &str) -> String {
    let own = names.iter().map(ToString::to_string);
    let titles = done.iter().map(|done| done.kind.title().to_owned());
    let rulers = names.iter().map(|_| String::from("---"));
    row(own.chain(titles)) + &row(rulers.chain(done.iter().map(|_| ruler.to_owned())))
}

fn verdicts<'a>(cases: &'a [Case], done: &'a Done) -> impl Iterator<Item = (&'a Case, Verdict)> {
    let pairs = cases.iter().zip(&done.outcomes);
    pairs.map(|(case, outcome)| (case, Verdict::of(case, outcome.as_deref())))
}

fn summary(cases: &[Case], done: &[Done]) -> String {
    let mut text = head(&[&format!("of {} cases", cases.len())], done, "--:");
    for (verdict, title) in [
        (Verdict::Met, "met"),
        (
            Verdict::Used,
            "what is kept was used although it must not be",
        ),
        (
            Verdict::Asked,
            "the origin was asked although what is kept would do",
        ),
        (Verdict::Other, "otherwise"),
    ] {
        let counts = done.iter().map(|done| {
            let own = verdicts(cases, done).filter(|(_, found)| *found == verdict);
            own.count().to_string()
        });
        text += &row([title.to_owned()].into_iter().chain(counts));
    }
    text
}

/// The clause with its RFC.
fn clause(case: &Case) -> String {
    match case.clause.split_once(' ') {
        Some((rfc, clause)) => format!("RFC {rfc} {clause}"),
        None => format!("RFC 9111 {}", case.clause),
    }
}

fn by_clause(cases: &[Case], done: &[Done]) -> String {
    let mut counts: BTreeMap<String, (usize, Vec<usize>)> = BTreeMap::new();
    for case in cases {
        let count = counts.entry(clause(case)).or_default();
        count.0 += 1;
        count.1.resize(done.len(), 0);
    }
    for (index, done) in done.iter().enumerate() {
        for (case, verdict) in verdicts(cases, done) {
            if let Some((_, met)) = counts.get_mut(&clause(case)) {
                met[index] += usize::from(verdict == Verdict::Met);
            }
        }
    }
    let mut text = head(&["clause", "cases"], done, "--:");
    for (clause, (all, met)) in counts {
        let met = met.iter().map(ToString::to_string);
        text += &row([clause, all.to_string()].into_iter().chain(met));
    }
    text
}

fn differences(cases: &[Case], done: &[Done]) -> String {
    let names = [
        "clause",
        "the origin's answer",
        "requests before",
        "s",
        "the last request",
        "asked",
    ];
    let mut text = head(&names, done, "---");
    for (number, case) in cases.iter().enumerate() {
        let outcomes = done.iter().map(|done| done.outcomes[number].as_deref());
        let outcomes: Vec<_> = outcomes.collect();
        if outcomes
            .iter()
            .all(|it| Verdict::of(case, *it) == Verdict::Met)
        {
            continue;
        }
        let columns = case.text.split('|').map(|column| code(column.trim()));
        let found = outcomes
            .iter()
            .map(|it| match (Verdict::of(case, *it), it) {
                (Verdict::Met, _) => String::new(),
                (_, Some(outcome)) => code(outcome),
                (_, None) => String::from("no answer"),
            });
        text += &row(columns.chain(found));
    }
    text
}

fn code(text: &str) -> String {
    match text {
        "-" | "" => text.to_owned(),
        text => format!("`{}`", text.replace('`', "'")),
    }
}

const HEAD: &str = "# RFC 9111 in nginx, Varnish, HAProxy and Millstream

Made by the command below, which writes this page.

```
cargo build -p millstream
cargo xtask conformance
```

Each case is two requests or more for one target, some seconds apart: what becomes of the last one? The cases are those that
our own tests pass in simulated time (`mill-server/tests/it/proxy/caching/`), but for those of more than two minutes; here they take place in
real time over loopback, before one origin that says what the case says.

";

const CONFIGURED: &str = "
Configured are caches that do what answers say, and nothing by configuration: no `proxy_cache_valid`, no VCL. nginx validates
(`proxy_cache_revalidate on`), Varnish serves nothing stale by itself (`default_grace=0`; its default is ten seconds), HAProxy
tells variants apart (`process-vary on`), Millstream follows the RFC (`cache_rules rfc9111`; its default,
`cache_rules nginx`, has nginx's short cuts).

Not all that is not met breaks the RFC. To use what is kept although it must not be used does, where the clause says MUST; to
ask the origin without need is always allowed, and costs a request. RFC 5861, 9211 and 9213 are for caches that have them.

";

const DIFFERENCES: &str = "
## What they do differently

Cases that at least one of them does not meet; an empty cell is what is asked. `hit`: from the cache; `forwarded`: the origin was
asked, and a status where it is not 200; `validated`: it was asked whether what is kept is valid, and said so; `stale`: what is kept, because the
origin has failed; a number alone: a status from the cache. Then fields that are not as asked. `~` is the folder of the case, `@+10` a
date ten seconds from now; `then` is what the origin says from the second request on, `unsafe` to unsafe methods, `304` with a 304.

";

#[cfg(test)]
mod tests {
    use super::super::systems::Kind;
    use super::*;
    use mill_conformance::caching::cases;

    fn done(kind: Kind, outcomes: &[Option<&str>]) -> Done {
        Done {
            kind,
            version: String::from("1"),
            outcomes: outcomes.iter().map(|it| it.map(str::to_owned)).collect(),
        }
    }

    #[test]
    fn a_page_counts_what_is_met_and_shows_what_is_not() {
        let cases = cases(
            "3 | X: 1 | - | 1 | - | hit\n3.5 | - | - | 1 | - | forwarded\n9213 2 | - | - | 1 | - | hit",
        );
        let all = [
            done(Kind::Nginx, &[Some("hit"), Some("hit"), None]),
            done(
                Kind::Millstream,
                &[Some("hit"), Some("forwarded"), Some("hit")],
            ),
        ];
        let page = page(&cases, &all);
        for line in [
            "| of 3 cases | nginx | Millstream |\n",
            "| met | 1 | 3 |\n",
            "| what is kept was used although it must not be | 1 | 0 |\n",
            "| otherwise | 1 | 0 |\n",
            "| RFC 9111 3 | 1 | 1 | 1 |\n",
            "| RFC 9213 2 | 1 | 0 | 1 |\n",
            "| `3.5` | - | - | `1` | - | `forwarded` | `hit` |  |\n",
            "| `9213 2` | - | - | `1` | - | `hit` | no answer |  |\n",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
        assert!(!page.contains("| `3` |"), "{page}");
    }

    #[test]
    fn a_verdict_tells_use_without_leave_from_a_needless_request() {
        let verdict = |expected: &str, outcome: &str| {
            let case = cases(&format!("3 | - | - | 1 | - | {expected}")).remove(0);
            Verdict::of(&case, Some(outcome))
        };
        assert_eq!(verdict("hit", "hit"), Verdict::Met);
        assert_eq!(verdict("forwarded", "hit"), Verdict::Used);
        assert_eq!(verdict("validated", "stale"), Verdict::Used);
        assert_eq!(verdict("hit", "validated"), Verdict::Asked);
        assert_eq!(verdict("hit", "hit; Age: none"), Verdict::Other);
        assert_eq!(verdict("validated", "forwarded"), Verdict::Other);
        assert_eq!(verdict("504", "forwarded"), Verdict::Asked);
    }
}
