//! Keeping parts (206) under the RFC's rules: RFC 9111 3.3.

use super::keep::{Said, Verdict};
use super::look_up::is_any_true;
use super::{Caching, note, parts};
use crate::cache::note::Unstored;
use crate::cache::{self, StoredAnswer};
use crate::local::Local;
use crate::request::Request;
use mill_cache::{Claim, PurgeMode};
use mill_http::caching::storing::WhyNotStored;
use mill_http::h1::response::Framing;
use mill_http::method::Method;
use mill_runtime::engine::Engine;

impl Caching {
    /// A part is kept as one, beside what is kept of the whole: those that wait for the whole ask for that.
    pub(super) fn judge_part<E: Engine>(
        &mut self,
        said: &Said<'_>,
        request: &mut Request,
        local: &Local<E>,
    ) -> Verdict {
        drop(self.ticket.take());
        let is_asked = request.method == Method::Get;
        if !is_asked || is_any_true(&self.settings.no_cache.clone(), request, local) {
            return Verdict::Pass;
        }
        let stored = self.stored_part(said, request, local).and_then(|stored| {
            let store = self.zone.store(local);
            let key = parts::key_of(&self.key);
            match store
                .key(&key)
                .map(|key| store.claim(key, cache::now(local)))
            {
                Ok(Claim::Fill(ticket)) => {
                    self.ticket = Some(ticket);
                    Ok(stored)
                }
                // The same part, or another one, is on its way.
                _ => Err(Unstored::By(WhyNotStored::Partial)),
            }
        });
        note(request, |note| {
            note.storing = Some(stored.as_ref().map(|_| ()).map_err(|why| *why));
        });
        match stored {
            Ok(stored) => {
                let tags = self.tags(stored.lines(), request, local);
                Verdict::Keep(Box::new(stored), tags)
            }
            Err(_) => Verdict::Pass,
        }
    }

    /// RFC 9111 3.3, 3.4.
    fn stored_part<E: Engine>(
        &self,
        said: &Said<'_>,
        request: &Request,
        local: &Local<E>,
    ) -> Result<StoredAnswer, Unstored> {
        let stored = self.stored_by_rfc(said, true, request, local)?;
        let place = parts::place(said.lines(), &stored).filter(|place| {
            let len = place.range.len();
            !matches!(said.head.framing, Framing::Length(announced) if announced != len)
        });
        let place = place.ok_or(Unstored::By(WhyNotStored::Partial))?;
        Ok(stored.of_part(place))
    }

    /// The whole is newer than parts of it.
    pub(super) fn forget_parts<E: Engine>(&self, local: &Local<E>) {
        let store = self.zone.store(local);
        if let Ok(parts) = store.key(&parts::key_of(&self.key))
            && store.find(parts, |_| true).is_some()
        {
            store.purge_related(parts, PurgeMode::Remove);
        }
    }
}
