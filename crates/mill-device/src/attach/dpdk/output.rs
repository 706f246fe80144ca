//! What the bridge writes: a memfd of a fixed length, as there is no process that would read a pipe all the time.

use mill_sys::file;
use mill_sys::memory::{Pages, SharedMemory};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The file behind the bridge's standard output and error.
#[derive(Debug)]
pub(super) struct Output(OwnedFd);

impl Output {
    pub(super) fn new() -> io::Result<Self> {
        let memory = SharedMemory::create("dpdk-output", BYTES, Pages::Small)?;
        Ok(Self(memory.as_fd().try_clone_to_owned()?))
    }

    /// All of these write behind one another.
    pub(super) fn writer(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }

    pub(super) fn into_file(self) -> OwnedFd {
        self.0
    }

    /// Whether all ports are started: the next word is written when the memif may be connected to, not before.
    pub(super) fn is_ready(&self) -> bool {
        read(self.0.as_fd()).contains("Checking link statuses")
    }

    /// Whether a port does not start, which testpmd itself takes for no reason to end.
    pub(super) fn is_refusing(&self) -> bool {
        let text = read(self.0.as_fd());
        REFUSALS.iter().any(|refusal| text.contains(refusal))
    }

    pub(super) fn summary(&self) -> String {
        summary(self.0.as_fd())
    }
}

/// The last lines of what a bridge has written to this file, without those that every bridge writes.
pub(in crate::attach) fn summary(file: BorrowedFd<'_>) -> String {
    let text = read(file);
    let lines = text.lines().map(str::trim).filter(|line| is_telling(line));
    let lines: Vec<&str> = lines.collect();
    match lines.get(lines.len().saturating_sub(LINES)..) {
        Some(last) if !last.is_empty() => format!("\"{}\"", last.join(" / ")),
        _ => String::from("it said nothing"),
    }
}

fn is_telling(line: &str) -> bool {
    !line.is_empty() && !USUAL.iter().any(|usual| line.starts_with(usual))
}

fn read(file: BorrowedFd<'_>) -> String {
    let mut bytes = vec![0; BYTES];
    let len = file::read_at(file, 0, &mut bytes).unwrap_or(0);
    bytes.truncate(len);
    // What is not written yet.
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(len);
    bytes.truncate(end);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Bytes that are kept; a usual start and end are four thousand.
const BYTES: usize = 64 << 10;

/// Lines of a summary.
const LINES: usize = 4;

/// What testpmd (22.11) writes if a port can't be had.
const REFUSALS: [&str; 3] = [
    "Fail to start port",
    "Fail to configure port",
    "Not all ports were started",
];

/// How lines begin that say nothing about what went wrong.
const USUAL: &[&str] = &[
    "EAL: Detected ",
    "EAL: Selected IOVA",
    "EAL: Physical addresses are unavailable",
    "EAL: Error - exiting",
    "rte_pmd_memif_probe(): Failed to register mp action callback",
    "tap_mp_req_on_rxtx(): Failed to send start req",
    "Warning: NUMA should be configured",
    "libbpf: elf: skipping",
    "testpmd: create a new mbuf pool",
    "testpmd: preferred mempool ops",
    "Set io packet forwarding mode",
    "Auto-start selected",
    "Configuring Port",
    "Checking link statuses",
    "Port ",
    "Done",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    fn output_with(text: &str) -> Output {
        let output = Output::new().unwrap();
        File::from(output.writer().unwrap())
            .write_all(text.as_bytes())
            .unwrap();
        output
    }

    #[test]
    fn the_summary_is_the_last_lines_that_tell_something() {
        let check = |text: &str, expected: &str| {
            assert_eq!(output_with(text).summary(), expected, "{text:?}");
        };
        check("", "it said nothing");
        check("EAL: Detected CPU lcores: 2\n\n", "it said nothing");
        check(
            "EAL: Detected CPU lcores: 2\n a\nPort 0 is closed\nb\n",
            "\"a / b\"",
        );
        check("1\n2\n3\n4\n5", "\"2 / 3 / 4 / 5\"");
    }

    #[test]
    fn a_port_that_does_not_start_is_noticed_although_the_program_goes_on() {
        let check = |text: &str, refusing: bool, ready: bool| {
            let output = output_with(text);
            assert_eq!(output.is_refusing(), refusing, "{text}");
            assert_eq!(output.is_ready(), ready, "{text}");
        };
        check("Configuring Port 1 (socket 0)\n", false, false);
        check("Checking link statuses...\n", false, true);
        check(
            "Fail to start port 1: Operation not permitted\nChecking link statuses...\n",
            true,
            true,
        );
    }

    #[test]
    fn a_bridge_that_writes_too_much_is_not_kept_from_its_work() {
        let output = output_with("first\n");
        let mut writer = File::from(output.writer().unwrap());
        let written = writer.write_all(&vec![b'x'; BYTES]);
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(read(output.0.as_fd()).starts_with("first\n"));
    }
}
