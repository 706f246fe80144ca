//! A port is tried by a child of the process in charge, which then knows what the port has, and what is wrong, before anything serves.

use super::own_port::{Opened, OwnPort};
use crate::attach::AttachError;
use crate::specification::Specification;
use mill_sys::descriptor::wait_readable;
use mill_sys::process::{self, Fork};
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

/// Opens the port in a child with so many queues, and closes it. The calling process has one thread.
pub(in crate::attach) fn rehearse(
    count: usize,
    specification: &Specification,
) -> Result<Opened, AttachError> {
    let failed =
        |error: io::Error| AttachError(format!("the port can't be tried in a child: {error}"));
    let (from, mut to) = io::pipe().map_err(failed)?;
    match process::fork().map_err(failed)? {
        Fork::Child => {
            drop(from);
            let opened = OwnPort::attempt(count, specification);
            let sent = to.write_all(describe(&opened).as_bytes());
            std::process::exit(i32::from(sent.is_err()));
        }
        Fork::Parent(child) => {
            drop(to);
            let text = hear(from).map_err(failed);
            if text.is_err() {
                let _ = child.kill(SIGKILL);
            }
            let ended = child.wait().map_err(failed);
            understand(&text?).unwrap_or_else(|| {
                let how = ended.map_or_else(|error| error.to_string(), |ended| ended.to_string());
                Err(AttachError(format!(
                    "the port can't be had: a process that has tried to open it has ended: {how}"
                )))
            })
        }
    }
}

/// All that the child says, until it ends.
fn hear(mut from: PipeReader) -> io::Result<String> {
    if wait_readable(&[from.as_fd()], Some(START_TIME))? != [true] {
        let seconds = START_TIME.as_secs();
        return Err(io::Error::other(format!(
            "DPDK is not ready after {seconds} s"
        )));
    }
    let mut text = String::new();
    from.read_to_string(&mut text)?;
    Ok(text)
}

fn describe(opened: &Result<Opened, AttachError>) -> String {
    match opened {
        Ok(opened) => {
            let mut lines = vec![format!("{HAS} {}", opened.queue_pairs)];
            lines.extend(
                opened
                    .notices
                    .iter()
                    .map(|notice| notice.replace('\n', " ")),
            );
            lines.join("\n")
        }
        Err(AttachError(what)) => format!("{LACKS} {what}"),
    }
}

/// `None` if the child has said nothing.
fn understand(text: &str) -> Option<Result<Opened, AttachError>> {
    let (kind, rest) = text.split_once(' ')?;
    if kind == LACKS {
        return Some(Err(AttachError(String::from(rest))));
    }
    let mut lines = rest.lines();
    let queue_pairs = lines.next()?.parse().ok()?;
    Some(Ok(Opened {
        queue_pairs,
        notices: lines.map(String::from).collect(),
    }))
}

const HAS: &str = "has";
const LACKS: &str = "lacks";

/// The number of the signal (signal(7)).
const SIGKILL: i32 = 9;

/// Until the port is open: some cards take seconds until their firmware is ready.
const START_TIME: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_has_found_arrives() {
        let opened = Opened {
            queue_pairs: 2,
            notices: vec![String::from("one"), String::from("two\nlines")],
        };
        let heard = understand(&describe(&Ok(opened))).unwrap().unwrap();
        assert_eq!(
            (heard.queue_pairs, heard.notices.join(";")),
            (2, String::from("one;two lines"))
        );
        let refused = understand(&describe(&Err(AttachError(String::from("no such card")))));
        assert_eq!(refused.unwrap().unwrap_err().to_string(), "no such card");
        assert!(understand("").is_none());
    }
}
