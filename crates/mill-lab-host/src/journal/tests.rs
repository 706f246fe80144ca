//! The journal over files of its own.

use super::*;
use crate::scratch::Scratch;

impl Scratch {
    /// A file in place of one of the kernel's.
    fn key(&self, name: &str, value: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, value).unwrap();
        path.display().to_string()
    }
}

fn value(path: &str) -> String {
    setting::read(&Host::Local, path).unwrap()
}

const NOTHING: Vec<String> = Vec::new();

#[test]
fn what_was_written_is_written_back_in_reverse() {
    let scratch = Scratch::new("journal-reverse");
    let key = scratch.key("key", "1\n");
    let mut journal = Journal::begin(&scratch.0, "run").unwrap();
    journal.write(&Host::Local, &key, "1", "2").unwrap();
    let mark = journal.mark();
    journal.write(&Host::Local, &key, "2", "3").unwrap();
    assert_eq!(journal.undo_to(mark), NOTHING);
    assert_eq!(value(&key), "2");
    assert_eq!(journal.restore(), NOTHING);
    assert_eq!(value(&key), "1");
    assert!(left_behind(&scratch.0).is_empty());
}

#[test]
fn a_dropped_journal_restores_and_removes_its_file() {
    let scratch = Scratch::new("journal-drop");
    let key = scratch.key("key", "1");
    let mut journal = Journal::begin(&scratch.0, "run").unwrap();
    journal.write(&Host::Local, &key, "1", "2").unwrap();
    let path = journal.path.clone();
    drop(journal);
    assert_eq!(value(&key), "1");
    assert!(!path.exists());
}

#[test]
fn a_value_changed_by_another_program_is_left_alone_and_reported() {
    let scratch = Scratch::new("journal-else");
    let key = scratch.key("key", "1");
    let mut journal = Journal::begin(&scratch.0, "run").unwrap();
    journal.write(&Host::Local, &key, "1", "2").unwrap();
    std::fs::write(&key, "7\n").unwrap();
    let problems = journal.restore();
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].contains("is 7, which another program has set"),
        "{problems:?}"
    );
    assert_eq!(value(&key), "7");
}

#[test]
fn messages_of_undoing_between_trials_are_reported_at_the_end() {
    let scratch = Scratch::new("journal-settled");
    let key = scratch.key("key", "1");
    let mut journal = Journal::begin(&scratch.0, "run").unwrap();
    let mark = journal.mark();
    journal.write(&Host::Local, &key, "1", "2").unwrap();
    std::fs::write(&key, "7").unwrap();
    let then = journal.undo_to(mark);
    assert_eq!(then.len(), 1);
    assert_eq!(journal.restore(), then);
}

#[test]
fn what_could_not_be_undone_is_kept_for_later() {
    let scratch = Scratch::new("journal-kept");
    let key = scratch.key("key", "1");
    let helper = scratch.0.join("there");
    let undo = ["test", "-e", &helper.display().to_string()].map(String::from);
    let mut journal = Journal::begin(&scratch.0, "run").unwrap();
    journal.write(&Host::Local, &key, "1", "2").unwrap();
    let undo: Vec<&str> = undo.iter().map(String::as_str).collect();
    journal.run(&Host::Local, &["true"], &undo).unwrap();
    journal.write(&Host::Local, &key, "2", "3").unwrap();
    let path = journal.path.clone();
    assert_eq!(journal.restore().len(), 1);
    assert_eq!(value(&key), "1");
    // The second restore has only that one to undo, and it succeeds.
    std::fs::write(&helper, "").unwrap();
    let journal = Journal::inherit(&path).unwrap();
    assert_eq!(journal.restore(), NOTHING);
    assert!(!path.exists());
}

#[test]
fn an_act_that_was_refused_is_not_undone() {
    let scratch = Scratch::new("journal-refused");
    let trace = scratch.0.join("trace").display().to_string();
    let mut journal = Journal::begin(&scratch.0, "run").unwrap();
    assert!(
        journal
            .run(&Host::Local, &["false"], &["touch", &trace])
            .is_err()
    );
    assert!(journal.write(&Host::Local, &trace, "1", "2").is_err());
    assert_eq!(journal.restore(), NOTHING);
    assert!(!Path::new(&trace).exists());
}

#[test]
fn folders_are_removed_but_never_those_above_a_labs() {
    let scratch = Scratch::new("journal-folders");
    let made = scratch.0.join("made");
    std::fs::create_dir_all(made.join("deep")).unwrap();
    let mut journal = Journal::begin(&scratch.0, "run").unwrap();
    for path in [
        made.display().to_string(),
        String::from("/nonexistent"),
        String::from("a/b"),
    ] {
        journal.note(&Entry::MadeFolder { path }).unwrap();
    }
    let problems = journal.restore();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems
            .iter()
            .all(|problem| problem.contains("no folder of a lab"))
    );
    assert!(!made.exists());
}

#[test]
fn a_control_group_that_a_killed_lab_left_is_removed() {
    let scratch = Scratch::new("journal-group");
    let group = scratch.0.join("group");
    std::fs::create_dir(&group).unwrap();
    let path = group.display().to_string();
    let line = serde_json::to_string(&Entry::MadeControlGroup { path }).unwrap();
    let (restored, said) = restored(&scratch, &[line, String::new()]);
    assert_eq!(restored.restored, ["gone"], "{said}");
    assert!(!group.exists());
}

#[test]
fn a_started_process_is_ended_with_its_group() {
    use std::os::unix::process::CommandExt;
    let scratch = Scratch::new("journal-started");
    let mut child = std::process::Command::new("sh")
        .args(["-c", "sleep 1000 & wait"])
        .process_group(0)
        .spawn()
        .unwrap();
    let mut journal = Journal::begin(&scratch.0, "run").unwrap();
    journal
        .note(&Entry::Started {
            process: child.id(),
            process_start: ProcessStat::of(child.id()).unwrap().start,
            what: String::from("server"),
        })
        .unwrap();
    assert_eq!(journal.restore(), NOTHING);
    assert!(!child.wait().unwrap().success());
}

/// Writes a journal of a process that does not run, with these lines, and restores it.
fn restored(scratch: &Scratch, lines: &[String]) -> (Restored, String) {
    let began = Entry::Began {
        run: String::from("gone"),
        process: std::process::id(),
        // This process began at another time.
        process_start: 1,
        boot: left::boot(),
        session: 0,
    };
    let mut text = serde_json::to_string(&began).unwrap();
    for line in lines {
        text.push('\n');
        text.push_str(line);
    }
    let state = scratch.0.join("state");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(state.join("gone.journal"), text).unwrap();
    let mut out = Vec::new();
    let restored = restore_all(&state, &mut out).unwrap();
    (restored, String::from_utf8(out).unwrap())
}

fn wrote(path: &str, before: &str, after: &str) -> String {
    serde_json::to_string(&Entry::wrote(&Host::Local, path, before, after)).unwrap()
}

#[test]
fn a_torn_last_line_was_never_acted_on() {
    let scratch = Scratch::new("journal-torn");
    let key = scratch.key("key", "2");
    let whole = wrote(&key, "1", "2");
    let torn = &wrote(&key, "2", "3")[..40];
    let (restored, said) = restored(&scratch, &[whole, String::from(torn)]);
    assert_eq!(restored.restored, ["gone"], "{said}");
    assert_eq!(value(&key), "1");
}

#[test]
fn an_undo_that_a_crash_cut_short_is_carried_out_again() {
    let scratch = Scratch::new("journal-again");
    let key = scratch.key("key", "1");
    let other = scratch.key("other", "8");
    let lines = [
        wrote(&other, "7", "8"),
        wrote(&key, "1", "2"),
        String::from(r#"{"undoing":2}"#),
        String::new(),
    ];
    let (restored, said) = restored(&scratch, &lines);
    assert_eq!(restored.restored, ["gone"], "{said}");
    assert_eq!(
        (value(&key), value(&other)),
        (String::from("1"), String::from("7"))
    );
}

#[test]
fn what_was_undone_is_not_undone_again() {
    let scratch = Scratch::new("journal-once");
    let key = scratch.key("key", "2");
    let lines = [
        wrote(&key, "1", "2"),
        String::from(r#"{"undone":1}"#),
        String::new(),
    ];
    let (restored, said) = restored(&scratch, &lines);
    assert_eq!(restored.restored, ["gone"], "{said}");
    assert_eq!(value(&key), "2");
}

#[test]
fn a_command_in_doubt_may_fail_and_another_may_not() {
    let ran = |undo: &str| {
        let entry = Entry::Ran {
            host: Host::Local,
            argv: vec![String::from("true")],
            undo: vec![String::from(undo)],
        };
        serde_json::to_string(&entry).unwrap()
    };
    let scratch = Scratch::new("journal-doubt");
    // The last line may not have been carried out.
    let (last, said) = restored(&scratch, &[ran("false"), String::new()]);
    assert_eq!(last.restored, ["gone"], "{said}");
    let lines = [ran("false"), ran("true"), String::new()];
    let (first, said) = restored(&scratch, &lines);
    assert_eq!(first.left.len(), 1, "{said}");
    assert!(said.contains("keeps the rest"), "{said}");
}

#[test]
fn a_line_that_cannot_be_read_is_named_and_the_others_are_undone() {
    let scratch = Scratch::new("journal-strange");
    let key = scratch.key("key", "2");
    let lines = [
        wrote(&key, "1", "2"),
        String::from(r#"{"did":"flew"}"#),
        String::new(),
    ];
    let (restored, said) = restored(&scratch, &lines);
    assert_eq!(restored.left.len(), 1);
    assert!(said.contains("flew"), "{said}");
    assert_eq!(value(&key), "1");
}

#[test]
fn the_journal_of_a_running_lab_is_not_touched() {
    let scratch = Scratch::new("journal-living");
    let key = scratch.key("key", "1");
    let mut journal = Journal::begin(&scratch.0, "mine").unwrap();
    journal.write(&Host::Local, &key, "1", "2").unwrap();
    let mut out = Vec::new();
    let restored = restore_all(&scratch.0, &mut out).unwrap();
    assert_eq!(restored.living, ["mine"]);
    assert!(
        String::from_utf8(out)
            .unwrap()
            .contains("is running as process")
    );
    assert!(left_behind(&scratch.0).is_empty());
    assert_eq!(value(&key), "2");
    assert_eq!(journal.restore(), NOTHING);
}

#[test]
fn a_lab_that_was_killed_and_not_waited_for_has_ended() {
    let scratch = Scratch::new("journal-zombie");
    let key = scratch.key("key", "2");
    let mut child = std::process::Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let process = child.id();
    let began = Entry::Began {
        run: String::from("killed"),
        process,
        process_start: ProcessStat::of(process).unwrap().start,
        boot: left::boot(),
        session: 0,
    };
    let began = serde_json::to_string(&began).unwrap();
    let text = format!("{began}\n{}\n", wrote(&key, "1", "2"));
    std::fs::write(scratch.0.join("killed.journal"), text).unwrap();
    assert_eq!(left::living(&scratch.0).unwrap().process, process);
    child.kill().unwrap();
    // It is not waited for: it stays a zombie.
    while ProcessStat::of(process).unwrap().is_living() {
        std::thread::yield_now();
    }
    assert_eq!(left::living(&scratch.0), None);
    assert_eq!(left_behind(&scratch.0).len(), 1);
    let restored = restore_all(&scratch.0, &mut Vec::new()).unwrap();
    assert_eq!(restored.restored, ["killed"]);
    assert_eq!(value(&key), "1");
    child.wait().unwrap();
}

#[test]
fn a_second_journal_of_the_same_run_is_refused() {
    let scratch = Scratch::new("journal-same");
    let journal = Journal::begin(&scratch.0, "run").unwrap();
    let error = Journal::begin(&scratch.0, "run").unwrap_err();
    assert!(error.to_string().contains("lab restore"), "{error}");
    assert_eq!(journal.restore(), NOTHING);
}

#[test]
fn without_journals_there_is_nothing_to_restore() {
    let scratch = Scratch::new("journal-none");
    let mut out = Vec::new();
    let folder = scratch.0.join("missing");
    assert_eq!(restore_all(&folder, &mut out).unwrap(), Restored::default());
    assert!(
        String::from_utf8(out)
            .unwrap()
            .starts_with("nothing to restore")
    );
}
