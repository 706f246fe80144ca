//! One response is compared with the file before their rate is measured.

use crate::content;
use crate::names::Names;
use crate::prepared_testbed::PreparedTestbed;
use crate::request::Request;
use crate::system::Trouble;
use mill_lab::plan::Trial;
use mill_lab::recipe::SystemKind;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Sends one request. A stack without the kernel has no client for this.
pub(super) fn answer(
    trial: &Trial,
    names: &Names,
    prepared_testbed: &PreparedTestbed,
) -> Result<(), Trouble> {
    let load = &trial.setup.load;
    let system = &trial.setup.system;
    let file = trial.setup.content.get(load.path.trim_start_matches('/'));
    let Some(file) =
        file.filter(|_| load.check && system.kind != SystemKind::Command && system.host.is_none())
    else {
        return Ok(());
    };
    let failed = |what: String| Trouble::Failed(format!("{}: {what}", system.title));
    let Some(request) = request(trial, names, prepared_testbed) else {
        return Ok(());
    };
    let answer = request
        .connect()
        .and_then(|mut connection| connection.ask());
    let answer = answer.map_err(|error| failed(format!("no answer: {error}")))?;
    let expected = content::bytes(file);
    let is_packed = load
        .fields
        .iter()
        .any(|line| line == "Accept-Encoding: gzip");
    let content = if is_packed && answer.content != expected {
        unpacked(&answer.content).map_err(|error| failed(format!("gzip: {error}")))?
    } else {
        answer.content.clone()
    };
    if is_packed && answer.content == expected {
        return Err(failed(String::from("its answer is not compressed")));
    }
    if answer.status != 200 || content != expected {
        let (status, bytes) = (answer.status, content.len());
        return Err(failed(format!(
            "it answers with status {status} and {bytes} bytes that are not those of the file"
        )));
    }
    Ok(())
}

/// The load's request, by hand.
pub(super) fn request<'a>(
    trial: &'a Trial,
    names: &Names,
    prepared_testbed: &'a PreparedTestbed,
) -> Option<Request<'a>> {
    let load = &trial.setup.load;
    Some(Request {
        client: prepared_testbed.testbed.clients.first()?,
        authority: names.fill("${host}:${port}"),
        path: &load.path,
        fields: &load.fields,
    })
}

fn unpacked(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut gzip = Command::new("gzip")
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut input = gzip.stdin.take();
    let written = std::thread::scope(|scope| {
        let writing = scope.spawn(move || {
            input
                .as_mut()
                .map_or(Ok(()), |input| input.write_all(content))
        });
        let output = gzip.wait_with_output();
        // Data that is not gzip is not read to its end: the comparison of the output fails.
        let _broken_pipe = writing.join();
        output
    });
    written.map(|output| output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gzip_has_packed_is_unpacked() {
        let text = "water ".repeat(100_000);
        let mut gzip = Command::new("gzip");
        gzip.arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = gzip.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let packed = child.wait_with_output().unwrap().stdout;
        assert!(packed.len() < text.len());
        assert_eq!(unpacked(&packed).unwrap(), text.as_bytes());
        assert_eq!(unpacked(b"no gzip").unwrap(), b"");
    }
}
