//! The text of one parse, so that it can be replayed elsewhere: the master parses as root and passes the bundle to the
//! worker process, which may not even read the files.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv6Addr};

use crate::Text;
use crate::source::{Source, SourceError};

/// Files, globs and host names in the order in which they were read. Also a [`Source`] that knows only these.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bundle {
    /// Path and content of each file, once each, in the order of the first reading (`-T` prints them so).
    pub files: Vec<(Text, Text)>,
    /// Path and content of each file with a certificate or a private key; never shown.
    pub secrets: Vec<(Text, Text)>,
    /// Pattern and matches.
    pub globs: Vec<(Text, Vec<Text>)>,
    /// Host name and addresses.
    pub hosts: Vec<(Text, Vec<IpAddr>)>,
}

/// A source that records what is read.
#[derive(Debug)]
pub struct Recording<S> {
    inner: S,
    bundle: RefCell<Bundle>,
}

impl<S: Source> Recording<S> {
    /// Records what `inner` answers.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            bundle: RefCell::default(),
        }
    }

    /// Everything that was read.
    pub fn into_bundle(self) -> Bundle {
        self.bundle.into_inner()
    }
}

impl<S: Source> Source for Recording<S> {
    fn read(&self, path: &[u8]) -> Result<Vec<u8>, SourceError> {
        let content = self.inner.read(path)?;
        let files = &mut self.bundle.borrow_mut().files;
        if !files.iter().any(|(known, _)| **known == *path) {
            files.push((Text::from(path), Text::from(content.as_slice())));
        }
        Ok(content)
    }

    fn read_secret(&self, path: &[u8]) -> Result<Vec<u8>, SourceError> {
        let content = self.inner.read_secret(path)?;
        let secrets = &mut self.bundle.borrow_mut().secrets;
        if !secrets.iter().any(|(known, _)| **known == *path) {
            secrets.push((Text::from(path), Text::from(content.as_slice())));
        }
        Ok(content)
    }

    fn glob(&self, pattern: &[u8]) -> Result<Vec<Vec<u8>>, SourceError> {
        let found = self.inner.glob(pattern)?;
        let globs = &mut self.bundle.borrow_mut().globs;
        if !globs.iter().any(|(known, _)| **known == *pattern) {
            let paths = found
                .iter()
                .map(|path| Text::from(path.as_slice()))
                .collect();
            globs.push((Text::from(pattern), paths));
        }
        Ok(found)
    }

    fn resolve(&self, host: &[u8]) -> Vec<IpAddr> {
        let found = self.inner.resolve(host);
        let hosts = &mut self.bundle.borrow_mut().hosts;
        if !hosts.iter().any(|(known, _)| **known == *host) {
            hosts.push((Text::from(host), found.clone()));
        }
        found
    }
}

impl Source for Bundle {
    fn read(&self, path: &[u8]) -> Result<Vec<u8>, SourceError> {
        content_of(&self.files, path)
    }

    fn read_secret(&self, path: &[u8]) -> Result<Vec<u8>, SourceError> {
        content_of(&self.secrets, path)
    }

    fn glob(&self, pattern: &[u8]) -> Result<Vec<Vec<u8>>, SourceError> {
        let found = self.globs.iter().find(|(known, _)| **known == *pattern);
        Ok(found.map_or_else(Vec::new, |(_, paths)| {
            paths.iter().map(|p| p.to_vec()).collect()
        }))
    }

    fn resolve(&self, host: &[u8]) -> Vec<IpAddr> {
        let found = self.hosts.iter().find(|(known, _)| **known == *host);
        found.map_or_else(Vec::new, |(_, addresses)| addresses.clone())
    }
}

fn content_of(files: &[(Text, Text)], path: &[u8]) -> Result<Vec<u8>, SourceError> {
    let file = files.iter().find(|(known, _)| **known == *path);
    file.map(|(_, content)| content.to_vec())
        .ok_or_else(SourceError::not_found)
}

/// The encoded form, all numbers little-endian u32:
///
/// ```text
/// magic "MBC2" | count | (path, content)* | count | (path, secret content)* | count | (pattern, count, path*)*
///              | count | (host, count, 16 bytes of IPv6 or mapped IPv4 *)*
/// text = length, bytes
/// ```
const MAGIC: &[u8; 4] = b"MBC2";

impl Bundle {
    /// As bytes, for a pipe or a memfd between processes of the same version.
    ///
    /// Text beyond 4 GiB cannot be encoded; such a configuration is not read in the first place.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        for files in [&self.files, &self.secrets] {
            emit_count(&mut out, files.len());
            for (path, content) in files {
                emit_text(&mut out, path);
                emit_text(&mut out, content);
            }
        }
        emit_count(&mut out, self.globs.len());
        for (pattern, paths) in &self.globs {
            emit_text(&mut out, pattern);
            emit_count(&mut out, paths.len());
            paths.iter().for_each(|path| emit_text(&mut out, path));
        }
        emit_count(&mut out, self.hosts.len());
        for (host, addresses) in &self.hosts {
            emit_text(&mut out, host);
            emit_count(&mut out, addresses.len());
            for address in addresses {
                let address = match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped(),
                    IpAddr::V6(address) => *address,
                };
                out.extend_from_slice(&address.octets());
            }
        }
        out
    }

    /// Decodes the output of [`Bundle::encode`]; `None` if the bytes are malformed or incomplete.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let mut bundle = Self::default();
        for files in [&mut bundle.files, &mut bundle.secrets] {
            for _ in 0..parse_count(&mut rest)? {
                files.push((parse_text(&mut rest)?, parse_text(&mut rest)?));
            }
        }
        for _ in 0..parse_count(&mut rest)? {
            let pattern = parse_text(&mut rest)?;
            let mut paths = Vec::new();
            for _ in 0..parse_count(&mut rest)? {
                paths.push(parse_text(&mut rest)?);
            }
            bundle.globs.push((pattern, paths));
        }
        for _ in 0..parse_count(&mut rest)? {
            let host = parse_text(&mut rest)?;
            let mut addresses = Vec::new();
            for _ in 0..parse_count(&mut rest)? {
                let (octets, after) = rest.split_first_chunk::<16>()?;
                rest = after;
                addresses.push(Ipv6Addr::from(*octets).to_canonical());
            }
            bundle.hosts.push((host, addresses));
        }
        rest.is_empty().then_some(bundle)
    }
}

fn emit_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    out.extend_from_slice(&count.to_le_bytes());
}

fn emit_text(out: &mut Vec<u8>, text: &[u8]) {
    emit_count(out, text.len());
    out.extend_from_slice(text);
}

fn parse_count(rest: &mut &[u8]) -> Option<usize> {
    let (count, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    usize::try_from(u32::from_le_bytes(*count)).ok()
}

fn parse_text(rest: &mut &[u8]) -> Option<Text> {
    let len = parse_count(rest)?;
    let (text, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(Text::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Memory;

    fn recorded() -> Bundle {
        let memory = Memory::new()
            .with("/a", "x")
            .with("/d/1", "one")
            .with("/d/2", "");
        let recording = Recording::new(memory);
        recording.read(b"/a").unwrap();
        recording.read(b"/a").unwrap();
        recording.glob(b"/d/*").unwrap();
        recording.read(b"/d/2").unwrap();
        recording.resolve(b"localhost");
        recording.into_bundle()
    }

    #[test]
    fn a_bundle_answers_as_its_source_did() {
        let bundle = recorded();
        assert_eq!(bundle.files.len(), 2);
        assert_eq!(bundle.read(b"/a").unwrap(), b"x");
        assert_eq!(
            bundle.glob(b"/d/*").unwrap(),
            [b"/d/1".to_vec(), b"/d/2".to_vec()]
        );
        assert_eq!(bundle.resolve(b"localhost").len(), 1);
        assert_eq!(bundle.read(b"/d/1"), Err(SourceError::not_found()));
    }

    #[test]
    fn encoding_round_trips_and_every_shorter_text_is_refused() {
        let bundle = recorded();
        let bytes = bundle.encode();
        assert_eq!(Bundle::decode(&bytes).as_ref(), Some(&bundle));
        for len in 0..bytes.len() {
            assert_eq!(Bundle::decode(&bytes[..len]), None, "{len}");
        }
        assert_eq!(Bundle::decode(&[&*bytes, b"x"].concat()), None);
    }
}
