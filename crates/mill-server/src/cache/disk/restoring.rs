//! From a file to memory: for a request that has found nothing there.

use super::reading::{OpenObject, Unreadable};
use super::{Disk, meta};
use crate::cache::{StoredAnswer, now};
use crate::local::Local;
use crate::log::Text;
use crate::request::Request;
use mill_cache::disk::DiskName;
use mill_cache::{FillTicket, Restored, Zone};
use mill_config::config::LogLevel;
use mill_runtime::engine::Engine;
use std::sync::atomic::Ordering::Relaxed;

/// An object that is being restored.
struct Found<E: Engine> {
    name: DiskName,
    object: OpenObject<E>,
    stored: StoredAnswer,
}

impl Disk {
    /// Whether a file may have what is wanted: one lock, no allocation.
    pub(crate) fn may_have(&self, key: &[u8]) -> bool {
        self.index.has(DiskName::hash_of(key)) && self.state().is_open
    }

    /// Brings what fits the request into memory, where it is found from then on. Gives the ticket back if there is nothing:
    /// a server is to be asked. Reads two files at most: one says by which fields the answer varies, and so which one is
    /// wanted.
    pub(crate) async fn restore<E: Engine>(
        &self,
        mut ticket: FillTicket<StoredAnswer>,
        zone: &Zone<StoredAnswer>,
        request: &Request,
        local: &Local<E>,
    ) -> Option<FillTicket<StoredAnswer>> {
        let Some(found) = self.find(ticket.key(), request, local).await else {
            return Some(ticket);
        };
        let len = found.object.content_len();
        if len > zone.limits().object_bytes || !ticket.reserve(len) {
            return Some(ticket);
        }
        let content = match found.object.content(local).await {
            Ok(content) => content,
            Err(error) => {
                self.unreadable(&found.name, error, local);
                return Some(ticket);
            }
        };
        let Ok(record) = found.object.record() else {
            return Some(ticket);
        };
        // The claim came before: a purge that comes behind this look concerns it in memory.
        let is_purged = self
            .state()
            .purges
            .concerns(&found.name, record.key, &record.tags);
        if is_purged {
            self.leave(self.index.remove(&found.name));
            return Some(ticket);
        }
        let place = zone.key(record.key).map_or(0, |key| key.place());
        let is_restored = ticket.restore(Restored {
            meta: found.stored,
            tags: &record.tags,
            content,
            now: now(local),
        });
        if is_restored {
            self.index.used(&found.name, place, now(local));
            self.counts.restored.fetch_add(1, Relaxed);
        }
        None
    }

    async fn find<E: Engine>(
        &self,
        key: &[u8],
        request: &Request,
        local: &Local<E>,
    ) -> Option<Found<E>> {
        let names = self.index.find(DiskName::hash_of(key));
        let first = self.read(*names.first()?, key, local).await?;
        if first.stored.fits(request) {
            return Some(first);
        }
        let variant = first.stored.variant_for(request);
        let mut others = names.iter().skip(1);
        let other = *others.find(|name| name.variant == variant)?;
        let other = self.read(other, key, local).await?;
        other.stored.fits(request).then_some(other)
    }

    async fn read<E: Engine>(
        &self,
        name: DiskName,
        key: &[u8],
        local: &Local<E>,
    ) -> Option<Found<E>> {
        let object = match OpenObject::open(&self.path_of(&name), local).await {
            Ok(object) => object,
            Err(error) => {
                self.unreadable(&name, error, local);
                return None;
            }
        };
        let record = object.record().ok()?;
        if record.key != key {
            return None;
        }
        let stored = meta::parse(record.meta)?;
        Some(Found {
            name,
            object,
            stored,
        })
    }

    /// A file that cannot be used: what is damaged is removed, what is gone is forgotten.
    pub(super) fn unreadable<E: Engine>(
        &self,
        name: &DiskName,
        error: Unreadable,
        local: &Local<E>,
    ) {
        if error.is_gone() {
            if let Some(leaving) = self.index.remove(name) {
                self.index.removed(leaving);
            }
            return;
        }
        let path = self.path_of(name);
        let Unreadable::Damaged(damage) = error else {
            self.failed(format_args!("\"{}\": {error}", Text(&path)), local);
            return;
        };
        self.counts.damaged.fetch_add(1, Relaxed);
        self.leave(self.index.remove(name));
        let text = format_args!("cache file \"{}\" is removed: {damage}", Text(&path));
        local.log_error(None, LogLevel::Error, text);
    }
}
