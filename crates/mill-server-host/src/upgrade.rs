//! Replacing the binary while it serves: the new one is started beside the old one and inherits its sockets.
//!
//! The environment variable is nginx's own, so that an nginx can be replaced by this binary and back.

use mill_sys::descriptor;
use mill_sys::process::Pid;
use mill_tls::tickets::{SECRET_BYTES, TicketSecret};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The descriptors of the listening sockets, each followed by a semicolon.
pub const VARIABLE: &str = "NGINX";

/// The descriptor of a channel to the old binary, over which the new one may ask for the network stack's device. The
/// variable is Millstream's own: another program ignores it and gets nothing of the stack.
const CHANNEL_VARIABLE: &str = "MILLSTREAM_LINE";

/// The descriptor of a pipe with what keys of TLS tickets are made from: in the environment itself others could read it.
const SECRET_VARIABLE: &str = "MILLSTREAM_TICKETS";

/// Reserves room in the environment of a new binary for its process title; the name is nginx's too.
const SPARE: &str = "SPARE";

/// Bytes of that reserve (nginx's).
const SPARE_LEN: usize = 300;

/// How the binary is started.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// argv, the name first.
    pub arguments: Vec<OsString>,
    /// The file to execute.
    pub executable: PathBuf,
}

impl Invocation {
    /// How this process was started. To be called before the working directory or the environment change.
    pub fn own() -> Self {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        let name = arguments.first().map_or(Path::new(""), Path::new);
        let executable = find(name, std::env::var_os("PATH").as_deref());
        let executable = executable
            .or_else(|| std::env::current_exe().ok())
            .unwrap_or_default();
        Self {
            arguments,
            executable,
        }
    }

    /// Starts the binary with these sockets, a channel to this process, what keys of TLS tickets are made from, and nothing
    /// else in the environment.
    pub fn start<'a>(
        &self,
        sockets: impl Iterator<Item = BorrowedFd<'a>>,
        channel: Option<BorrowedFd<'a>>,
        secret: Option<&TicketSecret>,
        environment: Vec<(OsString, OsString)>,
    ) -> io::Result<Pid> {
        let mut sockets: Vec<BorrowedFd<'a>> = sockets.collect();
        let mut value = String::new();
        for socket in &sockets {
            value.push_str(&format!("{};", socket.as_raw_fd()));
        }
        let mut command = Command::new(without_deleted(&self.executable));
        command.env_clear().envs(environment).env(VARIABLE, value);
        command.env(SPARE, "X".repeat(SPARE_LEN));
        if let Some(channel) = channel {
            command.env(CHANNEL_VARIABLE, channel.as_raw_fd().to_string());
            sockets.push(channel);
        }
        // Without it, clients of the new binary shake hands anew.
        let secret = secret.and_then(|secret| pipe_with(secret.bytes()).ok());
        if let Some(secret) = &secret {
            command.env(SECRET_VARIABLE, secret.as_raw_fd().to_string());
        }
        if let Some((name, rest)) = self.arguments.split_first() {
            command.arg0(name).args(rest);
        }
        // The master has one thread, so no other exec can happen between these calls.
        let secret = secret.as_ref().map(AsFd::as_fd);
        for inherited in sockets.iter().chain(&secret) {
            descriptor::set_close_on_exec(*inherited, false)?;
        }
        let child = command.spawn();
        for socket in &sockets {
            descriptor::set_close_on_exec(*socket, true)?;
        }
        let number = i32::try_from(child?.id()).ok().and_then(Pid::new);
        number.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }
}

/// The numbers in the variable; the error is the part that is not a number.
pub fn parse(value: &OsStr) -> Result<Vec<i32>, String> {
    let text = value.to_string_lossy();
    let mut numbers = Vec::new();
    // nginx accepts both separators, and a number only if one follows it.
    for part in text.split_inclusive([';', ':']) {
        let number = part
            .strip_suffix([';', ':'])
            .and_then(|number| number.parse().ok());
        numbers.push(number.ok_or_else(|| part.to_owned())?);
    }
    Ok(numbers)
}

/// The sockets of the variable, if it is set: this process is then a new binary beside an old one. To be called once,
/// before any file is opened.
pub fn inherited() -> Option<(String, Result<Vec<OwnedFd>, String>)> {
    let value = std::env::var_os(VARIABLE)?;
    let sockets = parse(&value).and_then(|numbers| {
        let own = |number| descriptor::inherited(number).map_err(|_| number.to_string());
        numbers.into_iter().map(own).collect()
    });
    Some((value.to_string_lossy().into_owned(), sockets))
}

/// The channel to the old binary, if it made one. To be called once, before any file is opened.
pub fn inherited_channel() -> Option<OwnedFd> {
    let number = std::env::var(CHANNEL_VARIABLE).ok()?.parse().ok()?;
    descriptor::inherited(number).ok()
}

/// What the old binary makes keys of TLS tickets from. To be called once, before any file is opened.
pub fn inherited_secret() -> Option<TicketSecret> {
    let number = std::env::var(SECRET_VARIABLE).ok()?.parse().ok()?;
    let mut pipe = File::from(descriptor::inherited(number).ok()?);
    let mut bytes = [0; SECRET_BYTES];
    pipe.read_exact(&mut bytes).ok()?;
    Some(TicketSecret::of(bytes))
}

/// A pipe from which these bytes can be read; they fit its buffer.
fn pipe_with(bytes: &[u8]) -> io::Result<OwnedFd> {
    let (reader, mut writer) = io::pipe()?;
    writer.write_all(bytes)?;
    Ok(reader.into())
}

/// The path of a program: a name with a slash as it is (made absolute), else found along PATH.
fn find(name: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.as_os_str().is_empty() {
        return None;
    }
    if name.components().count() > 1 || name.is_absolute() || name.starts_with(".") {
        return std::path::absolute(name).ok();
    }
    std::env::split_paths(path?)
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
}

/// /proc/self/exe of a binary whose file was replaced has this suffix; the new file has the old name.
fn without_deleted(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    text.strip_suffix(" (deleted)")
        .map_or_else(|| path.to_owned(), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_numbers_with_semicolons() {
        let check = |text: &str, expected: Result<&[i32], &str>| {
            let parsed = parse(OsStr::new(text));
            assert_eq!(
                parsed.as_deref().map_err(String::as_str),
                expected,
                "{text:?}"
            );
        };
        check("", Ok(&[]));
        check("6;", Ok(&[6]));
        check("6;7:12;", Ok(&[6, 7, 12]));
        check("6;x;", Err("x;"));
        check("6;7", Err("7"));
    }

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        let path = OsStr::new("/nonexistent:/bin:/usr/bin");
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(
                find(Path::new(name), Some(path)),
                expected.map(PathBuf::from),
                "{name}"
            );
        };
        check("sh", Some("/bin/sh"));
        check("/opt/x/nginx", Some("/opt/x/nginx"));
        check("no-such-program", None);
        check("", None);
        assert!(find(Path::new("./nginx"), None).unwrap().is_absolute());
    }

    #[test]
    fn a_replaced_file_is_found_under_its_name() {
        assert_eq!(
            without_deleted(Path::new("/a/b (deleted)")),
            Path::new("/a/b")
        );
        assert_eq!(without_deleted(Path::new("/a/b")), Path::new("/a/b"));
    }
}
