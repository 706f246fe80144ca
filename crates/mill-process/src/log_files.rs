//! The files of all logs that a configuration names, opened by who may.

use crate::message::LogFile;
use mill_config::Config;
use mill_config::config::{ErrorLogTarget, Instruction, Location, LocationTree, LogPath};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::Path;

/// A log that could not be opened.
#[derive(Debug)]
pub struct NotOpened {
    pub path: Vec<u8>,
    pub error: io::Error,
}

/// Opens all log files of a configuration, making those that are not there.
pub fn open_all(config: &Config) -> Result<Vec<LogFile>, NotOpened> {
    paths(config)
        .into_iter()
        .map(|path| match open(&path) {
            Ok(file) => Ok(LogFile { path, file }),
            Err(error) => Err(NotOpened { path, error }),
        })
        .collect()
}

/// Gives files that belong to somebody else to the worker's user, as nginx does when it opens logs again, so that
/// programs of that user can read what they could read before.
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

/// Opens one log file.
pub fn open(path: &[u8]) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o644)
        .open(path_of(path))
}

/// The paths of all logs without variables, each once, in the order of the alphabet.
pub fn paths(config: &Config) -> BTreeSet<Vec<u8>> {
    let mut paths = BTreeSet::new();
    for log in &config.main.error_log {
        add_error_log(&log.target, &mut paths);
    }
    if let Some(http) = &config.http {
        for server in &http.servers {
            add_location(&server.location, &mut paths);
            add_locations(&server.locations, &mut paths);
            for (_, location) in &server.named_locations {
                add_location(location, &mut paths);
            }
        }
    }
    paths
}

fn add_locations(tree: &LocationTree, paths: &mut BTreeSet<Vec<u8>>) {
    for location in tree.iter() {
        add_location(location, paths);
    }
}

fn add_location(location: &Location, paths: &mut BTreeSet<Vec<u8>>) {
    for log in location.error_logs.iter() {
        add_error_log(&log.target, paths);
    }
    for log in location.access_logs.iter() {
        if let LogPath::File(path) = &log.path {
            paths.insert(path.to_vec());
        }
    }
    add_instructions(&location.instructions, paths);
    if let Some(limit) = &location.limit_except {
        add_location(&limit.location, paths);
    }
    add_locations(&location.locations, paths);
}

fn add_instructions(instructions: &[Instruction], paths: &mut BTreeSet<Vec<u8>>) {
    for instruction in instructions {
        if let Instruction::If { body, location, .. } = instruction {
            add_instructions(body, paths);
            if let Some(location) = location {
                add_location(location, paths);
            }
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
