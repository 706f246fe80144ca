//! The store on a real folder, below the system's folder for what is temporary.

use super::*;
use crate::limit::{Limit, Side};
use crate::record::{CommandLine, Figures, Point, TrialRecord};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that goes with its owner.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mill-lab-store-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Read-only folders of complete runs, where the tests are not root.
        let _ = publish::set_writable(&self.0, true);
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) const RECIPE: &str = r#"
title = "nginx with jemalloc"
question = "What does an allocator give?"
[for]
system = ["glibc", "jemalloc"]
[system.glibc]
title = "nginx"
kind = "nginx"
"#;

pub(crate) fn run(id: &str, started_ms: u64) -> RunRecord {
    RunRecord {
        id: String::from(id),
        recipe: String::from("nginx-jemalloc"),
        title: String::from("nginx with jemalloc"),
        size: String::from("smoke"),
        overrides: vec![String::from("repeat.blocks=2")],
        command: vec![String::from("millstream"), String::from("lab")],
        seed: u64::MAX,
        started_ms,
        millstream: String::from("0.1.0"),
        commit: Some(String::from("220b848")),
        trials: 4,
    }
}

pub(crate) fn environment() -> Environment {
    Environment {
        host: String::from("ada"),
        kernel: String::from("6.1.0"),
        cores: 2,
        ..Environment::default()
    }
}

pub(crate) fn trial(number: usize, system: &str, rate: f64) -> TrialRecord {
    TrialRecord {
        number,
        block: 0,
        point: Point::from([(String::from("system"), String::from(system))]),
        again: false,
        attempt: 0,
        status: Status::Measured,
        started_ms: 1000,
        seconds: 2.5,
        commands: vec![CommandLine {
            role: String::from("client 0"),
            line: String::from("wrk http://10.0.0.2/"),
        }],
        figures: Figures::from([(String::from("requests_per_s"), rate)]),
        percentiles: vec![(50.0, 0.001)],
        limit: Some(Limit {
            side: Side::Server,
            evidence: String::from("CPUs of the server 100 % busy, of the client 40 %"),
        }),
        absent: BTreeMap::new(),
        tuned: Vec::new(),
        artefacts: vec![String::from("round-trip.txt")],
        notes: Vec::new(),
    }
}

fn done(interrupted: bool) -> Finish {
    Finish {
        ended_ms: 9000,
        interrupted,
        not_restored: Vec::new(),
    }
}

fn keep(folder: &RunFolder, record: &TrialRecord) -> TrialFolder {
    let place = folder.trial(record.number).unwrap();
    place.write("client-0.out", "Running\n").unwrap();
    assert_eq!(folder.keep(record).unwrap(), None);
    place
}

fn ask(store: &Store, question: &str) -> String {
    let connection = rusqlite::Connection::open(store.index_path()).unwrap();
    let mut query = connection.prepare(question).unwrap();
    let columns = query.column_count();
    let rows = query
        .query_map([], |row| {
            let cells: Vec<String> = (0..columns)
                .map(|column| match row.get_ref(column).unwrap() {
                    rusqlite::types::ValueRef::Null => String::from("-"),
                    rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                    rusqlite::types::ValueRef::Real(number) => number.to_string(),
                    other => String::from(other.as_str().unwrap()),
                })
                .collect();
            Ok(cells.join(" "))
        })
        .unwrap();
    rows.map(Result::unwrap).collect::<Vec<_>>().join("; ")
}

#[test]
fn what_was_kept_is_what_is_loaded() {
    let scratch = Scratch::new();
    let store = Store::open(&scratch.0).unwrap();
    let record = run("2026-11-21T0736-nginx-jemalloc-a000", 5000);
    let folder = store.begin(&record, RECIPE, &environment()).unwrap();
    let first = keep(&folder, &trial(0, "glibc", 33_585.56));
    assert!(first.path().ends_with("trials/0001"));
    let second = folder.trial(1).unwrap();
    for name in [
        "client-0.out",
        "client-0.err",
        "round-trip.txt",
        "stray.txt",
        "user.folded",
    ] {
        second.write(name, b"a;b\xff 3\n").unwrap();
    }
    folder.keep(&trial(1, "jemalloc", 36_120.88)).unwrap();
    folder.finish(&done(false)).unwrap();

    let kept = store.load(&record.id).unwrap();
    assert_eq!(kept.run, record);
    assert_eq!(kept.recipe.id, "nginx-jemalloc");
    assert_eq!(kept.environment, environment());
    assert_eq!(
        kept.trials,
        [
            trial(0, "glibc", 33_585.56),
            trial(1, "jemalloc", 36_120.88)
        ]
    );
    assert_eq!(kept.finish, Some(done(false)));
    let names: Vec<(usize, &str)> = kept
        .files
        .iter()
        .map(|file| (file.trial, file.name.as_str()))
        .collect();
    assert_eq!(
        names,
        [
            (0, "client-0.out"),
            (1, "client-0.out"),
            (1, "round-trip.txt"),
            (1, "user.folded")
        ]
    );
}

#[test]
fn a_file_that_is_no_text_is_read_all_the_same() {
    let scratch = Scratch::new();
    let store = Store::open(&scratch.0).unwrap();
    let folder = store.begin(&run("a", 0), RECIPE, &environment()).unwrap();
    let place = folder.trial(0).unwrap();
    place.write("client-0.out", b"a\xffb\n").unwrap();
    let long = "0123456789\n".repeat(10_000);
    place.write("round-trip.txt", &long).unwrap();
    folder.keep(&trial(0, "glibc", 1.0)).unwrap();
    let files = store.load("a").unwrap().files;
    assert_eq!(files[0].text, "a\u{fffd}b\n");
    assert!(files[1].text.len() < long.len());
    assert!(files[1].text.ends_with("9\n"));
}

#[test]
fn a_trial_without_its_record_is_tried_again_and_one_that_was_disturbed_too() {
    let scratch = Scratch::new();
    let store = Store::open(&scratch.0).unwrap();
    let folder = store.begin(&run("a", 0), RECIPE, &environment()).unwrap();
    folder
        .trial(0)
        .unwrap()
        .write("client-0.out", "half")
        .unwrap();
    drop(folder);

    let folder = store.resume("a").unwrap();
    let mut disturbed = trial(0, "glibc", 1.0);
    disturbed.status = Status::Void {
        reason: String::from("others took 12 % of the CPUs"),
    };
    keep(&folder, &disturbed);
    assert!(
        folder
            .path()
            .join("trials/0001.unfinished/client-0.out")
            .exists()
    );
    let second = trial(0, "glibc", 2.0);
    assert!(keep(&folder, &second).path().ends_with("trials/0001-2"));
    assert_eq!(folder.kept_trials().unwrap(), [disturbed, second.clone()]);

    assert!(matches!(
        folder.trial(0),
        Err(StoreError::Kept { number: 1, .. })
    ));
    assert!(matches!(
        folder.keep(&second),
        Err(StoreError::NotBegun { number: 1 })
    ));
    let summary = store.summary("a").unwrap();
    assert_eq!((summary.measured, summary.void), (1, 0));
    assert_eq!(store.load("a").unwrap().files.len(), 1);
    assert_eq!(
        ask(
            &store,
            "SELECT trial, attempt, status FROM trials ORDER BY attempt"
        ),
        "1 1 void; 1 2 measured"
    );
}

#[test]
fn an_interrupted_run_goes_on_and_a_complete_one_does_not() {
    let scratch = Scratch::new();
    let store = Store::open(&scratch.0).unwrap();
    let folder = store.begin(&run("a", 0), RECIPE, &environment()).unwrap();
    keep(&folder, &trial(0, "glibc", 1.0));
    folder.finish(&done(true)).unwrap();
    assert_eq!(store.summary("a").unwrap().state(), "interrupted");
    assert_eq!(
        ask(&store, "SELECT state, ended_ms FROM runs"),
        "interrupted 9000"
    );

    let folder = store.resume("a").unwrap();
    assert_eq!(store.summary("a").unwrap().state(), "unfinished");
    assert_eq!(
        ask(&store, "SELECT state, ended_ms FROM runs"),
        "unfinished -"
    );
    keep(&folder, &trial(1, "jemalloc", 2.0));
    folder.finish(&done(false)).unwrap();
    assert!(matches!(
        store.resume("a"),
        Err(StoreError::Complete { .. })
    ));
    let path = store.run_path("a");
    assert!(path.join("interrupted-1.json").exists());
    let record = fs::metadata(path.join("trials/0002/trial.json")).unwrap();
    assert!(record.permissions().readonly());
}

#[test]
fn a_run_is_begun_once_and_inside_the_store() {
    let scratch = Scratch::new();
    let store = Store::open(&scratch.0).unwrap();
    store.begin(&run("a", 0), RECIPE, &environment()).unwrap();
    let again = store.begin(&run("a", 0), RECIPE, &environment());
    assert!(matches!(again, Err(StoreError::File { .. })));
    let outside = store.begin(&run("../a", 0), RECIPE, &environment());
    assert!(matches!(outside, Err(StoreError::BadName(_))));
}

#[test]
fn runs_are_listed_newest_first_and_damaged_ones_are_said() {
    let scratch = Scratch::new();
    let store = Store::open(&scratch.0).unwrap();
    assert!(matches!(
        store.find("latest"),
        Err(StoreError::Empty { .. })
    ));
    for (id, started_ms) in [("b", 20), ("c", 10), ("a", 30), ("d", 40)] {
        store
            .begin(&run(id, started_ms), RECIPE, &environment())
            .unwrap();
    }
    fs::write(store.run_path("d").join("run.json"), "{").unwrap();
    fs::create_dir(store.folder().join("runs/no-run")).unwrap();
    let (runs, damage) = store.runs_and_damage().unwrap();
    let ids: Vec<&str> = runs.iter().map(|summary| summary.run.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert!(matches!(damage[..], [StoreError::Damaged { .. }]));
    assert_eq!(store.find("latest:nginx-jemalloc").unwrap(), "a");
}

#[test]
fn a_figure_that_is_no_number_is_absent() {
    let scratch = Scratch::new();
    let store = Store::open(&scratch.0).unwrap();
    let folder = store.begin(&run("a", 0), RECIPE, &environment()).unwrap();
    let mut record = trial(0, "glibc", f64::NAN);
    record.figures.insert(String::from("requests"), 10.0);
    record.percentiles.push((99.0, f64::INFINITY));
    record.seconds = f64::NAN;
    keep(&folder, &record);
    let loaded = store.load("a").unwrap().trials.remove(0);
    assert_eq!(
        loaded.figures,
        Figures::from([(String::from("requests"), 10.0)])
    );
    assert_eq!(loaded.percentiles, [(50.0, 0.001)]);
    assert_eq!(
        loaded.absent["requests_per_s"],
        "the figure came out as NaN"
    );
}

#[test]
fn the_index_answers_questions() {
    let scratch = Scratch::new();
    let store = Store::open(&scratch.0).unwrap();
    let folder = store.begin(&run("a", 0), RECIPE, &environment()).unwrap();
    keep(&folder, &trial(0, "glibc", 100.0));
    let mut again = trial(1, "glibc", 101.0);
    again.again = true;
    keep(&folder, &again);
    keep(&folder, &trial(2, "jemalloc", 110.0));
    let cases = [
        (
            "SELECT system, value FROM measured ORDER BY trial",
            "glibc 100; jemalloc 110",
        ),
        (
            "SELECT count(*), side FROM trials GROUP BY side",
            "3 server-bound",
        ),
        (
            "SELECT point ->> '$.system' FROM trials WHERE trial = 3",
            "jemalloc",
        ),
        (
            "SELECT host, cores, revision, state, seed FROM runs",
            "ada 2 220b848 unfinished -1",
        ),
        (
            "SELECT * FROM metrics",
            "requests_per_s Requests/s per-second higher",
        ),
        ("PRAGMA journal_mode", "delete"),
    ];
    for (question, expected) in cases {
        assert_eq!(ask(&store, question), expected, "{question}");
    }
}

/// What a store says and knows after something happened to its index while two runs lay in it.
fn check_index(happens: impl FnOnce(&Store), notes: &[&str]) {
    let scratch = Scratch::new();
    let store = Store::open(&scratch.0).unwrap();
    assert!(store.notes().is_empty());
    for id in ["a", "b"] {
        let folder = store.begin(&run(id, 0), RECIPE, &environment()).unwrap();
        keep(&folder, &trial(0, "glibc", 1.0));
        keep(&folder, &trial(1, "jemalloc", 2.0));
    }
    happens(&store);
    let store = Store::open(&scratch.0).unwrap();
    let said = store.notes().iter();
    let said: Vec<&str> = said
        .filter_map(|note| note.split(['(', ';']).next())
        .collect();
    assert_eq!(said, notes);
    let ids = store.ids().unwrap();
    assert_eq!(
        ask(&store, "SELECT id FROM runs ORDER BY id"),
        ids.join("; ")
    );
    let figures = ask(&store, "SELECT count(*) FROM figures");
    assert_eq!(figures, (2 * ids.len()).to_string());
}

#[test]
fn the_index_follows_the_folders() {
    check_index(|_| {}, &[]);
    check_index(|store| fs::remove_file(store.index_path()).unwrap(), &[]);
    check_index(
        |store| {
            fs::write(
                store.index_path(),
                "no database, but longer than a header\n",
            )
            .unwrap()
        },
        &["the index was damaged "],
    );
    check_index(
        |store| {
            let index = rusqlite::Connection::open(store.index_path()).unwrap();
            index.execute_batch("PRAGMA user_version = 99").unwrap();
        },
        &["the index was laid out by another version of millstream "],
    );
    check_index(
        |store| fs::remove_dir_all(store.run_path("a")).unwrap(),
        &[],
    );
    check_index(
        |store| {
            let index = rusqlite::Connection::open(store.index_path()).unwrap();
            index
                .execute_batch(
                    "DELETE FROM trials; DELETE FROM figures; DELETE FROM runs WHERE id = 'b'",
                )
                .unwrap();
        },
        &[],
    );
}

#[test]
fn reindexing_makes_it_from_nothing() {
    let scratch = Scratch::new();
    let store = Store::open(&scratch.0).unwrap();
    let folder = store.begin(&run("a", 0), RECIPE, &environment()).unwrap();
    keep(&folder, &trial(0, "glibc", 1.0));
    let index = rusqlite::Connection::open(store.index_path()).unwrap();
    index.execute_batch("UPDATE figures SET value = 7").unwrap();
    assert_eq!(store.reindex().unwrap(), 1);
    assert_eq!(ask(&store, "SELECT value FROM figures"), "1");
}

#[test]
fn two_labs_share_a_store() {
    let scratch = Scratch::new();
    let path = scratch.0.clone();
    let write = |id: &'static str| {
        let path = path.clone();
        std::thread::spawn(move || {
            let store = Store::open(&path).unwrap();
            let folder = store.begin(&run(id, 0), RECIPE, &environment()).unwrap();
            for number in 0..20 {
                keep(&folder, &trial(number, "glibc", 1.0));
            }
        })
    };
    let labs = [write("a"), write("b")];
    for lab in labs {
        lab.join().unwrap();
    }
    let store = Store::open(&scratch.0).unwrap();
    assert_eq!(
        ask(&store, "SELECT run, count(*) FROM figures GROUP BY run"),
        "a 20; b 20"
    );
}
