//! The log files of a configuration, opened by the process that has the rights to.

use crate::locations;
use crate::message::LogFile;
use mill_config::Config;
use mill_config::config::settings::LogSettings;
use mill_config::config::{ErrorLogTarget, LogPath};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::Path;

/// A log that could not be opened.
#[derive(Debug)]
pub struct NotOpened {
    pub path: Vec<u8>,
    pub error: io::Error,
}

/// Opens all log files of a configuration; missing files are created.
pub fn open_all(config: &Config) -> Result<Vec<LogFile>, NotOpened> {
    paths(config)
        .into_iter()
        .map(|path| match open(&path) {
            Ok(file) => Ok(LogFile { path, file }),
            Err(error) => Err(NotOpened { path, error }),
        })
        .chain(key_logs(config).into_iter().map(open_key_log))
        .collect()
}

/// Its reader can read all that passes: no other user may.
fn open_key_log(path: Vec<u8>) -> Result<LogFile, NotOpened> {
    match open_to_append(&path, 0o600) {
        Ok(file) => Ok(LogFile { path, file }),
        Err(error) => Err(NotOpened { path, error }),
    }
}

/// The files for secrets of TLS, each once.
fn key_logs(config: &Config) -> BTreeSet<Vec<u8>> {
    let (http, stream) = (config.http.iter(), config.stream.iter());
    let to_clients = (http.clone().flat_map(|http| &http.servers))
        .map(|server| &server.location.tls.key_log)
        .chain(
            (stream.clone().flat_map(|stream| &stream.servers)).map(|it| &it.settings.tls.key_log),
        );
    let to_servers = (http.flat_map(|http| &http.tls_passes))
        .chain(stream.flat_map(|stream| &stream.tls_passes))
        .map(|settings| &settings.key_log);
    let all = to_clients.chain(to_servers).flatten();
    all.map(|path| path.to_vec()).collect()
}

/// Gives files of other owners to the worker's user, as nginx does when it reopens logs, so that programs of that user
/// can still read them.
pub fn give_to(logs: &[LogFile], uid: u32) -> Result<(), NotOpened> {
    for log in logs {
        let give = || -> io::Result<()> {
            let metadata = log.file.metadata()?;
            if metadata.is_file() && metadata.uid() != uid {
                chown(path_of(&log.path), Some(uid), None)?;
            }
            Ok(())
        };
        give().map_err(|error| NotOpened {
            path: log.path.clone(),
            error,
        })?;
    }
    Ok(())
}

/// Opens one log file. The standard streams are duplicated instead of reopened: they may be sockets, which cannot be
/// opened, or files in which two file offsets would overwrite each other's lines.
pub fn open(path: &[u8]) -> io::Result<File> {
    let stream = match path {
        b"/dev/stdout" => io::stdout().as_fd().try_clone_to_owned(),
        b"/dev/stderr" => io::stderr().as_fd().try_clone_to_owned(),
        _ => return open_to_append(path, 0o644),
    };
    stream.map(File::from)
}

/// Opens the file anew that has the path of `log` now; a missing one is created, for no more users than could read the old
/// one.
pub fn reopen(log: &LogFile) -> io::Result<File> {
    let mode = log.file.metadata().map(|metadata| metadata.mode());
    if mode.is_ok_and(|mode| mode & 0o077 == 0) {
        return open_to_append(&log.path, 0o600);
    }
    open(&log.path)
}

fn open_to_append(path: &[u8], mode: u32) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(mode)
        .open(path_of(path))
}

/// The paths of all logs without variables, each once, sorted.
pub fn paths(config: &Config) -> BTreeSet<Vec<u8>> {
    let mut paths = BTreeSet::new();
    for log in &config.main.error_log {
        add_error_log(&log.target, &mut paths);
    }
    locations::visit_all(config, &mut |location| add_all(&location.log, &mut paths));
    for server in config.stream.iter().flat_map(|stream| &stream.servers) {
        add_all(&server.settings.log, &mut paths);
    }
    paths
}

fn add_all(logs: &LogSettings, paths: &mut BTreeSet<Vec<u8>>) {
    for log in &logs.error_logs {
        add_error_log(&log.target, paths);
    }
    for log in &logs.access_logs {
        if let LogPath::File(path) = &log.path {
            paths.insert(path.to_vec());
        }
    }
}

fn add_error_log(target: &ErrorLogTarget, paths: &mut BTreeSet<Vec<u8>>) {
    if let ErrorLogTarget::File(path) = target {
        paths.insert(path.to_vec());
    }
}

fn path_of(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Directory;
    use mill_config::load::{Options, load};
    use mill_config::source::Memory;
    use std::io::Write;

    fn check_paths(text: &str, expected: &[&str]) {
        let mut options = Options::default();
        options.paths.conf = b"/conf".to_vec();
        options.paths.error_log = b"/default/error".to_vec();
        options.paths.access_log = b"/default/access".to_vec();
        let loaded = load(&Memory::new().with("/conf", text), &options).unwrap();
        let found: Vec<String> = paths(&loaded.config)
            .into_iter()
            .map(|path| String::from_utf8(path).unwrap())
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn every_log_is_found_wherever_it_is_configured() {
        check_paths("events {}", &["/default/error"]);
        check_paths(
            "error_log stderr; events {} http { server { listen 80; access_log off; } }",
            &[],
        );
        check_paths(
            "error_log /e; events {} http { access_log /h; server { listen 80;
             location / { access_log /l; error_log /le; if ($args) { access_log /i; } }
             location ~ x { access_log /p; } location = /y { access_log /x; }
             location @n { access_log /n; } } server { listen 81; access_log /s; access_log /t; } }",
            &["/e", "/h", "/i", "/l", "/le", "/n", "/p", "/s", "/t", "/x"],
        );
    }

    #[test]
    fn a_log_is_appended_to() {
        let directory = Directory::new();
        let path = directory.path("log");
        for line in ["one\n", "two\n"] {
            let mut file = open(path.as_os_str().as_bytes()).unwrap();
            file.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn standard_streams_are_there_whatever_they_are() {
        assert!(open(b"/dev/stdout").is_ok());
        assert!(open(b"/dev/stderr").is_ok());
    }
}
