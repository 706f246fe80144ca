//! Lines in a file, a block on a terminal, nothing when quiet.

use super::*;
use crate::native::sample_results::{options, results};

fn shown(line: &str, columns: Option<u16>) -> String {
    let mut err = Vec::new();
    let terminal = Terminal {
        screen_columns: columns,
        colour: false,
    };
    let options = options(line);
    let mut screen = Screen::new(&options, terminal, &mut err);
    screen.begin();
    for period in &results(false).periods {
        screen.show(period);
    }
    screen.clear();
    String::from_utf8(err).unwrap()
}

#[test]
fn without_a_terminal_it_is_a_line_an_interval() {
    assert_eq!(
        shown("--warm-up 5s http://a/", None),
        "warming up for 5 s\n\
         \x20   1 s        600/s  p50  3.00 ms  p99  5.94 ms  max  6.00 ms  errors 2  open 10\n\
         \x20   2 s        400/s  p50  2.00 ms  p99  3.96 ms  max  4.00 ms  errors 1  open 10\n"
    );
}

#[test]
fn without_answers_the_time_since_the_last_one_is_shown() {
    let said = |columns| {
        let mut err = Vec::new();
        let terminal = Terminal {
            screen_columns: columns,
            colour: false,
        };
        let mut screen = Screen::new(&options("-d 4s http://a/"), terminal, &mut err);
        let [first, mut silent] = <[Period; 2]>::try_from(results(false).periods).unwrap();
        screen.show(&first);
        for second in 2..4 {
            (silent.begin, silent.end) = (silent.end, Duration::from_secs(second));
            silent.answered = 0;
            screen.show(&silent);
        }
        String::from_utf8(err).unwrap()
    };
    let lines = said(None);
    assert!(
        lines.contains("\n    2 s          0/s  no answer for 1 s "),
        "{lines}"
    );
    assert!(
        lines.contains("\n    3 s          0/s  no answer for 2 s "),
        "{lines}"
    );
    assert!(!lines.contains("p50     0"), "{lines}");
    let block = said(Some(80));
    assert!(
        block.contains("  latency  no answer for 2 s\x1b[K"),
        "{block:?}"
    );
}

#[test]
fn on_a_terminal_it_is_one_block_that_goes_away() {
    let text = shown("-d 4s -r 700 http://a/", Some(100));
    let last = text.rsplit("\x1b[4A\r").nth(1).unwrap();
    let lines: Vec<&str> = last.split("\x1b[K\n").collect();
    assert_eq!(
        lines,
        [
            "  ━━━━━━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌  2 s of 4 s",
            "  rate     400/s        █▅  of 700/s",
            "  latency  p50 2.00 ms    p99 3.96 ms    max 4.00 ms ",
            "  errors   3            connections 10",
            "\x1b[J",
        ]
    );
    assert!(text.ends_with("\x1b[4A\r\x1b[J"), "{text:?}");
}

#[test]
fn a_narrow_terminal_breaks_no_line() {
    for line in shown("http://a/", Some(20)).split("\x1b[K\n") {
        // The rest of cursor sequences is no text.
        let line = line.rsplit(['\r', '\x1b']).next().unwrap();
        assert!(line.chars().count() < 20, "{line:?}");
    }
}

#[test]
fn quiet_is_quiet() {
    assert_eq!(shown("-q --warm-up 1s http://a/", None), "");
    assert_eq!(shown("-q http://a/", Some(80)), "");
}

#[test]
fn a_closed_standard_error_ends_nothing() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _bytes: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (mut closed, options) = (Closed, options("http://a/"));
    let mut screen = Screen::new(&options, Terminal::default(), &mut closed);
    for period in &results(false).periods {
        screen.show(period);
    }
    assert_eq!(screen.form, Form::Silent);
}

#[test]
fn the_clock_has_no_meaningless_digits() {
    for (millis, expected) in [(0, "0 s"), (1003, "1 s"), (1995, "2 s"), (250, "0.25 s")] {
        assert_eq!(seconds(Duration::from_millis(millis)), expected);
    }
}
