//! The store on a real folder, below the system's folder for what is temporary.

mod index;

use super::fixtures::{RECIPE, Scratch, environment, keep, run, trial};
use super::*;
use crate::record::Figures;
use index::ask;

fn done(interrupted: bool) -> Finish {
    Finish {
        ended_ms: 9000,
        interrupted,
        not_restored: Vec::new(),
    }
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
    disturbed.status = Status::Disturbed {
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
    assert_eq!((summary.measured, summary.disturbed), (1, 0));
    assert_eq!(store.load("a").unwrap().files.len(), 1);
    assert_eq!(
        ask(
            &store,
            "SELECT trial, attempt, status FROM trials ORDER BY attempt"
        ),
        "1 1 disturbed; 1 2 measured"
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
fn runs_are_listed_newest_first_and_damaged_ones_are_reported() {
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
fn trials_of_further_blocks_count_among_all() {
    let scratch = Scratch::new();
    let store = Store::open(&scratch.0).unwrap();
    let record = run("2026-11-21T0736-nginx-jemalloc-a000", 5000);
    let folder = store.begin(&record, RECIPE, &environment()).unwrap();
    for number in 0..6 {
        keep(&folder, &trial(number, "glibc", 33_585.56));
    }
    assert_eq!(record.trials, 4);
    assert_eq!(store.load(&record.id).unwrap().run.trials, 6);
    assert_eq!(store.summary(&record.id).unwrap().run.trials, 6);
}
