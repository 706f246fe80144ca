//! `--pcap`: frames of a running server, written to a file.

use super::arguments::{Arguments, Capture};
use crate::help;
use mill_server_host::status::client::{self, Found, StatusError};
use mill_status::Request;
use mill_status::request;
use mill_status::text::number::bytes;
use std::fs::File;
use std::os::fd::AsFd;
use std::process::ExitCode;

/// Waits until the capture has ended, and prints its result.
pub(super) fn run(
    found: &Found,
    arguments: &Arguments,
    capture: &Capture,
) -> Result<ExitCode, StatusError> {
    let path = capture.file.display();
    let complain = |what: &str| {
        help::complain(&format!("millstream status: {what}\n"));
        Ok(ExitCode::FAILURE)
    };
    // Opened here, with the rights of the calling user.
    let file = match File::create(&capture.file) {
        Ok(file) => file,
        Err(error) => return complain(&format!("\"{path}\" can't be written: {error}")),
    };
    let request = Request {
        capture: Some(request::Capture {
            ms: u64::try_from(capture.time.as_millis()).unwrap_or(u64::MAX),
            frames: capture.frames.unwrap_or(u64::MAX),
            bytes: u64::MAX,
        }),
        ..arguments.request()
    };
    let status = client::ask(found, &request, Some(file.as_fd()))?;
    let captured = status.parts.iter().find_map(|part| part.captured.as_ref());
    let Some(captured) = captured else {
        let notes = status.notes.join("; ");
        return complain(&format!("no worker has reported the result; {notes}"));
    };
    if let Some(why) = &captured.failed {
        return complain(why);
    }
    let (frames, size, seconds) = (captured.frames, bytes(captured.bytes), captured.seconds);
    let lost = match captured.lost_blocks {
        0 => String::new(),
        count => format!("; {count} blocks of frames were lost, since the file was too slow"),
    };
    help::print(&format!(
        "{frames} frames, {size}, in {seconds:.1} s written to {path}{lost}\n"
    ));
    Ok(ExitCode::SUCCESS)
}
