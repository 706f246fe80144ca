//! Certificates whose names have variables (`ssl_certificate $ssl_server_name.pem`): loaded for a handshake before it is
//! answered, with the rights of the worker.
//!
//! A handshake's way: `choice` finds the server → `names` evaluates → `load` takes each pair from `kept`, or reads its files
//! without making the worker wait for a disk → the handshake is answered by what was loaded.

/// Pairs that stay loaded.
mod kept;

use crate::local::Local;
use crate::log::{Errno, Text as Shown};
use crate::whole_file;
use kept::{Kept, Mark};
use mill_config::Text;
use mill_config::config::Template;
use mill_config::config::settings::{EvaluatedName, TlsFile, TlsSettings};
use mill_runtime::engine::Engine;
use mill_runtime::files::{FileKind, Files, Metadata, Symlinks};
use mill_tls::certificate::Certified;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The certificates of a server, some of which are loaded for each handshake; shared by all workers.
pub(crate) struct EvaluatedCertificates {
    settings: Arc<TlsSettings>,
    /// In the order of the text.
    pairs: Vec<Pair>,
    kept: Option<Mutex<Kept>>,
}

/// A certificate with its key.
enum Pair {
    /// Its names are text, and it was loaded with the configuration.
    Loaded(Certified),
    /// Its place among those of the settings.
    Evaluated(usize),
}

/// What the names of a pair have come to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PairNames {
    certificate: Source,
    key: Source,
}

/// Where text in PEM is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// It is the text itself.
    Data(Text),
    Path(Text),
}

impl EvaluatedCertificates {
    /// `loaded` are the pairs whose names are text, in their order. `None`: all of them are.
    pub(super) fn new(settings: &Arc<TlsSettings>, loaded: &[Certified]) -> Option<Arc<Self>> {
        let is_evaluated = |at: usize| {
            let files = [settings.certificates.get(at), settings.keys.get(at)];
            files.iter().flatten().any(|file| file.evaluated.is_some())
        };
        let mut loaded = loaded.iter();
        let places = (0..settings.certificates.len()).filter(|at| {
            let file = settings.certificates.get(*at);
            !file.is_some_and(TlsFile::is_of_acme)
        });
        let pairs: Vec<Pair> = places
            .filter_map(|at| match is_evaluated(at) {
                true => Some(Pair::Evaluated(at)),
                false => loaded.next().cloned().map(Pair::Loaded),
            })
            .collect();
        let has_evaluated = pairs.iter().any(|pair| matches!(pair, Pair::Evaluated(_)));
        has_evaluated.then(|| {
            Arc::new(Self {
                settings: Arc::clone(settings),
                pairs,
                kept: settings
                    .certificate_cache
                    .map(|cache| Mutex::new(Kept::new(cache))),
            })
        })
    }

    /// What the names come to, for those pairs that have variables.
    pub(crate) fn names(&self, mut evaluate: impl FnMut(&Template) -> Vec<u8>) -> Vec<PairNames> {
        let mut names = Vec::new();
        for pair in &self.pairs {
            if let Pair::Evaluated(at) = pair
                && let Some(certificate) = self.settings.certificates.get(*at)
                && let Some(key) = self.settings.keys.get(*at)
            {
                names.push(PairNames {
                    certificate: source(certificate, &mut evaluate),
                    key: source(key, &mut evaluate),
                });
            }
        }
        names
    }

    /// All certificates, with those of these names. The error is a line for the log.
    pub(crate) async fn load<E: Engine>(
        &self,
        names: Vec<PairNames>,
        local: &Local<E>,
    ) -> Result<Vec<Certified>, String> {
        let mut names = names.into_iter();
        let mut all = Vec::with_capacity(self.pairs.len());
        for pair in &self.pairs {
            match pair {
                Pair::Loaded(certified) => all.push(certified.clone()),
                Pair::Evaluated(_) => {
                    if let Some(names) = names.next() {
                        all.push(self.load_pair(names, local).await?);
                    }
                }
            }
        }
        Ok(all)
    }

    async fn load_pair<E: Engine>(
        &self,
        names: PairNames,
        local: &Local<E>,
    ) -> Result<Certified, String> {
        if let Some(known) = self.known(&names, local).await {
            return Ok(known);
        }
        let (certificate, mark) = read(&names.certificate, "certificate", local).await?;
        let (key, key_mark) = read(&names.key, "certificate key", local).await?;
        let passwords = self.settings.passwords.iter().map(|word| &**word);
        let loaded = mill_tls::certificate::load(&certificate, &key, passwords);
        let certified = loaded.map_err(|error| {
            let (source, what) = match error.is_of_key() {
                true => (&names.key, "certificate key"),
                false => (&names.certificate, "certificate"),
            };
            format!("cannot load {what} \"{source}\": {error}")
        })?;
        if let (Some(mut kept), Some(mark), Some(key_mark)) = (self.kept(), mark, key_mark) {
            let marks = [mark, key_mark];
            kept.insert(names, certified.clone(), marks, local.scheduler.now());
        }
        Ok(certified)
    }

    /// A pair that is kept, and whose files are the ones that were read.
    async fn known<E: Engine>(&self, names: &PairNames, local: &Local<E>) -> Option<Certified> {
        let now = local.scheduler.now();
        let found = self.kept()?.find(names, now)?;
        let Some(marks) = found.in_doubt else {
            return Some(found.certified);
        };
        for (source, mark) in [&names.certificate, &names.key].into_iter().zip(marks) {
            let Source::Path(path) = source else {
                return None;
            };
            let metadata = local.engine.files().metadata(path, Symlinks::Follow).await;
            if Mark::of(&metadata.ok()?) != mark {
                return None;
            }
        }
        self.kept()?.confirm(names, now);
        Some(found.certified)
    }

    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        let kept = self.kept.as_ref()?;
        Some(kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What the name of a file comes to. As with nginx, the value may be the text itself.
fn source(file: &TlsFile, evaluate: &mut impl FnMut(&Template) -> Vec<u8>) -> Source {
    let Some(EvaluatedName { template, .. }) = &file.evaluated else {
        return match &*file.name == TlsFile::DATA {
            true => Source::Data(file.pem.clone()),
            false => Source::Path(file.name.clone()),
        };
    };
    let value = evaluate(template);
    match (value.strip_prefix(TlsFile::DATA), &file.evaluated) {
        (Some(text), _) => Source::Data(Text::from(text)),
        (None, Some(name)) => Source::Path(name.path(&value)),
        (None, None) => Source::Path(Text::from(value)),
    }
}

/// The text, and how its file is told from a later one of the same path.
async fn read<E: Engine>(
    source: &Source,
    what: &str,
    local: &Local<E>,
) -> Result<(Vec<u8>, Option<Mark>), String> {
    let path = match source {
        Source::Data(text) => return Ok((text.to_vec(), None)),
        Source::Path(path) => path,
    };
    let failed = |reason: &dyn fmt::Display| format!("cannot load {what} \"{source}\": {reason}");
    let opened = local.engine.files().open(path, Symlinks::Follow).await;
    let (file, metadata): (_, Metadata) = opened.map_err(|error| {
        let reason = format_args!("BIO_new_file() failed ({})", Errno(error.code)).to_string();
        failed(&reason)
    })?;
    if metadata.kind != FileKind::Regular {
        return Err(failed(&"it is no regular file"));
    }
    if metadata.len > FILE_BYTES_MAX {
        return Err(failed(&format_args!(
            "it has more than {FILE_BYTES_MAX} bytes"
        )));
    }
    match whole_file::read(local, &file, 0, metadata.len).await {
        Some(bytes) => Ok((bytes, Some(Mark::of(&metadata)))),
        None => Err(failed(&"it could not be read")),
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data(_) => formatter.write_str("data:"),
            Self::Path(path) => write!(formatter, "{}", Shown(path)),
        }
    }
}

impl fmt::Debug for EvaluatedCertificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "EvaluatedCertificates({} pairs)",
            self.pairs.len()
        )
    }
}

/// A chain of certificates or a key; the longest chains in use have some 20 KiB.
const FILE_BYTES_MAX: u64 = 1 << 20;
