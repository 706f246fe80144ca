//! The open-file cache (`open_file_cache`): one worker's files that stay open between requests.
//!
//! Without the directive every request opens its file anew. With it an entry is used for `open_file_cache_valid`; then
//! the path is examined again, and only if it leads to another file is that one opened. Requests that look up a path
//! while a disk is being read for it share the one result. A request holds an `OpenFile`: the result of a look-up, and
//! how long it is valid.

/// Entries by path, least recently used last.
mod entries;
/// The parameters of a look-up.
mod lookup;
/// One file as it was found.
mod open_file;
/// Paths that are being examined.
mod under_way;

pub use lookup::Lookup;
pub use open_file::{Freshness, OpenFile, failure};

use entries::Entries;
use mill_config::config::settings::OpenFileCache;
use mill_runtime::files::{FileError, FileErrorKind, FileKind, Files, Metadata, Symlinks};
use mill_runtime::scheduler::Scheduler;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use under_way::UnderWay;

/// All caches of one worker: one for each different `open_file_cache` of the configuration in force.
pub struct OpenFiles<F> {
    caches: RefCell<Vec<Cache<F>>>,
    /// The configuration that the caches belong to; a newer one begins with empty caches.
    generation: Cell<u64>,
    /// Prevents clients from choosing paths that collide.
    seed: u64,
    under_way: UnderWay,
}

struct Cache<F> {
    setting: OpenFileCache,
    entries: Entries<F>,
}

/// Why the caller looks up the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// To send its content.
    Open,
    /// To know whether it exists.
    Test,
    /// The same, for a path that should be a directory.
    TestDirectory,
}

impl<F: Clone + 'static> OpenFiles<F> {
    /// No files yet. `seed` is a random number.
    pub fn new(scheduler: &Rc<Scheduler>, seed: u64) -> Self {
        Self {
            caches: RefCell::new(Vec::new()),
            generation: Cell::new(0),
            seed,
            under_way: UnderWay::new(scheduler),
        }
    }

    /// The cached result for `path`, without asking the file system; counts as a use. A cached failure
    /// (`open_file_cache_errors`) is a result too.
    pub fn fresh(
        &self,
        path: &[u8],
        lookup: &Lookup,
    ) -> Option<Result<Rc<OpenFile<F>>, FileError>> {
        let found = self.with_entries(lookup, |entries| entries.fresh(path, lookup))??;
        Some(match found.failure() {
            Some(error) => Err(error),
            None => Ok(found),
        })
    }

    /// Opens `path`, or takes it from the cache. A directory is examined but not kept open.
    pub async fn open(
        &self,
        files: &impl Files<File = F>,
        path: &[u8],
        lookup: &Lookup,
    ) -> Result<Rc<OpenFile<F>>, FileError> {
        self.find(files, path, lookup, Purpose::Open).await
    }

    /// Examines `path`: a file may be opened soon after, so the cache opens it now.
    pub async fn test(
        &self,
        files: &impl Files<File = F>,
        path: &[u8],
        lookup: &Lookup,
    ) -> Result<Rc<OpenFile<F>>, FileError> {
        self.find(files, path, lookup, Purpose::Test).await
    }

    /// Examines `path`, which should be a directory: the cache opens it only if it is none.
    pub async fn test_directory(
        &self,
        files: &impl Files<File = F>,
        path: &[u8],
        lookup: &Lookup,
    ) -> Result<Rc<OpenFile<F>>, FileError> {
        self.find(files, path, lookup, Purpose::TestDirectory).await
    }

    async fn find(
        &self,
        files: &impl Files<File = F>,
        path: &[u8],
        lookup: &Lookup,
        purpose: Purpose,
    ) -> Result<Rc<OpenFile<F>>, FileError> {
        let Some(setting) = lookup.cache else {
            let found = match purpose {
                Purpose::Open => open(files, path, lookup.symlinks).await?,
                Purpose::Test | Purpose::TestDirectory => {
                    (None, metadata(files, path, lookup.symlinks).await?)
                }
            };
            return Ok(Rc::new(OpenFile::found(found.0, found.1, None)));
        };
        if let Some(known) = self.fresh(path, lookup) {
            return known;
        }
        let symlinks = lookup.symlinks;
        let mut turn = self.under_way.join(setting, symlinks, path);
        if let Some(turn) = &mut turn {
            turn.wait().await?;
            if let Some(known) = self.fresh(path, lookup) {
                return known;
            }
        }
        let stale = self
            .with_entries(lookup, |entries| entries.found(path))
            .flatten();
        let mut examined = pin!(examine(files, path, symlinks, stale.as_deref(), purpose));
        let result = match poll_fn(|context| Poll::Ready(examined.as_mut().poll(context))).await {
            Poll::Ready(result) => result,
            Poll::Pending => {
                let turn =
                    turn.get_or_insert_with(|| self.under_way.begin(setting, symlinks, path));
                let result = examined.await;
                if let Err(failure) = &result {
                    turn.tell(*failure);
                }
                result
            }
        };
        self.keep(path, lookup, result)
    }

    /// Puts a result into the cache, replacing the previous one, and removes inactive entries. A refusal is not a result:
    /// it says nothing about the path.
    fn keep(
        &self,
        path: &[u8],
        lookup: &Lookup,
        result: Result<(Option<F>, Metadata), FileError>,
    ) -> Result<Rc<OpenFile<F>>, FileError> {
        let kept = self.with_entries(lookup, |entries| {
            let kept = match result {
                Err(error) if error.kind == FileErrorKind::Overloaded => return Err(error),
                Ok((file, metadata)) => Ok(entries.renew(path, lookup, file, metadata)),
                Err(error) if lookup.errors => {
                    entries.renew_failure(path, lookup, error);
                    Err(error)
                }
                Err(error) => {
                    entries.remove(path);
                    Err(error)
                }
            };
            entries.expire(lookup.now);
            kept
        });
        // `with_entries` returns `None` only without a cache, which `find` has excluded.
        kept.unwrap_or(Err(NO_CACHE))
    }

    /// The entries of the look-up's cache, if it has one.
    fn with_entries<R>(
        &self,
        lookup: &Lookup,
        act: impl FnOnce(&mut Entries<F>) -> R,
    ) -> Option<R> {
        let setting = lookup.cache?;
        let mut caches = self.caches.borrow_mut();
        if lookup.generation > self.generation.get() {
            self.generation.set(lookup.generation);
            caches.clear();
        }
        let known = caches.iter().position(|cache| cache.setting == setting);
        let index = known.unwrap_or_else(|| {
            let entries = Entries::new(&setting, self.seed);
            caches.push(Cache { setting, entries });
            caches.len() - 1
        });
        caches.get_mut(index).map(|cache| act(&mut cache.entries))
    }
}

/// The result when a look-up without a cache asks the cache.
const NO_CACHE: FileError = FileError {
    kind: FileErrorKind::Other,
    call: "open()",
    code: 0,
};

/// Examines a path again, or for the first time. A file that is still the same stays open, a directory that is still
/// one is not opened.
async fn examine<F: Clone + 'static>(
    files: &impl Files<File = F>,
    path: &[u8],
    symlinks: Symlinks,
    stale: Option<&OpenFile<F>>,
    purpose: Purpose,
) -> Result<(Option<F>, Metadata), FileError> {
    let stale = stale.filter(|stale| stale.failure().is_none());
    let was_directory = stale.is_some_and(|stale| stale.metadata.kind == FileKind::Directory);
    let kept = stale.and_then(|stale| Some((stale.file.clone()?, stale.metadata)));
    if let Some((file, before)) = kept {
        let now = metadata(files, path, symlinks).await?;
        if (now.inode, now.device) == (before.inode, before.device) {
            return Ok((Some(file), now));
        }
    } else if was_directory || purpose == Purpose::TestDirectory {
        let now = metadata(files, path, symlinks).await?;
        if now.kind == FileKind::Directory {
            return Ok((None, now));
        }
    }
    open(files, path, symlinks).await
}

async fn open<F: Clone + 'static>(
    files: &impl Files<File = F>,
    path: &[u8],
    symlinks: Symlinks,
) -> Result<(Option<F>, Metadata), FileError> {
    let opened = files.open(path, symlinks).await;
    let (file, metadata) = opened.map_err(|error| named(error, symlinks))?;
    let file = (metadata.kind != FileKind::Directory).then_some(file);
    Ok((file, metadata))
}

async fn metadata<F: Clone + 'static>(
    files: &impl Files<File = F>,
    path: &[u8],
    symlinks: Symlinks,
) -> Result<Metadata, FileError> {
    let found = files.metadata(path, symlinks).await;
    found.map_err(|error| named(error, symlinks))
}

/// A path whose links are examined is walked with openat(), which nginx's log names.
fn named(error: FileError, symlinks: Symlinks) -> FileError {
    match symlinks {
        Symlinks::Follow => error,
        _ => FileError {
            call: "openat()",
            ..error
        },
    }
}

impl<F> fmt::Debug for OpenFiles<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let caches = self.caches.try_borrow().map_or(0, |caches| caches.len());
        write!(formatter, "OpenFiles {{ caches: {caches} }}")
    }
}

#[cfg(test)]
mod tests;
