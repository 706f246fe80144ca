//! Reads a configuration from files, or from a text made of the command line.

use mill_config::Config;
use mill_config::bundle::{Bundle, Recording};
use mill_config::diagnostic::Diagnostic;
use mill_config::glob;
use mill_config::load::{self, Options};
use mill_config::source::{Memory, Source, SourceError};
use mill_server::tls::TlsSite;
use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where the text of a configuration comes from.
#[derive(Clone, Debug)]
pub enum Texts {
    /// The file system.
    Files,
    /// A text made of the command line; the same after every reload.
    Memory(Memory),
}

/// A configuration with the texts it was made from.
#[derive(Debug)]
pub struct Reading {
    /// The configuration, or the first error.
    pub result: Result<Config, Diagnostic>,
    /// Warnings and notices.
    pub remarks: Vec<Diagnostic>,
    /// The files that were read, also after an error.
    pub bundle: Bundle,
}

impl Texts {
    /// Reads and resolves a configuration, from scratch.
    pub fn read(&self, options: &Options) -> Reading {
        match self {
            Self::Files => read(Files, options),
            Self::Memory(memory) => read(memory.clone(), options),
        }
    }
}

fn read(source: impl Source, options: &Options) -> Reading {
    let recording = Recording::new(source);
    let (result, remarks) = match load::load(&recording, options) {
        // Certificates and keys that cannot be used are refused before any process is asked to use them.
        Ok(loaded) => match TlsSite::following(None, &loaded.config, None) {
            Ok(_) => (Ok(loaded.config), loaded.remarks),
            Err(error) => (Err(*error), loaded.remarks),
        },
        Err(failure) => (Err(failure.error), failure.remarks),
    };
    Reading {
        result,
        remarks,
        bundle: recording.into_bundle(),
    }
}

/// The file system and the system's resolver.
#[derive(Clone, Copy, Debug)]
pub struct Files;

impl Source for Files {
    fn read(&self, path: &[u8]) -> Result<Vec<u8>, SourceError> {
        std::fs::read(OsStr::from_bytes(path)).map_err(|error| source_error(&error))
    }

    /// As glob(3): sorted, hidden files only where the pattern says so; what cannot be listed is left out.
    fn glob(&self, pattern: &[u8]) -> Result<Vec<Vec<u8>>, SourceError> {
        let mut found = vec![PathBuf::from("/")];
        for component in pattern
            .split(|&byte| byte == b'/')
            .filter(|part| !part.is_empty())
        {
            found = found
                .iter()
                .flat_map(|directory| children(directory, component))
                .collect();
        }
        let mut paths: Vec<Vec<u8>> = found
            .into_iter()
            .map(|path| path.into_os_string().as_bytes().to_vec())
            .collect();
        paths.sort();
        Ok(paths)
    }

    fn resolve(&self, host: &[u8]) -> Vec<IpAddr> {
        let Ok(host) = std::str::from_utf8(host) else {
            return Vec::new();
        };
        let mut addresses: Vec<IpAddr> = Vec::new();
        for address in (host, 0).to_socket_addrs().into_iter().flatten() {
            if !addresses.contains(&address.ip()) {
                addresses.push(address.ip());
            }
        }
        addresses
    }
}

/// The entries of a directory that match one component of a pattern.
fn children(directory: &Path, component: &[u8]) -> Vec<PathBuf> {
    if !component.iter().any(|byte| b"*?[\\".contains(byte)) {
        let path = directory.join(OsStr::from_bytes(component));
        return if path.exists() {
            vec![path]
        } else {
            Vec::new()
        };
    }
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    names
        .filter(|name| {
            let hidden = name.as_bytes().starts_with(b".") && !component.starts_with(b".");
            !hidden && glob::matches(component, name.as_bytes())
        })
        .map(|name| directory.join(name))
        .collect()
}

fn source_error(error: &io::Error) -> SourceError {
    let code = error.raw_os_error().unwrap_or(0);
    let text = error.to_string();
    let text = text
        .strip_suffix(&format!(" (os error {code})"))
        .unwrap_or(&text);
    SourceError {
        code,
        text: text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Directory;

    fn check_glob(pattern: &str, expected: &[&str]) {
        let directory = Directory::new();
        for name in ["b.conf", "a.conf", ".hidden.conf", "c.txt"] {
            std::fs::write(directory.path(name), name).unwrap();
        }
        std::fs::create_dir(directory.path("sub")).unwrap();
        std::fs::write(directory.path("sub/d.conf"), "d").unwrap();
        let root = directory.path("");
        let pattern = root.join(pattern);
        let found = Files.glob(pattern.as_os_str().as_bytes()).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|path| {
                Path::new(OsStr::from_bytes(path))
                    .strip_prefix(&root)
                    .unwrap()
                    .to_owned()
            })
            .collect();
        let expected: Vec<_> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(names, expected, "{pattern:?}");
    }

    #[test]
    fn patterns_find_files_sorted_and_without_hidden_ones() {
        check_glob("*.conf", &["a.conf", "b.conf"]);
        check_glob("[ab].conf", &["a.conf", "b.conf"]);
        check_glob(".*.conf", &[".hidden.conf"]);
        check_glob("*/*.conf", &["sub/d.conf"]);
        check_glob("c.txt", &["c.txt"]);
        check_glob("nosuch", &[]);
        check_glob("nosuch/*", &[]);
    }

    #[test]
    fn an_unreadable_file_is_the_systems_error() {
        let error = Files.read(b"/nonexistent/file").unwrap_err();
        assert_eq!(error, SourceError::not_found());
    }
}
