//! The description of a recipe before it runs.

use super::*;
use crate::recipe::whole;

/// A recipe with everything that is shown.
const RECIPE: &str = r#"
title = "A test"
rows = ["X1"]
seed = "009"
question = "Why?"
skip = [{ workers = 2, system = "own" }]
[[absent]]
what = "a card"
why = "there is none"
instead = "veth"
[for]
workers = [1, 2]
[repeat]
blocks = 2
[tune]
sysctl = { "net.ipv4.tcp_tw_reuse" = 1 }
stop_services = ["irqbalance"]
[system.nginx]
title = "nginx"
kind = "nginx"
config = "events {}"
[system.own]
title = "Millstream"
kind = "millstream"
stands_for = "Onload"
needs = ["not-built:its stack"]
[load]
tool = "wrk"
args = "-d 10s ${url}"
processes = 4
[[probe]]
kind = "counters"
counters = ["malloc", "system-calls"]
"#;

#[test]
fn a_recipe_is_shown_from_question_to_absences() {
    let resolved = Resolved::parse("x.toml", RECIPE, "").unwrap();
    let shown = show(&resolved, &Plan::of(&resolved, 64).unwrap());
    let expected = "\
x: A test (X1, seed 009)

  Why?

Axes
  workers  1  2
  system   nginx  own
  without system own with workers 2

Sizes
                  points  blocks  trials  at most
  * smoke              3       2       8  79 s; 2 min with all cells

Systems
  nginx  nginx
  own    Millstream; stands for Onload; not built yet: its stack

Topology
  ┌─ this machine ────────┐                          ┌─ this machine ──────────┐
  │ clients               │      loopback (lo)       │ the server under test   │
  │ CPUs: the lower half  ├──────────────────────────┤ CPUs: the upper half    │
  │                       │                          │                         │
  └───────────────────────┘                          └─────────────────────────┘

Changed while it runs, and put back at the end
  1 sysctl; stopped if they run: irqbalance

Commands of a trial
  at system nginx, workers AXIS
  server    nginx -c ${run}/nginx.conf
  client    wrk -d 10s ${url}   (4 processes)
            ${url} is http://SERVER:80/
  probe     counters malloc, system-calls, 3 s

Not as in the document
  - a card: there is none; instead: veth
";
    // Which of the two comes first is the shuffle's affair.
    let shown = shown.replace("workers 1\n", "workers AXIS\n");
    let shown = shown.replace("nginx, workers 2\n", "nginx, workers AXIS\n");
    assert_eq!(shown, expected, "{shown}");
}

#[test]
fn all_embedded_recipes_are_listed_and_shown_in_80_columns() {
    let listed = list();
    assert_eq!(listed.len(), embedded::ids().count());
    for listing in listed {
        let resolved = resolve(&listing.id, "", &[]).unwrap();
        let shown = show(&resolved, &Plan::of(&resolved, 64).unwrap());
        for size in SIZES {
            assert!(
                shown.contains(size),
                "{} has no line for {size}",
                listing.id
            );
        }
        // A single word may be longer than a line.
        let long: Vec<&str> = shown
            .lines()
            .filter(|line| line.chars().count() > WIDTH && line.trim().contains(' '))
            .collect();
        assert!(long.is_empty(), "{}: {long:#?}", listing.id);
    }
}

#[test]
fn hours_are_told_also_where_cells_are_missing() {
    let line = |cores| {
        let resolved = resolve("onload-cookbook", "seed", &[]).unwrap();
        let shown = show(&resolved, &Plan::of(&resolved, cores).unwrap());
        let line = shown.lines().find(|line| line.starts_with("  * seed"));
        String::from(line.unwrap())
    };
    let whole = line(128);
    let hours = whole.split_whitespace().rev().nth(3).unwrap();
    let small = line(2);
    assert!(small.ends_with(" with all cells"), "{small}");
    assert!(small.contains(" h "), "{small}");
    assert!(
        hours.parse::<u32>().is_ok() || whole.ends_with(" with all cells"),
        "{whole}"
    );
}

#[test]
fn the_whole_recipe_as_toml_has_its_sizes_and_is_read_again() {
    for listing in list() {
        let text = whole(&listing.id, &[]).unwrap();
        for size in SIZES {
            let one = resolve(&listing.id, size, &[]).unwrap();
            let again = Resolved::parse("recipe.toml", &text, size).unwrap();
            assert_eq!(again.recipe, one.recipe, "{} {size}", listing.id);
        }
        let own = embedded::file(&format!("{}.toml", listing.id)).unwrap();
        for size in SIZES {
            let table = format!("[size.{size}");
            assert!(
                !own.contains(&table) || text.contains(&table),
                "{} lacks {table}",
                listing.id
            );
        }
    }
}

#[test]
fn times_are_said_in_units_that_fit() {
    let check = |seconds: u64, expected: &str| {
        assert_eq!(time(Duration::from_secs(seconds)), expected);
    };
    check(0, "0 s");
    check(99, "99 s");
    check(100, "2 min");
    check(5399, "90 min");
    check(5400, "1 h 30 min");
    check(47_520, "13 h 12 min");
}
