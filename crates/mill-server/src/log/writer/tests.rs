//! The thread with real files: whole lines from several workers, a full queue, reopening.

use super::*;
use crate::log::WorkerLog;
use crate::log::queue::QUEUE_BYTES_MAX;
use mill_config::config::LogBuffer;
use mill_runtime::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A temporary directory of one test.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mill-server-log-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A failure only leaves files in /tmp.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(path: &Path) -> Text {
    Text::from(path.as_os_str().as_bytes())
}

fn opened(path: &Path) -> (Text, File) {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    (text(path), file)
}

fn start(files: LogFiles) -> LogWriter {
    let environment = WriterEnvironment {
        pid: 7,
        utc_offset: |_| 0,
        clock: || {
            (
                Instant::from_nanos(1_000_000_000),
                UnixTime::from_seconds(0),
            )
        },
    };
    LogWriter::start(files, environment).unwrap()
}

fn log_line(log: &WorkerLog, path: &Text, buffer: Option<LogBuffer>, line: &str) {
    log.add_line(PlaceRef::Opened { path, buffer }, line.as_bytes());
}

#[test]
fn lines_of_several_workers_are_whole_and_all_there() {
    let directory = Directory::new();
    let path = directory.path("access.log");
    let writer = start(LogFiles {
        files: vec![opened(&path)],
        error_logs: Vec::new(),
    });
    thread::scope(|scope| {
        for worker in 0..4 {
            let (sender, path) = (writer.sender(), text(&path));
            scope.spawn(move || {
                let log = WorkerLog::new(&sender, worker);
                for turn in 0..200 {
                    for line in 0..5 {
                        log_line(
                            &log,
                            &path,
                            None,
                            &format!("{worker} {turn} {line} {}\n", "x".repeat(90)),
                        );
                    }
                    assert_eq!(log.end_of_turn(Instant::from_nanos(1)), 0);
                }
            });
        }
    });
    writer.stop();
    let content = std::fs::read_to_string(&path).unwrap();
    assert_eq!(content.lines().count(), 4 * 200 * 5);
    for worker in 0..4 {
        let prefix = format!("{worker} ");
        let mine: Vec<_> = content
            .lines()
            .filter(|line| line.starts_with(&prefix))
            .collect();
        let expected = (0..200).flat_map(|turn| (0..5).map(move |line| (turn, line)));
        let expected =
            expected.map(|(turn, line)| format!("{worker} {turn} {line} {}", "x".repeat(90)));
        assert!(
            mine.into_iter().eq(expected),
            "worker {worker} in its order"
        );
    }
}

#[test]
fn what_a_full_queue_cannot_take_is_lost_whole_and_counted() {
    // There is no writer: the queue only fills.
    let shared = Arc::new(Shared::new());
    let log = WorkerLog::new(&LogSender(Sink::Writer(Arc::clone(&shared))), 1);
    let path = Text::from("/log");
    let line = format!("{}\n", "x".repeat(QUEUE_BYTES_MAX / 2 - 1));
    let now = Instant::from_nanos(1);
    let hand_over = || {
        log_line(&log, &path, None, &line);
        log.end_of_turn(now)
    };
    assert_eq!(
        [hand_over(), hand_over(), hand_over(), hand_over()],
        [0, 0, 1, 1]
    );
    assert_eq!(log.loss_to_report(), None, "there is no room to say so yet");
    let mut taken = Vec::new();
    shared.drain(&mut Waiting::default(), |waiting| {
        taken.push(waiting.bytes.len())
    });
    assert_eq!(taken, [QUEUE_BYTES_MAX], "two lines, both whole");
    assert_eq!(log.loss_to_report(), Some(2));
    assert_eq!(log.loss_to_report(), None, "said once");
}

#[test]
fn reopening_separates_what_came_before_from_what_comes_after() {
    let directory = Directory::new();
    let (path, moved) = (directory.path("access.log"), directory.path("access.log.1"));
    let writer = start(LogFiles {
        files: vec![opened(&path)],
        error_logs: Vec::new(),
    });
    let log = WorkerLog::new(&writer.sender(), 1);
    let buffer = Some(LogBuffer {
        size_bytes: 1000,
        flush: None,
    });
    log_line(&log, &text(&path), buffer, "before\n");
    log.end_of_turn(Instant::from_nanos(1));
    std::fs::rename(&path, &moved).unwrap();
    writer.replace(LogFiles {
        files: vec![opened(&path)],
        error_logs: Vec::new(),
    });
    // The second command is handled after the first, and so are the lines in between.
    log_line(&log, &text(&path), buffer, "after\n");
    drop(log);
    writer.stop();
    let all = [&moved, &path].map(|path| std::fs::read_to_string(path).unwrap());
    assert_eq!(all.concat(), "before\nafter\n");
    assert!(all[0].starts_with("before\n"), "{all:?}");
}

#[test]
fn stopping_writes_every_buffer() {
    let directory = Directory::new();
    let path = directory.path("access.log");
    let writer = start(LogFiles {
        files: vec![opened(&path)],
        error_logs: Vec::new(),
    });
    let log = WorkerLog::new(&writer.sender(), 1);
    let buffer = Some(LogBuffer {
        size_bytes: 1 << 20,
        flush: Some(Duration::from_secs(3600)),
    });
    log_line(&log, &text(&path), buffer, "last words\n");
    drop(log);
    writer.stop();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "last words\n");
}

#[test]
fn a_failed_write_is_logged_in_the_error_log_and_counted() {
    let directory = Directory::new();
    let errors = directory.path("error.log");
    let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
    let error_log = ErrorLog {
        target: mill_config::config::ErrorLogTarget::File(text(&errors)),
        level: LogLevel::Error,
    };
    let files = vec![(Text::from("/dev/full"), full), opened(&errors)];
    let writer = start(LogFiles {
        files,
        error_logs: vec![error_log],
    });
    let shared = Arc::clone(&writer.shared);
    let log = WorkerLog::new(&writer.sender(), 1);
    log_line(&log, &Text::from("/dev/full"), None, "a\nb\n");
    drop(log);
    writer.stop();
    let expected = "1970/01/01 00:00:00 [alert] 7#7: write() to \"/dev/full\" failed \
                    (28: No space left on device)\n";
    assert_eq!(std::fs::read_to_string(&errors).unwrap(), expected);
    assert_eq!(shared.take_lost_by_writer(), 2);
}

#[test]
fn memory_keeps_lines_by_path() {
    let sender = LogSender::memory();
    let log = WorkerLog::new(&sender, 1);
    log_line(&log, &Text::from("/a"), None, "one\n");
    log_line(&log, &Text::from("/b"), None, "two\n");
    log_line(&log, &Text::from("/a"), None, "three\n");
    assert!(
        sender.lines("/a").is_empty(),
        "a turn's lines come at its end"
    );
    assert_eq!(log.end_of_turn(Instant::from_nanos(1)), 0);
    assert_eq!(sender.lines("/a"), ["one", "three"]);
    assert_eq!(sender.lines("/b"), ["two"]);
}
