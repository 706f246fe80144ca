//! The parameters of a look-up: the `open_file_cache*` and `disable_symlinks` directives of the request's location.

use crate::local::Local;
use crate::request::Request;
use crate::variables;
use mill_config::config::Template;
use mill_config::config::settings::{DisableSymlinks, OpenFileCache, OpenFileSettings};
use mill_runtime::engine::Engine;
use mill_runtime::files::Symlinks;
use mill_runtime::time::{Duration, Instant};
use std::sync::Arc;

/// How a path is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Of the configuration that the request began with.
    pub generation: u64,
    pub now: Instant,
    pub symlinks: Symlinks,
    pub(super) cache: Option<OpenFileCache>,
    pub(super) valid: Duration,
    pub(super) min_uses: u64,
    pub(super) errors: bool,
}

impl Lookup {
    /// From the request's location.
    pub fn of<E: Engine>(path: &[u8], request: &mut Request, local: &Local<E>) -> Self {
        let symlinks = symlinks(path, request, local);
        let generation = request.site.generation;
        let now = local.scheduler.now();
        Self::new(&request.location.open_file, generation, now, symlinks)
    }

    pub fn new(
        settings: &OpenFileSettings,
        generation: u64,
        now: Instant,
        symlinks: Symlinks,
    ) -> Self {
        Self {
            generation,
            now,
            symlinks,
            cache: settings.cache.filter(|cache| cache.max > 0),
            valid: settings.valid,
            min_uses: settings.min_uses,
            errors: settings.errors,
        }
    }
}

/// The setting of `disable_symlinks` for `path`.
fn symlinks<E: Engine>(path: &[u8], request: &mut Request, local: &Local<E>) -> Symlinks {
    let location = Arc::clone(&request.location);
    let from = match &location.open_file.disable_symlinks {
        DisableSymlinks::Off => return Symlinks::Follow,
        DisableSymlinks::On { from } | DisableSymlinks::IfNotOwner { from } => from,
    };
    let mut evaluate = |template: &Template| variables::evaluate(template, request, local);
    let prefix = from.as_ref().map(&mut evaluate);
    let Some(from) = trusted(path, prefix.as_deref().unwrap_or_default()) else {
        return Symlinks::Follow;
    };
    match location.open_file.disable_symlinks {
        DisableSymlinks::IfNotOwner { .. } => Symlinks::RefuseUnlessSameOwner { from },
        _ => Symlinks::Refuse { from },
    }
}

/// How much of `path` is covered by `from=`, up to a slash; `None` is all of it.
fn trusted(path: &[u8], from: &[u8]) -> Option<usize> {
    let Some(rest) = path.strip_prefix(from) else {
        return Some(0);
    };
    match (rest.first(), from.split_last()) {
        (_, None) => Some(0),
        (None, _) => None,
        (Some(b'/'), _) => Some(from.len()),
        (_, Some((b'/', before))) => Some(before.len()),
        // A part of a name is no directory.
        _ => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_covers_whole_directories() {
        let check = |from: &str, expected: Option<usize>| {
            let covered = trusted(b"/srv/www/a", from.as_bytes());
            assert_eq!(covered, expected, "from={from}");
        };
        check("", Some(0));
        check("/srv", Some(4));
        check("/srv/", Some(4));
        check("/srv/www", Some(8));
        check("/srv/ww", Some(0));
        check("/other", Some(0));
        check("/srv/www/a", None);
        check("/srv/www/a/b", Some(0));
    }
}
