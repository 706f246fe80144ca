//! The command of each command line, and the errors of wrong ones.

use super::*;
use clap::CommandFactory;

fn command(line: &str) -> Command {
    match parse(line.split(' ')) {
        Ok(options) => options.command,
        Err(stopped) => panic!("{line}: {}", stopped.text),
    }
}

fn choice(recipe: &str, size: &str, sets: &[&str]) -> Choice {
    Choice {
        recipe: String::from(recipe),
        size: String::from(size),
        sets: sets.iter().map(|set| String::from(*set)).collect(),
    }
}

#[test]
fn words_are_commands() {
    let cases = [
        ("list", Command::List(List { runs: false })),
        ("list --runs", Command::List(List { runs: true })),
        ("restore", Command::Restore),
        ("env", Command::Env),
        ("runs", Command::Runs(Runs { recipe: None })),
        (
            "run nginx-jemalloc",
            Command::Run(Run {
                choice: choice("nginx-jemalloc", "smoke", &[]),
                manner: Manner::default(),
            }),
        ),
        (
            "run a.toml --size seed --set vars.c=5 --set for.workers=[1,2] -q -y --report out",
            Command::Run(Run {
                choice: choice("a.toml", "seed", &["vars.c=5", "for.workers=[1,2]"]),
                manner: Manner {
                    report: Some(PathBuf::from("out")),
                    quiet: true,
                    yes: true,
                },
            }),
        ),
        (
            "show x --toml",
            Command::Show(Show {
                choice: choice("x", "smoke", &[]),
                toml: true,
            }),
        ),
        (
            "tune x --yes",
            Command::Tune(Tune {
                choice: choice("x", "smoke", &[]),
                yes: true,
            }),
        ),
        (
            "resume",
            Command::Resume(Resume {
                run: String::from("latest"),
                manner: Manner::default(),
            }),
        ),
        (
            "report 2026 --html -",
            Command::Report(Report {
                run: String::from("2026"),
                html: Some(PathBuf::from("-")),
                markdown: None,
                csv: None,
            }),
        ),
        (
            "compare a latest",
            Command::Compare(Compare {
                from: String::from("a"),
                to: String::from("latest"),
            }),
        ),
        (
            "export --json -o x.json",
            Command::Export(Export {
                run: String::from("latest"),
                form: Form {
                    csv: false,
                    json: true,
                },
                output: Some(PathBuf::from("x.json")),
            }),
        ),
        (
            "lint a -",
            Command::Lint(Files {
                files: vec![PathBuf::from("a"), PathBuf::from("-")],
            }),
        ),
        (
            "probe rtt --count 5 -h",
            Command::Probe(Probe {
                words: ["rtt", "--count", "5", "-h"].map(String::from).to_vec(),
            }),
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(command(line), expected, "{line}");
    }
}

#[test]
fn the_store_may_stand_anywhere() {
    for line in ["--store /x runs", "runs --store /x"] {
        let options = parse(line.split(' ')).unwrap();
        assert_eq!(options.store, PathBuf::from("/x"), "{line}");
    }
    let options = parse(["runs"]).unwrap();
    assert_eq!(options.store, PathBuf::from("millstream-lab"));
}

#[test]
fn mistakes_are_answered_with_a_suggestion() {
    let cases = [
        ("rum nginx", "'run'"),
        ("run nginx --sise smoke", "'--size'"),
        ("run nginx --set c", "KEY=VALUE"),
        ("run", "<RECIPE>"),
        ("export latest", "--csv"),
        ("export latest --csv --json", "cannot be used with"),
        ("compare a", "<B>"),
        ("", "Usage:"),
    ];
    for (line, expected) in cases {
        let stopped = parse(line.split_whitespace()).unwrap_err();
        assert_eq!(stopped.status, 2, "{line}");
        assert!(stopped.text.contains(expected), "{line}: {}", stopped.text);
    }
}

#[test]
fn help_is_no_mistake_and_has_at_most_100_columns() {
    let mut helps = vec![String::from("--help")];
    helps.extend(
        Options::command()
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(|command| format!("{} --help", command.get_name())),
    );
    assert_eq!(helps.len(), 14);
    for line in helps {
        let stopped = parse(line.split(' ')).unwrap_err();
        assert_eq!(stopped.status, 0, "{line}");
        assert!(!stopped.text.contains("probe"), "{line}");
        for text in stopped.text.lines() {
            assert!(text.chars().count() <= 100, "{line}: {text}");
        }
    }
}

#[test]
fn options_are_consistent() {
    Options::command().debug_assert();
}
