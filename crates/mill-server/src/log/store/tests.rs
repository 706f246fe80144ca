//! Buffers by size and time, full disks, reopened files: with files in memory and a simulated time.

use super::*;
use mill_config::config::settings::OpenLogFileCache;
use std::cell::RefCell;
use std::rc::Rc;

/// A file whose writes return what the script says, and then succeed.
#[derive(Clone, Debug, Default)]
struct Scripted(Rc<RefCell<Script>>);

#[derive(Debug, Default)]
struct Script {
    content: String,
    calls: usize,
    /// For each call: how many bytes it writes, or its error number.
    answers: Vec<Result<usize, i32>>,
}

impl Write for Scripted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut script = self.0.borrow_mut();
        script.calls += 1;
        let answer = if script.answers.is_empty() {
            Ok(bytes.len())
        } else {
            script.answers.remove(0)
        };
        let taken = answer
            .map_err(io::Error::from_raw_os_error)?
            .min(bytes.len());
        let text = String::from_utf8_lossy(&bytes[..taken]);
        script.content.push_str(&text);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Scripted {
    fn content(&self) -> String {
        self.0.borrow().content.clone()
    }

    fn answer(&self, answers: impl IntoIterator<Item = Result<usize, i32>>) {
        self.0.borrow_mut().answers.extend(answers);
    }
}

const PATH: &str = "/var/log/access.log";

fn store(file: &Scripted) -> Store<Scripted> {
    let refuse = |_: &[u8]| Err(io::Error::from_raw_os_error(13));
    Store::new(vec![(Text::from(PATH), file.clone())], refuse)
}

fn seconds(seconds: u64) -> Instant {
    Instant::default() + Duration::from_secs(seconds)
}

fn hand(store: &mut Store<Scripted>, buffer: Option<LogBuffer>, lines: &str, at: u64) {
    let mut waiting = Waiting::default();
    let place = LogTarget::Opened {
        path: Text::from(PATH),
        buffer,
    };
    let count = lines.lines().count() as u64;
    assert!(waiting.push(&place, lines.as_bytes(), count));
    store.take_in(&waiting, seconds(at));
}

fn buffer(size_bytes: u64, flush: Option<u64>) -> Option<LogBuffer> {
    Some(LogBuffer {
        size_bytes,
        flush: flush.map(Duration::from_secs),
    })
}

#[test]
fn unbuffered_lines_of_a_turn_are_one_write() {
    let file = Scripted::default();
    let mut store = store(&file);
    hand(&mut store, None, "one\ntwo\n", 1);
    assert_eq!(file.content(), "one\ntwo\n");
    assert_eq!(file.0.borrow().calls, 1);
    assert_eq!(store.deadline(), Instant::FAR);
}

#[test]
fn a_buffer_is_written_when_the_next_line_does_not_fit() {
    let file = Scripted::default();
    let mut store = store(&file);
    hand(&mut store, buffer(8, None), "123\n", 1);
    hand(&mut store, buffer(8, None), "567\n", 1);
    assert_eq!(file.content(), "", "it fits exactly");
    hand(&mut store, buffer(8, None), "9\n", 1);
    assert_eq!(file.content(), "123\n567\n");
    hand(&mut store, buffer(8, None), "longer than the buffer\n", 1);
    assert_eq!(file.content(), "123\n567\n9\nlonger than the buffer\n");
    assert_eq!(
        store.deadline(),
        Instant::FAR,
        "without flush= a line waits for ever"
    );
}

#[test]
fn a_buffer_is_written_when_its_first_line_has_waited_for_the_flush_time() {
    let file = Scripted::default();
    let mut store = store(&file);
    hand(&mut store, buffer(100, Some(5)), "a\n", 10);
    hand(&mut store, buffer(100, Some(5)), "b\n", 13);
    assert_eq!(store.deadline(), seconds(15));
    store.expire(seconds(14));
    assert_eq!(file.content(), "");
    store.expire(seconds(15));
    assert_eq!(file.content(), "a\nb\n");
    assert_eq!(store.deadline(), Instant::FAR);
}

#[test]
fn flushing_writes_what_waits() {
    let file = Scripted::default();
    let mut store = store(&file);
    hand(&mut store, buffer(100, Some(60)), "a\n", 1);
    store.flush(seconds(1));
    assert_eq!(file.content(), "a\n");
}

#[test]
fn a_torn_line_is_finished_before_anything_else() {
    let file = Scripted::default();
    let mut store = store(&file);
    file.answer([Ok(6), Err(28)]);
    hand(&mut store, None, "one\ntwo\nthree\n", 1);
    assert_eq!(file.content(), "one\ntw");
    let outcome = store.take_outcome();
    assert_eq!(outcome.lost, 1, "only the third line is lost");
    assert_eq!(outcome.complaints.len(), 1);
    hand(&mut store, None, "four\n", 3);
    assert_eq!(file.content(), "one\ntwo\nfour\n");
}

#[test]
fn a_full_disk_is_not_written_to_for_a_second_and_logged_once_a_minute() {
    let file = Scripted::default();
    let mut store = store(&file);
    file.answer([Err(28), Err(28), Err(28)]);
    hand(&mut store, None, "a\n", 100);
    hand(&mut store, None, "b\n", 100);
    assert_eq!(file.0.borrow().calls, 1, "no attempt within the second");
    hand(&mut store, None, "c\n", 101);
    assert_eq!(file.0.borrow().calls, 2);
    let outcome = store.take_outcome();
    assert_eq!((outcome.lost, outcome.complaints.len()), (3, 1));
    assert_eq!(outcome.complaints[0].fault, Fault::Write(28));
    hand(&mut store, None, "d\n", 160);
    let outcome = store.take_outcome();
    assert_eq!((outcome.lost, outcome.complaints.len()), (1, 1));
    hand(&mut store, None, "e\n", 162);
    assert_eq!(file.content(), "e\n");
    assert_eq!(store.take_outcome(), Outcome::default());
}

#[test]
fn an_interrupted_write_goes_on() {
    let file = Scripted::default();
    let mut store = store(&file);
    file.answer([Err(4), Ok(1)]);
    hand(&mut store, None, "abc\n", 1);
    assert_eq!(file.content(), "abc\n");
    assert_eq!(store.take_outcome(), Outcome::default());
}

#[test]
fn replacing_a_file_writes_its_buffer_to_the_old_one() {
    let (old, new) = (Scripted::default(), Scripted::default());
    let mut store = store(&old);
    hand(&mut store, buffer(100, None), "before\n", 1);
    store.replace(vec![(Text::from(PATH), new.clone())], seconds(2));
    hand(&mut store, None, "after\n", 2);
    assert_eq!(
        (old.content().as_str(), new.content().as_str()),
        ("before\n", "after\n")
    );
}

#[test]
fn a_request_of_the_old_configuration_still_logs_where_that_said() {
    let (old, new) = (Scripted::default(), Scripted::default());
    let mut store = store(&old);
    store.replace(vec![(Text::from("/other"), new.clone())], seconds(2));
    hand(&mut store, None, "late\n", 3);
    assert_eq!(
        (old.content().as_str(), new.content().as_str()),
        ("late\n", "")
    );
}

#[test]
fn lines_for_a_file_that_cannot_be_opened_are_lost_and_counted() {
    let file = Scripted::default();
    let mut store = store(&file);
    store.replace(Vec::new(), seconds(1));
    store.replace(Vec::new(), seconds(2));
    hand(&mut store, None, "a\nb\n", 3);
    let outcome = store.take_outcome();
    assert_eq!(outcome.lost, 2);
    assert_eq!(outcome.complaints[0].fault, Fault::Open(13));
}

thread_local! {
    /// The files that `open` made, in order.
    static OPENED: RefCell<Vec<(String, Scripted)>> = const { RefCell::new(Vec::new()) };
}

fn open(path: &[u8]) -> io::Result<Scripted> {
    let file = Scripted::default();
    let path = String::from_utf8_lossy(path).into_owned();
    OPENED.with_borrow_mut(|opened| opened.push((path, file.clone())));
    Ok(file)
}

fn hand_evaluated(
    store: &mut Store<Scripted>,
    path: &str,
    cache: Option<OpenLogFileCache>,
    at: u64,
) {
    let mut waiting = Waiting::default();
    let place = LogTarget::Evaluated {
        path: path.into(),
        root: b"/".to_vec(),
        cache,
    };
    assert!(waiting.push(&place, b"line\n", 1));
    store.take_in(&waiting, seconds(at));
}

/// The paths in the order in which they were opened since the last call.
fn opened() -> Vec<String> {
    OPENED.with_borrow_mut(|opened| opened.drain(..).map(|(path, _)| path).collect())
}

#[test]
fn without_a_cache_an_evaluated_path_is_opened_for_each_batch() {
    let mut store = Store::new(Vec::new(), open);
    hand_evaluated(&mut store, "/a", None, 1);
    hand_evaluated(&mut store, "/a", None, 1);
    assert_eq!(opened(), ["/a", "/a"]);
    assert_eq!(store.deadline(), Instant::FAR, "nothing stays open");
}

#[test]
fn the_cache_keeps_the_files_used_last() {
    let cache = Some(OpenLogFileCache {
        max: 2,
        inactive: Duration::from_secs(10),
        min_uses: 1,
        valid: Duration::from_secs(60),
    });
    let mut store = Store::new(Vec::new(), open);
    for path in ["/a", "/b", "/a", "/c", "/a", "/b"] {
        hand_evaluated(&mut store, path, cache, 1);
    }
    assert_eq!(opened(), ["/a", "/b", "/c", "/b"]);
    assert_eq!(store.deadline(), seconds(11));
    store.expire(seconds(11));
    hand_evaluated(&mut store, "/a", cache, 12);
    assert_eq!(opened(), ["/a"], "unused for ten seconds, it was closed");
    for at in [20, 29, 38, 47, 56, 65, 71] {
        hand_evaluated(&mut store, "/a", cache, at);
    }
    assert!(opened().is_empty());
    hand_evaluated(&mut store, "/a", cache, 72);
    assert_eq!(opened(), ["/a"], "valid for sixty seconds");
}

#[test]
fn the_cache_keeps_only_files_that_are_used_often_enough() {
    let cache = Some(OpenLogFileCache {
        max: 8,
        inactive: Duration::from_secs(10),
        min_uses: 3,
        valid: Duration::from_secs(60),
    });
    let mut store = Store::new(Vec::new(), open);
    for _ in 0..5 {
        hand_evaluated(&mut store, "/a", cache, 1);
    }
    assert_eq!(opened(), ["/a"; 3]);
}

#[test]
fn below_a_root_that_does_not_exist_no_log_is_created() {
    let mut store = Store::new(Vec::new(), open);
    let mut waiting = Waiting::default();
    let place = LogTarget::Evaluated {
        path: b"/a".to_vec(),
        root: b"/no such directory".to_vec(),
        cache: None,
    };
    assert!(waiting.push(&place, b"line\n", 1));
    store.take_in(&waiting, seconds(1));
    assert!(opened().is_empty());
    let outcome = store.take_outcome();
    assert_eq!(
        (outcome.lost, &outcome.complaints[0].fault),
        (1, &Fault::NoRoot(2))
    );
}
