//! `millstream ab` beside Debian's ab: the same server, the same options, the same report except for measured times.

/// The server of both.
mod server;

use crate::assert_contains;
use server::{Behaviour, Server};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const AB: &str = "/usr/bin/ab";

/// The output of one of the two, and the requests that its server received.
struct Trial {
    status: Option<i32>,
    out: String,
    err: String,
    received: Vec<Vec<u8>>,
}

/// Runs both with `options` and a URL of `server`, and compares everything that does not depend on time.
#[track_caller]
fn check(behaviour: Behaviour, options: &[&str]) -> [Trial; 2] {
    let server = Server::start(behaviour);
    let trials = both(&server, options);
    let [theirs, ours] = &trials;
    assert_eq!(ours.status, theirs.status, "{}\n{}", ours.err, theirs.err);
    assert_eq!(form(&ours.out), form(&theirs.out));
    assert_eq!(determined(&ours.out), determined(&theirs.out));
    assert_eq!(form(&without_ours(&ours.err)), form(&theirs.err));
    assert_eq!(sorted(&ours.received), sorted(&theirs.received));
    trials
}

fn both(server: &Server, options: &[&str]) -> [Trial; 2] {
    let url = format!("http://{}/page?a=b", server.address);
    let mut theirs = Command::new(AB);
    let mut ours = Command::new(env!("CARGO_BIN_EXE_millstream"));
    ours.arg("ab");
    [&mut theirs, &mut ours].map(|command| {
        let output = run(command.args(options).arg(&url));
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Trial {
            status: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
            received: server.take_received(),
        }
    })
}

fn run(command: &mut Command) -> Output {
    match command.output() {
        Ok(output) => output,
        Err(error) => panic!("{command:?}: {error}. ab is in the package apache2-utils"),
    }
}

/// The text without numbers, widths and warnings that depend on measured times.
fn form(text: &str) -> String {
    let mut form = String::new();
    for line in text.lines() {
        let measured = [
            "WARNING: The median",
            "ERROR: The median",
            "        These",
            "       deviation",
        ];
        if measured.iter().any(|start| line.starts_with(start)) {
            continue;
        }
        let mut number = false;
        for letter in line.chars() {
            if letter.is_ascii_digit() || (letter == '.' && number) {
                if !number {
                    form.truncate(form.trim_end_matches(' ').len());
                    form.push_str(" 0");
                }
                number = true;
            } else {
                form.push(letter);
                number = false;
            }
        }
        form.push('\n');
    }
    form
}

/// The lines whose numbers depend only on the server and the options.
fn determined(text: &str) -> Vec<&str> {
    const LABELS: [&str; 12] = [
        "Server Software:",
        "Server Port:",
        "Document Path:",
        "Document Length:",
        "Concurrency Level:",
        "Complete requests:",
        "Failed requests:",
        "   (Connect:",
        "Non-2xx responses:",
        "Keep-Alive requests:",
        "Total ",
        "HTML transferred:",
    ];
    text.lines()
        .filter(|line| !line.starts_with("Total: "))
        .filter(|line| LABELS.iter().any(|label| line.contains(label)))
        .collect()
}

fn without_ours(err: &str) -> String {
    let lines = err.lines().filter(|line| !line.starts_with("millstream: "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// With several connections requests arrive in any order.
fn sorted(received: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut received = received.to_vec();
    received.sort_unstable();
    received
}

/// A temporary folder of one test, removed when it ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("millstream-ab-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn plain_runs_have_the_same_report() {
    check(Behaviour::Answers, &[]);
    check(Behaviour::Answers, &["-n", "20"]);
    check(Behaviour::Answers, &["-n", "20", "-c", "4", "-d", "-S"]);
    check(Behaviour::Answers, &["-n", "20", "-q", "-c", "20"]);
}

#[test]
fn progress_has_the_same_lines() {
    let [_, ours] = check(Behaviour::Answers, &["-n", "350", "-c", "3", "-k"]);
    assert!(
        ours.err.starts_with("Completed 100 requests\n"),
        "{}",
        ours.err
    );
    assert_contains(&ours.err, "Finished 350 requests\n");
}

#[test]
fn kept_connections_carry_the_same_requests() {
    check(Behaviour::Answers, &["-k", "-n", "40"]);
    check(Behaviour::Answers, &["-k", "-n", "40", "-c", "4"]);
    check(Behaviour::Answers, &["-k", "-i", "-n", "10"]);
}

#[test]
fn bodies_and_methods_are_the_same() {
    let folder = Folder::new("bodies");
    let body = folder.file("body");
    std::fs::write(&body, "name=value&other=1").unwrap();
    check(Behaviour::Answers, &["-n", "5", "-p", &body]);
    check(
        Behaviour::Answers,
        &["-n", "5", "-k", "-u", &body, "-T", "text/csv"],
    );
    check(Behaviour::Answers, &["-n", "5", "-p", &body, "-m", "PATCH"]);
    check(Behaviour::Answers, &["-n", "5", "-i"]);
    check(Behaviour::Answers, &["-n", "5", "-m", "DELETE"]);
}

#[test]
fn fields_are_the_same() {
    check(
        Behaviour::Answers,
        &[
            "-n",
            "3",
            "-C",
            "a=1",
            "-A",
            "user:secret",
            "-H",
            "X-One: 1",
            "-H",
            "Accept: text/html",
        ],
    );
    check(
        Behaviour::Answers,
        &[
            "-n",
            "3",
            "-H",
            "host: other.example",
            "-H",
            "User-Agent: me",
            "-P",
            "a:b",
        ],
    );
}

#[test]
fn missing_pages_are_reported_as_responses_other_than_2xx() {
    let [_, ours] = check(Behaviour::Missing, &["-n", "10", "-c", "2"]);
    assert_contains(&ours.out, "Non-2xx responses:      10\n");
}

#[test]
fn lengths_that_differ_are_failures_unless_they_are_expected() {
    let [_, ours] = check(Behaviour::Varies, &["-n", "10"]);
    assert_contains(&ours.out, "Failed requests:        9\n");
    let [_, ours] = check(Behaviour::Varies, &["-n", "10", "-l"]);
    assert_contains(&ours.out, "Failed requests:        0\n");
}

#[test]
fn servers_that_close_early_are_reported_the_same_way() {
    for behaviour in [
        Behaviour::ClosesInHead,
        Behaviour::ClosesInContent,
        Behaviour::ClosesAtOnce,
    ] {
        let [_, ours] = check(behaviour, &["-n", "9"]);
        let failed = "   (Connect: 0, Receive: 0, Length: 3, Exceptions: 0)\n";
        assert_contains(&ours.out, failed);
        check(behaviour, &["-n", "9", "-k"]);
    }
}

#[test]
fn a_reset_ends_both_at_the_same_request() {
    let [_, ours] = check(Behaviour::Resets, &["-n", "9"]);
    assert!(
        ours.out.ends_with("Total of 2 requests completed\n"),
        "{}",
        ours.out
    );
    assert_eq!(ours.status, Some(104));
}

/// ab counts a reset thrice, as a failure to receive, a wrong length and an exception; we count it once.
#[test]
fn with_r_resets_are_counted_and_both_go_on() {
    let server = Server::start(Behaviour::Resets);
    let [theirs, ours] = both(&server, &["-n", "9", "-r"]);
    assert_eq!((ours.status, theirs.status), (Some(0), Some(0)));
    for trial in [&theirs, &ours] {
        assert_contains(&trial.out, "Complete requests:      9\n");
    }
    let failed = |trial: &Trial| {
        trial
            .out
            .lines()
            .find(|line| line.contains("Receive: 3"))
            .map(String::from)
    };
    assert!(failed(&theirs).is_some(), "{}", theirs.out);
    let expected = "   (Connect: 0, Receive: 3, Length: 0, Exceptions: 0)";
    assert_eq!(failed(&ours).as_deref(), Some(expected));
    assert_contains(&ours.err, "millstream: ");
}

#[test]
fn html_reports_are_the_same() {
    let options = [
        "-n", "6", "-c", "2", "-k", "-x", "border=1", "-y", "r", "-z", "c",
    ];
    check(Behaviour::Answers, &options);
    check(Behaviour::Missing, &["-w", "-n", "6"]);
}

#[test]
fn files_have_the_same_lines() {
    let folder = Folder::new("files");
    let server = Server::start(Behaviour::Answers);
    let texts = [AB, env!("CARGO_BIN_EXE_millstream")].map(|program| {
        let name = Path::new(program).file_name().unwrap().to_str().unwrap();
        let (csv, plot) = (
            folder.file(&format!("{name}.csv")),
            folder.file(&format!("{name}.tsv")),
        );
        let mut command = Command::new(program);
        if program != AB {
            command.arg("ab");
        }
        let url = format!("http://{}/", server.address);
        run(command.args(["-n", "100", "-e", &csv, "-g", &plot, &url]));
        [csv, plot].map(|path| std::fs::read_to_string(path).unwrap())
    });
    let [[their_csv, their_plot], [our_csv, our_plot]] = texts;
    assert_eq!(form(&our_csv), form(&their_csv));
    // Names of days and months, in case midnight passes.
    let columns =
        |text: &str| -> Vec<usize> { text.lines().map(|line| line.split('\t').count()).collect() };
    assert_eq!(columns(&our_plot), columns(&their_plot));
    assert_eq!(our_plot.lines().next(), their_plot.lines().next());
    assert_eq!(our_plot.lines().count(), 101);
}

#[test]
fn a_refused_connection_has_the_same_message() {
    let address = Server::unlistened();
    let url = format!("http://{address}/");
    let outputs = [
        run(Command::new(AB).args(["-n", "3", &url])),
        run(Command::new(env!("CARGO_BIN_EXE_millstream")).args(["ab", "-n", "3", &url])),
    ];
    let [theirs, ours] = outputs.map(|output| {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (
            output.status.code(),
            text(output.stdout),
            without_ours(&text(output.stderr)),
        )
    });
    assert_eq!(ours, theirs);
    assert_eq!(ours.0, Some(111));
}

#[test]
fn wrong_command_lines_have_the_same_messages() {
    for options in [
        &[][..],
        &["-h"],
        &["-V"],
        &["-wV"],
        &["-n"],
        &["-Q", "-n", "5", "http://127.0.0.1/"],
        &["-n", "0", "http://127.0.0.1/"],
        &["-n", "5", "-c", "6", "http://127.0.0.1/"],
        &["-c", "-1", "http://127.0.0.1/"],
        &["-c", "0", "http://127.0.0.1:9/"],
        &["-i", "-m", "X", "-p", "/dev/null", "http://127.0.0.1/"],
        &["-p", "/no/such/file", "http://127.0.0.1/"],
        &["http://127.0.0.1"],
        &["http://127.0.0.1:0/"],
        &["http://[::1/"],
        &["http://127.0.0.1/", "-n", "5"],
        &["http://nowhere.invalid/"],
        &["-B", "nowhere.invalid", "http://127.0.0.1/"],
    ] {
        let theirs = run(Command::new(AB).args(options));
        let ours = run(Command::new(env!("CARGO_BIN_EXE_millstream"))
            .arg("ab")
            .args(options));
        assert_eq!(ours.status.code(), theirs.status.code(), "{options:?}");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(AB, "ab");
        assert_eq!(text(&ours.stdout), text(&theirs.stdout), "{options:?}");
        assert_eq!(text(&ours.stderr), text(&theirs.stderr), "{options:?}");
    }
}
