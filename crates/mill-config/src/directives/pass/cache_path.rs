//! `…_cache_path`, and names of caches, which may be used before they are defined.

use std::sync::Arc;

use crate::config::{CachePath, PassProtocol};
use crate::directives::upstream::zone::{Purpose, declare};
use crate::lexer::{Statement, Word};
use crate::resolve::draft::Origin;
use crate::resolve::{Applied, Resolver};
use crate::{Text, value};

/// The least size of a zone: two pages (nginx).
const ZONE_BYTES_MIN: u64 = 2 * 4096;

/// A cache that a directive has named or defined; its place in the list is its index.
pub(crate) struct CacheDraft {
    protocol: PassProtocol,
    zone: Text,
    /// Where it is named first.
    origin: Origin,
    path: Option<CachePath>,
}

/// What is said of a faulty parameter: the texts before and behind it.
struct Fault(String, &'static str);

impl Fault {
    fn new(before: &str) -> Self {
        Self(String::from(before), "")
    }

    fn unknown() -> Self {
        Self::new("invalid parameter")
    }
}

pub(super) fn cache_path(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    protocol: PassProtocol,
) -> Applied {
    let first = statement.arg(1);
    let path = &first.bytes;
    let path = resolver.full_name(path.strip_suffix(b"/").unwrap_or(path));
    let mut draft = CachePath::new(protocol, path.clone());
    let mut zone_word = None;
    for word in statement.args().iter().skip(1) {
        parameter(&mut draft, &word.bytes).map_err(|Fault(before, after)| {
            let message = format!("{before} \"{}\"{after}", word.display());
            resolver.emerg(statement, word, message)
        })?;
        if word.bytes.starts_with(b"keys_zone=") {
            zone_word = Some(word);
        }
    }
    let Some(zone_word) = zone_word.filter(|_| !draft.zone.is_empty()) else {
        let name = statement.name();
        let message = format!("\"{}\" must have \"keys_zone\" parameter", name.display());
        return Err(resolver.emerg(statement, name, message));
    };
    resolver.claim_path(statement, first, &path, true)?;
    let is_on_disk = draft.on_disk;
    define(resolver, statement, zone_word, draft)?;
    note_unused(resolver, statement, is_on_disk);
    Ok(())
}

/// One parameter behind the path.
fn parameter(draft: &mut CachePath, word: &[u8]) -> Result<(), Fault> {
    let at = word.iter().position(|&byte| byte == b'=');
    let (name, text) = word.split_at(at.ok_or_else(Fault::unknown)?);
    let text = text.get(1..).unwrap_or_default();
    match name {
        b"levels" => {
            let fault = || Fault::new("invalid \"levels\"");
            draft.levels = levels(text).ok_or_else(fault)?;
            Ok(())
        }
        b"keys_zone" => keys_zone(draft, text),
        b"use_temp_path" => flag(&mut draft.use_temp_path, "use_temp_path", text),
        b"disk" => flag(&mut draft.on_disk, "disk", text),
        b"purger" => flag(&mut draft.purger, "purger", text),
        b"memory" => set(&mut draft.memory_bytes, "memory", value::offset(text)),
        b"inactive" => set(&mut draft.inactive, "inactive", value::seconds(text)),
        b"max_size" => {
            let size = value::offset(text).map(Some);
            set(&mut draft.max_size_bytes, "max_size", size)
        }
        b"min_free" => set(&mut draft.min_free_bytes, "min_free", value::offset(text)),
        _ => pace(draft, name, text),
    }
}

/// A parameter of a background task.
fn pace(draft: &mut CachePath, name: &[u8], text: &[u8]) -> Result<(), Fault> {
    let shown = String::from_utf8_lossy(name);
    let (task, what) = shown.split_once('_').ok_or_else(Fault::unknown)?;
    let pace = match task {
        "manager" => &mut draft.manager,
        "loader" => &mut draft.loader,
        "purger" => &mut draft.purger_pace,
        _ => return Err(Fault::unknown()),
    };
    match what {
        "files" => set(&mut pace.files, &shown, value::number(text)),
        "sleep" => set(&mut pace.sleep, &shown, value::milliseconds(text)),
        "threshold" => set(&mut pace.threshold, &shown, value::milliseconds(text)),
        _ => Err(Fault::unknown()),
    }
}

fn set<T>(place: &mut T, name: &str, value: Option<T>) -> Result<(), Fault> {
    let fault = || Fault(format!("invalid {name} value"), "");
    *place = value.ok_or_else(fault)?;
    Ok(())
}

/// As in nginx, capitals are no flag here.
fn flag(place: &mut bool, name: &str, text: &[u8]) -> Result<(), Fault> {
    *place = match text {
        b"on" => true,
        b"off" => false,
        _ => {
            let about = ", it must be \"on\" or \"off\"";
            return Err(Fault(format!("invalid {name} value"), about));
        }
    };
    Ok(())
}

/// Up to three numbers of digits, each 1 or 2; none at all is no subdirectory.
fn levels(text: &[u8]) -> Option<[u8; 3]> {
    let mut levels = [0; 3];
    if text.is_empty() {
        return Some(levels);
    }
    let mut places = levels.iter_mut();
    for digits in text.split(|&byte| byte == b':') {
        *places.next()? = match digits {
            b"1" => 1,
            b"2" => 2,
            _ => return None,
        };
    }
    Some(levels)
}

/// A name, a colon and a size.
fn keys_zone(draft: &mut CachePath, text: &[u8]) -> Result<(), Fault> {
    let invalid = || Fault::new("invalid keys zone size");
    let colon = text.iter().position(|&byte| byte == b':');
    let (name, size) = text.split_at(colon.ok_or_else(invalid)?);
    let size = value::size(size.get(1..).unwrap_or_default()).ok_or_else(invalid)?;
    if size < ZONE_BYTES_MIN {
        let about = " is too small";
        return Err(Fault(String::from("keys zone"), about));
    }
    draft.zone = Text::from(name);
    draft.zone_bytes = size;
    Ok(())
}

/// Puts a cache at the place of its name.
fn define(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    word: &Word,
    path: CachePath,
) -> Applied {
    let (zone, size) = (path.zone.clone(), path.zone_bytes);
    let purpose = Purpose::Cache(path.protocol);
    declare(resolver, statement, word, &zone, Some(size), purpose)?;
    let index = index_of(resolver, statement, word, path.protocol, &zone);
    let http = resolver.http.as_mut();
    if let Some(draft) = http.and_then(|http| http.caches.get_mut(index)) {
        if draft.path.is_some() {
            let message = format!("duplicate zone \"{}\"", zone.display());
            return Err(resolver.emerg(statement, word, message));
        }
        draft.path = Some(CachePath { index, ..path });
    }
    Ok(())
}

/// The index of the cache of a name, the first argument; whether it exists shows at the end of the block.
pub(super) fn named(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    protocol: PassProtocol,
    zone: &Text,
) -> Applied<usize> {
    let word = statement.arg(1);
    let purpose = Purpose::Cache(protocol);
    declare(resolver, statement, word, zone, None, purpose)?;
    Ok(index_of(resolver, statement, word, protocol, zone))
}

fn index_of(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    word: &Word,
    protocol: PassProtocol,
    zone: &Text,
) -> usize {
    let Some(http) = &mut resolver.http else {
        return 0;
    };
    // A zone has one purpose, so its name alone is enough.
    if let Some(index) = http.caches.iter().position(|known| known.zone == *zone) {
        return index;
    }
    http.caches.push(CacheDraft {
        protocol,
        zone: zone.clone(),
        origin: Origin::of(statement, word),
        path: None,
    });
    http.caches.len() - 1
}

/// Tells what has no effect: with `disk=off`, all that concerns the directory.
fn note_unused(resolver: &mut Resolver<'_>, statement: &Statement, is_on_disk: bool) {
    let has_effect = |word: &&Word| {
        let always: &[&[u8]] = &[b"keys_zone=", b"inactive=", b"memory=", b"disk="];
        let on_disk: &[&[u8]] = &[
            b"levels=",
            b"max_size=",
            b"min_free=",
            b"loader_files=",
            b"loader_sleep=",
        ];
        let has = |known: &&[u8]| word.bytes.starts_with(known);
        always.iter().any(has) || (is_on_disk && on_disk.iter().any(has))
    };
    let parameters = statement.args().iter().skip(usize::from(is_on_disk));
    let unused = parameters.filter(|word| !has_effect(word));
    let unused: Vec<String> = unused
        .map(|word| format!("\"{}\"", word.display()))
        .collect();
    if unused.is_empty() {
        return;
    }
    let name = statement.name().display().into_owned();
    let message = match is_on_disk {
        true => format!("some parameters of \"{name}\" have no effect"),
        false => format!("\"{name}\" directive keeps answers in memory alone"),
    };
    let help = format!("without effect: {}", unused.join(", "));
    resolver.notice(statement, statement.name(), message, &help);
}

/// The caches in the order of their indices; refuses a name that nothing defines.
pub(crate) fn finish(drafts: Vec<CacheDraft>) -> Applied<Vec<Arc<CachePath>>> {
    let finished = drafts.into_iter().map(|draft| match draft.path {
        Some(path) => Ok(Arc::new(path)),
        None => {
            let (prefix, shown) = (draft.protocol.prefix(), draft.zone.display());
            let message = format!("\"{prefix}_cache\" zone \"{shown}\" is unknown");
            Err(draft.origin.error(message))
        }
    });
    finished.collect()
}
