//! Each command against a store of its own: exit status and output.

use super::*;
use crate::parts::assert_contains;
use crate::record::{Finish, RunRecord, Status};
use crate::store::fixtures::{RECIPE, Scratch, environment, keep, run, trial};
use std::path::PathBuf;

/// Two runs of a recipe: one complete, one interrupted after a trial whose allocator was not there.
fn filled() -> Scratch {
    let scratch = Scratch::new();
    let store = Store::open(&scratch.0).unwrap();
    let finish = |interrupted| Finish {
        ended_ms: 9000,
        interrupted,
        not_restored: Vec::new(),
    };
    for (id, started_ms, rate) in [("a-1", 60_000, 100.0), ("b-2", 120_000, 200.0)] {
        let record = RunRecord {
            trials: 2,
            ..run(id, started_ms)
        };
        let folder = store.begin(&record, RECIPE, &environment()).unwrap();
        keep(&folder, &trial(0, "glibc", rate));
        let mut second = trial(1, "jemalloc", rate + 10.0);
        if id == "b-2" {
            second.status = Status::Absent {
                reason: String::from("not on this machine: needs libjemalloc"),
            };
            second.figures.clear();
        }
        keep(&folder, &second);
        folder.finish(&finish(id == "b-2")).unwrap();
    }
    scratch
}

type Streams<'a> = (&'a mut dyn Write, &'a mut dyn Write);

/// Runs a command; its status, standard output and standard error.
fn said(command: impl FnOnce(Streams<'_>) -> Result<u8, Problem>) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = answer(command((&mut out, &mut err)), &mut err);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status, text(out), text(err))
}

#[test]
fn runs_are_listed_with_what_became_of_them() {
    let scratch = filled();
    let desk = Desk { store: &scratch.0 };
    let (status, out, err) = said(|(out, err)| runs(desk, None, out, err));
    let expected = "\
run  began (UTC)       size   host  version          trials  state
b-2  1970-01-01 00:02  smoke  ada   0.1.0 (220b848)     1/2  interrupted, 1 absent
a-1  1970-01-01 00:01  smoke  ada   0.1.0 (220b848)     2/2  complete
";
    assert_eq!((status, &*out, &*err), (0, expected, ""));
    let (status, _, err) = said(|(out, err)| runs(desk, Some("rubris"), out, err));
    assert_eq!(status, 1);
    assert!(err.contains("there are runs of nginx-jemalloc"), "{err}");
}

#[test]
fn reading_makes_no_store() {
    let scratch = Scratch::new();
    let nowhere = scratch.0.join("nowhere");
    let desk = Desk { store: &nowhere };
    let (status, _, err) = said(|(out, err)| runs(desk, None, out, err));
    assert_eq!(status, 1);
    assert!(err.contains("no runs yet; `millstream lab run"), "{err}");
    let (status, ..) = said(|(out, err)| list(desk, true, out, err));
    assert_eq!(status, 0);
    assert!(!nowhere.exists());
}

#[test]
fn a_report_goes_where_it_was_asked_for() {
    let scratch = filled();
    let desk = Desk { store: &scratch.0 };
    let place = |name: &str| scratch.0.join(name);
    let (status, out, err) = said(|(out, err)| report(desk, "a", Forms::default(), out, err));
    let page = place("reports/a-1.html");
    assert_eq!((status, &*err), (0, ""));
    assert!(out.starts_with("nginx with jemalloc\n"), "{out}");
    assert!(out.contains("2 of 2 trials measured"), "{out}");
    assert!(out.ends_with(&format!("{}\n", page.display())), "{out}");
    assert!(std::fs::read_to_string(&page).unwrap().contains("<html"));

    let standard = Forms {
        html: Some(Path::new("-")),
        ..Forms::default()
    };
    let (_, out, _) = said(|(out, err)| report(desk, "a", standard, out, err));
    assert!(out.trim_start().starts_with("<!"), "{out}");

    let folder = place("out");
    let (status, out, _) = said(|(out, err)| report_after(desk, "b-2", Some(&folder), out, err));
    assert_eq!(status, 0);
    assert!(out.contains("1 absent"), "{out}");
    for name in ["report.html", "README.md"] {
        assert!(folder.join(name).is_file(), "{name}");
    }
    let drafts = std::fs::read_dir(&folder).unwrap();
    let drafts = drafts.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with('.')
    });
    assert_eq!(drafts.count(), 0);
}

#[test]
fn failures_have_their_reason_once_and_disturbed_trials_an_advice() {
    let check = |status: &Status, expected: &str| {
        let scratch = Scratch::new();
        let store = Store::open(&scratch.0).unwrap();
        let record = RunRecord {
            trials: 2,
            ..run("c-3", 1000)
        };
        let folder = store.begin(&record, RECIPE, &environment()).unwrap();
        for (index, allocator) in ["glibc", "jemalloc"].into_iter().enumerate() {
            let mut trial = trial(index, allocator, 100.0);
            trial.status = status.clone();
            keep(&folder, &trial);
        }
        let desk = Desk { store: &scratch.0 };
        let (_, out, _) = said(|(out, err)| report(desk, "c-3", Forms::default(), out, err));
        assert_eq!(out.matches(expected).count(), 1, "{out}");
    };
    let reason = String::from("nginx: it said: bind() failed");
    let failed = Status::Failed { reason };
    check(&failed, "  failed: nginx: it said: bind() failed\n");
    let reason = String::from("other programs took 60 % of the machine's CPU time");
    check(
        &Status::Disturbed { reason },
        "  · Warning: the machine was busy: ",
    );
}

#[test]
fn a_file_is_named_once_in_a_sentence_and_then_its_lines() {
    let long = "/notes/a.txt:3 and /notes/a.txt:9 differ (/notes/a.txt:12).";
    assert_eq!(
        lint::lines_of(long, "/notes/a.txt"),
        "/notes/a.txt:3 and line 9 differ (line 12)."
    );
    assert_eq!(lint::lines_of("Each of 2.", "a.txt"), "Each of 2.");
}

#[test]
fn a_run_is_exported_to_a_file_or_to_the_terminal() {
    let scratch = filled();
    let desk = Desk { store: &scratch.0 };
    let (status, out, _) = said(|(out, err)| export(desk, "latest", false, None, out, err));
    assert_eq!(status, 0);
    assert_contains(
        &out,
        "\nb-2,1,1,0,0,glibc,measured,,requests_per_s,per-second,200\n",
    );
    let file = scratch.0.join("deep/run.json");
    let (status, out, _) = said(|(out, err)| export(desk, "1", true, Some(&file), out, err));
    assert_eq!((status, out), (0, format!("{}\n", file.display())));
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .contains("\"id\": \"a-1\"")
    );
    let (status, _, err) = said(|(out, err)| export(desk, "c", true, None, out, err));
    assert_eq!(
        (status, &*err),
        (
            1,
            "millstream lab: no run \"c\"; `millstream lab runs` lists them\n"
        )
    );
}

#[test]
fn two_runs_are_compared_and_one_is_not() {
    let scratch = filled();
    let desk = Desk { store: &scratch.0 };
    let (status, out, err) = said(|(out, err)| compare(desk, "a", "latest", out, err));
    assert_eq!((status, &*err), (0, ""));
    assert!(out.starts_with("A  a-1\nB  b-2\n"), "{out}");
    let (status, _, err) = said(|(out, err)| compare(desk, "latest", "b", out, err));
    assert_eq!(status, 1);
    assert!(err.contains("both are b-2"), "{err}");
}

#[test]
fn recipes_are_listed_shown_and_checked() {
    let scratch = filled();
    let desk = Desk { store: &scratch.0 };
    let (status, out, _) = said(|(out, err)| list(desk, true, out, err));
    assert_eq!(status, 0);
    let line = out.lines().find(|line| line.starts_with("nginx-jemalloc "));
    assert!(
        line.is_some_and(|line| line.contains("  2  b-2  ")),
        "{out}"
    );

    let (status, out, _) =
        said(|(out, _)| show("smallest", "", &[], Shown::Plan { cores: 2 }, out));
    assert_eq!(status, 0);
    assert!(out.contains("The smallest run"), "{out}");
    let sets = [String::from("repeat.blocks=7")];
    let (_, out, _) = said(|(out, _)| show("smallest", "", &sets, Shown::Toml, out));
    let toml: toml::Table = out.parse().unwrap();
    assert_eq!(toml["repeat"]["blocks"].as_integer(), Some(7));
    let (status, _, err) = said(|(out, _)| show("smalest", "", &[], Shown::Plan { cores: 2 }, out));
    assert_eq!(status, 1);
    assert!(err.contains("smallest"), "{err}");

    let right = scratch.0.join("right.toml");
    std::fs::write(&right, toml.to_string()).unwrap();
    let wrong = scratch.0.join("wrong.toml");
    std::fs::write(&wrong, "title = 1\n").unwrap();
    let files = [right.clone(), wrong.clone()];
    let (status, out, err) = said(|(out, err)| check(&files, out, err));
    assert_eq!(
        (status, out),
        (1, format!("{}: no mistakes\n", right.display()))
    );
    assert!(err.starts_with(&format!("{}", wrong.display())), "{err}");
}

#[test]
fn a_text_with_mistakes_is_distinguished_from_one_without_and_from_none() {
    let lint = |files: &[&str], input: &str| {
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        said(|(out, err)| lint::lint_with(&files, &mut input.as_bytes(), out, err))
    };
    let none = "-: nothing that wrk or ab printed and no table of figures, so nothing to check\n";
    assert_eq!(
        lint(&["-"], "no benchmark\n"),
        (0, String::from(none), String::new())
    );
    let block = "\
$ wrk -t1 -c10 -d30s http://10.0.0.2/
Running 30s test @ http://10.0.0.2/
  1 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.00ms  100.00us   2.00ms   90.00%
    Req/Sec     1.00k   100.00     1.20k    70.00%
  2000 requests in 2.03s, 1.00MB read
Requests/sec:    985.22
Transfer/sec:    504.43KB
";
    let (status, out, _) = lint(&["-"], block);
    assert_eq!(status, 1);
    assert!(out.contains("interrupted: "), "{out}");
    let (_, out, _) = lint(&["-"], &format!("{block}\n{block}"));
    assert_eq!(out.matches("interrupted: ").count(), 2, "{out}");
    let (status, _, err) = lint(&["/no/such/file", "-"], block);
    assert_eq!(status, 2);
    assert!(err.contains("/no/such/file"), "{err}");
}
