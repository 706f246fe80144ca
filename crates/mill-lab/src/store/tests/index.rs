//! The index: what it answers, and that it follows the folders.

use super::super::fixtures::{RECIPE, Scratch, environment, keep, run, trial};
use super::super::*;

pub(super) fn ask(store: &Store, question: &str) -> String {
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
fn the_index_answers_questions() {
    let scratch = Scratch::new();
    let store = Store::open(&scratch.0).unwrap();
    let folder = store.begin(&run("a", 0), RECIPE, &environment()).unwrap();
    keep(&folder, &trial(0, "glibc", 100.0));
    let mut again = trial(1, "glibc", 101.0);
    again.again = true;
    keep(&folder, &again);
    keep(&folder, &trial(2, "jemalloc", 110.0));
    for case in [
        "SELECT system, value FROM measured ORDER BY trial => glibc 100; jemalloc 110",
        "SELECT count(*), side FROM trials GROUP BY side => 3 server-bound",
        "SELECT point ->> '$.system' FROM trials WHERE trial = 3 => jemalloc",
        "SELECT host, cores, revision, state, seed FROM runs => ada 2 220b848 unfinished -1",
        "SELECT * FROM metrics => requests_per_s Requests/s per-second higher",
        "PRAGMA journal_mode => delete",
    ] {
        let (question, expected) = case.split_once(" => ").unwrap();
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
