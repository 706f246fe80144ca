//! The variables `EF_…`, and the options of `--stack` that they become: the table of docs/onload.md.

use std::collections::BTreeMap;

/// How a value becomes one of ours.
#[derive(Clone, Copy)]
enum Form {
    /// The same number.
    Number,
    /// A number of seconds, or of milliseconds.
    Seconds,
    Milliseconds,
    /// 0 is off.
    Switch,
    /// Bytes of segments of 1460 bytes; 0 is the default.
    Segments,
    /// 1 is `thread`, 0 is `process`.
    Stacks,
}

const OPTIONS: &[(&str, &str, Form)] = &[
    ("EF_MAX_ENDPOINTS", "connections", Form::Number),
    ("EF_TCP_TCONST_MSL", "msl", Form::Seconds),
    ("EF_TCP_SYNRECV_MAX", "half-open", Form::Number),
    ("EF_TCP_FIN_TIMEOUT", "fin-wait", Form::Seconds),
    ("EF_TCP_INITIAL_CWND", "initial-window", Form::Segments),
    (
        "EF_TCP_SHARED_LOCAL_PORTS_REUSE_FAST",
        "time-wait-reuse",
        Form::Switch,
    ),
    ("EF_STACK_PER_THREAD", "stacks", Form::Stacks),
    ("EF_USE_HUGE_PAGES", "hugepages", Form::Switch),
    ("EF_AF_XDP_ZEROCOPY", "zero-copy", Form::Switch),
    ("EF_RXQ_SIZE", "receive-frames", Form::Number),
    ("EF_TXQ_SIZE", "transmit-frames", Form::Number),
    ("EF_EVS_PER_POLL", "burst", Form::Number),
    ("EF_TCP_RCVBUF", "receive-buffer", Form::Number),
    ("EF_TCP_SNDBUF", "send-buffer", Form::Number),
    (
        "EF_INVALID_ACK_RATELIMIT",
        "invalid-ack-interval",
        Form::Milliseconds,
    ),
    ("EF_RETRANSMIT_THRESHOLD", "retries", Form::Number),
    ("EF_RETRANSMIT_THRESHOLD_SYN", "syn-retries", Form::Number),
    (
        "EF_RETRANSMIT_THRESHOLD_SYNACK",
        "syn-ack-retries",
        Form::Number,
    ),
    (
        "EF_RETRANSMIT_THRESHOLD_ORPHAN",
        "orphan-retries",
        Form::Number,
    ),
    ("EF_RFC_RTO_INITIAL", "rto-initial", Form::Milliseconds),
    ("EF_RFC_RTO_MIN", "rto-min", Form::Milliseconds),
    ("EF_RFC_RTO_MAX", "rto-max", Form::Milliseconds),
];

/// These say when to poll, together.
const POLL: &str = "EF_POLL_USEC";
const SLEEP: &str = "EF_SLEEP_SPIN_USEC";
const EPOLL_SPIN: &str = "EF_EPOLL_SPIN";

/// 1 is a larger `burst`, unless `EF_EVS_PER_POLL` says how large.
const THROUGHPUT: &str = "EF_HIGH_THROUGHPUT_MODE";
const EVENTS_PER_POLL: &str = "EF_EVS_PER_POLL";

/// 0 is a window as large as `EF_TCP_RCVBUF` from the start, 1 one that grows up to that, as ours do.
const RECEIVE_MODE: &str = "EF_TCP_RCVBUF_MODE";
const RECEIVE_BUFFER: &str = "EF_TCP_RCVBUF";

/// Variables that mean something by others, too.
const TOGETHER: [&str; 5] = [POLL, SLEEP, EPOLL_SPIN, THROUGHPUT, RECEIVE_MODE];

/// Onload's `infinite` spinning, in microseconds: from here on there is no sleep.
const FOR_EVER_USEC: u64 = 1_000_000;

/// The options of `--stack`, and the variables that become none.
pub(super) fn options(
    variables: &BTreeMap<String, String>,
) -> Result<(Vec<String>, Vec<String>), String> {
    let (mut options, mut without) = (Vec::new(), Vec::new());
    for (name, value) in variables {
        if TOGETHER.contains(&name.as_str()) {
            continue;
        }
        let known = OPTIONS.iter().find(|(onloads, ..)| onloads == name);
        match known {
            Some((_, option, form)) => {
                let number = number(name, value)?;
                options.extend(form.value(number).map(|value| format!("{option}={value}")));
            }
            None => without.push(name.clone()),
        }
    }
    options.extend(polling(variables)?);
    let value = |name| value(variables, name);
    if value(THROUGHPUT)?.is_some_and(|on| on != 0) && value(EVENTS_PER_POLL)?.is_none() {
        options.push(String::from("burst=256"));
    }
    match (value(RECEIVE_MODE)?, value(RECEIVE_BUFFER)?) {
        (Some(0), Some(bytes)) => options.push(format!("receive-buffer-first={bytes}")),
        (Some(0), None) => without.push(RECEIVE_MODE.to_owned()),
        _ => {}
    }
    Ok((options, without))
}

/// The variables of the table, with the values that options in force mean.
pub(super) fn in_force(options: &[(String, String)]) -> Vec<(String, String)> {
    let value_of = |name: &str| {
        let found = options.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    };
    let each = OPTIONS.iter().filter_map(|(onloads, option, form)| {
        Some(((*onloads).to_owned(), form.back(value_of(option)?)))
    });
    let polling = value_of("polling").unwrap_or_default();
    let usec = |text: &str| duration_us(text).map(|time| time.to_string());
    let spinning = match polling.split_once('=') {
        None if polling == "interrupt" => Some((POLL, String::from("0"))),
        None if polling == "spin" => Some((POLL, FOR_EVER_USEC.to_string())),
        Some(("adaptive", time)) => usec(time).map(|time| (POLL, time)),
        Some(("sleep-spin", time)) => usec(time).map(|time| (SLEEP, time)),
        _ => None,
    };
    let spinning = spinning.map(|(name, value)| (name.to_owned(), value));
    each.chain(spinning).collect()
}

/// A size with its unit, in bytes.
fn bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.strip_suffix('k') {
        Some(digits) => (digits, 10),
        None => (text.strip_suffix('m')?, 20),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A time with its unit, in microseconds.
fn duration_us(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let each = match text.get(digits.len()..)? {
        "us" => 1,
        "ms" => 1000,
        "s" => 1_000_000,
        "m" | "min" => 60_000_000,
        "h" => 3_600_000_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(each)
}

fn polling(variables: &BTreeMap<String, String>) -> Result<Option<String>, String> {
    let value = |name| value(variables, name);
    let (poll, sleep) = (value(POLL)?, value(SLEEP)?.filter(|sleep| *sleep > 0));
    // Without a time to spin for, Onload does not spin either if it is to.
    let never_spins = value(EPOLL_SPIN)? == Some(0);
    Ok(match (poll, sleep) {
        (_, Some(sleep)) => Some(format!("polling=sleep-spin={sleep}us")),
        (Some(0), None) => Some(String::from("polling=interrupt")),
        (Some(FOR_EVER_USEC..), None) => Some(String::from("polling=spin")),
        (Some(poll), None) => Some(format!("polling=adaptive={poll}us")),
        (None, None) => never_spins.then(|| String::from("polling=interrupt")),
    })
}

fn value(variables: &BTreeMap<String, String>, name: &str) -> Result<Option<u64>, String> {
    let value = variables.get(name);
    value.map(|value| number(name, value)).transpose()
}

fn number(name: &str, value: &str) -> Result<u64, String> {
    let number = value.trim().parse();
    number.map_err(|_| format!("{name}={value} means nothing: a number is wanted"))
}

impl Form {
    /// The variable's value for an option's; what is no such number stays as it is.
    fn back(self, value: &str) -> String {
        let time = |unit_us| duration_us(value).map(|time| time / unit_us);
        let number = match self {
            Self::Number => bytes(value),
            Self::Seconds => time(1_000_000),
            Self::Milliseconds => time(1000),
            Self::Switch => match value {
                "on" => Some(1),
                "off" => Some(0),
                _ => None,
            },
            Self::Segments => value.parse::<u64>().ok().map(|segments| segments * 1460),
            Self::Stacks => Some(u64::from(value == "thread")),
        };
        number.map_or_else(|| value.to_owned(), |number| number.to_string())
    }

    fn value(self, number: u64) -> Option<String> {
        Some(match self {
            Self::Number => number.to_string(),
            Self::Seconds => format!("{number}s"),
            Self::Milliseconds => format!("{number}ms"),
            Self::Switch if number == 0 => String::from("off"),
            Self::Switch => String::from("on"),
            Self::Segments if number == 0 => return None,
            Self::Segments => number.div_ceil(1460).to_string(),
            Self::Stacks if number == 0 => String::from("process"),
            Self::Stacks => String::from("thread"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_device::specification::Specification;

    fn options_of(variables: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let variables = variables
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        options(&variables.collect()).unwrap()
    }

    #[test]
    fn every_variable_of_the_table_becomes_an_option_that_a_stack_takes() {
        for (name, option, form) in OPTIONS {
            let value = match form {
                Form::Segments => "14600",
                Form::Switch => "1",
                _ if option.contains("frames") => "4096",
                _ if option.ends_with("buffer") => "65536",
                _ if option.starts_with("rto") => "1000",
                _ => "5",
            };
            let (options, without) = options_of(&[(name, value)]);
            assert!(without.is_empty(), "{name}");
            let text = format!("af_xdp:eth0,{}", options[0]);
            let parsed = Specification::parse(&text);
            assert!(parsed.is_ok(), "{name}: {text}: {:?}", parsed.err());
        }
    }

    #[test]
    fn options_in_force_are_told_as_variables() {
        let told = |text: &str| -> BTreeMap<String, String> {
            let specification = Specification::parse(text).unwrap();
            let options = specification.in_force().into_iter();
            let options: Vec<_> = options
                .map(|option| (option.name.to_owned(), option.value))
                .collect();
            in_force(&options).into_iter().collect()
        };
        let defaults = told("af_xdp:eth0");
        for (name, ..) in OPTIONS {
            let value = defaults.get(*name).unwrap();
            assert!(
                value.parse::<u64>().is_ok() || value == "auto",
                "{name}={value}"
            );
        }
        let set =
            told("af_xdp:eth0,fin-wait=15s,rto-min=1s,initial-window=10,polling=sleep-spin=50us");
        for (name, value) in [
            ("EF_TCP_FIN_TIMEOUT", "15"),
            ("EF_RFC_RTO_MIN", "1000"),
            ("EF_TCP_INITIAL_CWND", "14600"),
            (SLEEP, "50"),
        ] {
            assert_eq!(set.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert!(!set.contains_key(POLL));
    }

    #[test]
    fn spinning_is_one_option_of_two_variables() {
        let polling = |variables: &[(&str, &str)]| options_of(variables).0.pop();
        let with_sleep = polling(&[(POLL, "1000000"), (SLEEP, "50")]);
        assert_eq!(with_sleep.as_deref(), Some("polling=sleep-spin=50us"));
        assert_eq!(
            polling(&[(POLL, "1000000")]).as_deref(),
            Some("polling=spin")
        );
        assert_eq!(
            polling(&[(POLL, "20")]).as_deref(),
            Some("polling=adaptive=20us")
        );
        assert_eq!(
            polling(&[(POLL, "0")]).as_deref(),
            Some("polling=interrupt")
        );
        assert_eq!(polling(&[]), None);
    }

    #[test]
    fn epoll_that_does_not_spin_is_told_by_others_if_they_are_there() {
        let polling = |variables: &[(&str, &str)]| {
            let (mut options, without) = options_of(variables);
            assert!(without.is_empty());
            options.pop()
        };
        let never = polling(&[(EPOLL_SPIN, "0")]);
        assert_eq!(never.as_deref(), Some("polling=interrupt"));
        assert_eq!(polling(&[(EPOLL_SPIN, "1")]), None);
        let with_time = polling(&[(EPOLL_SPIN, "0"), (POLL, "20")]);
        assert_eq!(with_time.as_deref(), Some("polling=adaptive=20us"));
    }

    #[test]
    fn variables_that_mean_something_by_others_become_options() {
        for (variables, expected, expected_without) in [
            (&[(THROUGHPUT, "1")][..], &["burst=256"][..], &[][..]),
            (&[(THROUGHPUT, "0")], &[], &[]),
            (
                &[(THROUGHPUT, "1"), (EVENTS_PER_POLL, "32")],
                &["burst=32"],
                &[],
            ),
            (
                &[(RECEIVE_MODE, "0"), (RECEIVE_BUFFER, "65536")],
                &["receive-buffer=65536", "receive-buffer-first=65536"],
                &[],
            ),
            (
                &[(RECEIVE_MODE, "1"), (RECEIVE_BUFFER, "65536")],
                &["receive-buffer=65536"],
                &[],
            ),
            (&[(RECEIVE_MODE, "0")], &[], &[RECEIVE_MODE]),
            (&[(RECEIVE_MODE, "1")], &[], &[]),
        ] {
            let (options, without) = options_of(variables);
            assert_eq!(options, expected, "{variables:?}");
            assert_eq!(without, expected_without, "{variables:?}");
            let text = format!("af_xdp:eth0,{}", options.join(","));
            let text = text.trim_end_matches(',');
            assert!(Specification::parse(text).is_ok(), "{text}");
        }
    }

    /// Rows of the page's tables: the variables, and whether `onload` takes them by what the row says.
    fn rows_of_the_page() -> Vec<(String, bool)> {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/onload.md");
        let page = std::fs::read_to_string(page).unwrap();
        let mut rows = Vec::new();
        for line in page.lines().filter(|line| line.starts_with("| `EF_")) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let names = cells[1].split('`').filter(|name| name.starts_with("EF_"));
            // Variable, cookbook's value, counterpart, remarks; or variable and counterpart.
            let counterpart = if cells.len() == 6 { cells[3] } else { cells[2] };
            let is_option = counterpart.starts_with('`') && counterpart.contains('=');
            let is_taken = is_option && !counterpart.contains("not under `onload`");
            rows.extend(names.map(|name| (name.to_owned(), is_taken)));
        }
        rows
    }

    #[test]
    fn the_page_of_onloads_settings_says_which_are_taken() {
        let rows = rows_of_the_page();
        assert!(rows.len() > 50, "{rows:?}");
        for (name, is_taken) in &rows {
            let is_known =
                TOGETHER.contains(&name.as_str()) || OPTIONS.iter().any(|(own, ..)| own == name);
            assert_eq!(*is_taken, is_known, "{name}");
        }
        let known = OPTIONS.iter().map(|(name, ..)| name).chain(&TOGETHER);
        for name in known {
            let has_row = rows.iter().any(|(shown, _)| shown == name);
            assert!(has_row, "{name} has no row");
        }
    }

    #[test]
    fn what_has_no_counterpart_is_listed() {
        let (options, without) = options_of(&[("EF_PIO", "0"), ("EF_TCP_TCONST_MSL", "1")]);
        assert_eq!(options, ["msl=1s"]);
        assert_eq!(without, ["EF_PIO"]);
    }
}
