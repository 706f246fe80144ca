//! Where configuration text comes from.

use std::net::{IpAddr, Ipv4Addr};

use crate::glob;

/// Access to files and names during parsing. The binary implements it over files, tests over literals ([`Memory`]), the
/// worker process over the master's text ([`crate::Bundle`]).
pub trait Source {
    /// The whole content of a file. Paths are absolute.
    fn read(&self, path: &[u8]) -> Result<Vec<u8>, SourceError>;

    /// The whole content of a file with a private key: read as the others, and never shown (`-T`).
    fn read_secret(&self, path: &[u8]) -> Result<Vec<u8>, SourceError> {
        self.read(path)
    }

    /// The paths that a pattern matches, sorted, as by glob(3); none is no error.
    fn glob(&self, pattern: &[u8]) -> Result<Vec<Vec<u8>>, SourceError>;

    /// The addresses of a host name, for `listen`. By default only `localhost` is known; no address means "host not
    /// found".
    fn resolve(&self, host: &[u8]) -> Vec<IpAddr> {
        if host == b"localhost" {
            vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]
        } else {
            Vec::new()
        }
    }
}

/// Why a file could not be read: number and text of the system's error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceError {
    /// errno.
    pub code: i32,
    /// strerror's text.
    pub text: String,
}

impl SourceError {
    /// ENOENT.
    pub fn not_found() -> Self {
        Self {
            code: 2,
            text: String::from("No such file or directory"),
        }
    }
}

/// Files in memory.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    files: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Memory {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more file.
    #[must_use]
    pub fn with(mut self, path: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Self {
        self.files
            .push((path.as_ref().to_vec(), content.as_ref().to_vec()));
        self
    }
}

impl Source for Memory {
    fn read(&self, path: &[u8]) -> Result<Vec<u8>, SourceError> {
        let file = self.files.iter().find(|(known, _)| known == path);
        file.map(|(_, content)| content.clone())
            .ok_or_else(SourceError::not_found)
    }

    fn glob(&self, pattern: &[u8]) -> Result<Vec<Vec<u8>>, SourceError> {
        let paths = self.files.iter().map(|(path, _)| path);
        let mut found: Vec<Vec<u8>> = paths
            .filter(|path| glob::matches(pattern, path))
            .cloned()
            .collect();
        found.sort();
        Ok(found)
    }
}
