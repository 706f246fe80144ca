//! The filler's end of a fill: the claim until the head is known, then the content.

use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

use crate::content::{Appended, ContentReader, ContentWriter, LengthMismatch, Room};
use crate::filling::{Filling, Head};
use crate::ledger::Reservation;
use crate::object::{Object, Weigh};
use crate::zone::{Restored, Zone};

/// The claim on the fill of a key. Exactly one of its methods ends it; dropped, it has failed. All waiters are woken.
#[derive(Debug)]
pub struct FillTicket<M: Weigh> {
    zone: Arc<Zone<M>>,
    filling: Arc<Filling<M>>,
    /// What is read from a disk, until it is stored.
    reservation: Option<Reservation>,
}

/// What is known of an answer when its head is.
#[derive(Debug)]
pub struct Arrival<'a, M> {
    /// What is stored beside the content.
    pub meta: M,
    /// Tags to purge it by; those beyond the limits are ignored.
    pub tags: &'a [&'a [u8]],
    /// The length of the content, if it was announced.
    pub length: Option<u64>,
    /// Bytes of content at most, beside the zone's own limit; longer content is passed through.
    pub length_max: u64,
    /// The time of the caller.
    pub now: Duration,
}

impl<M: Weigh> FillTicket<M> {
    pub(crate) fn new(zone: Arc<Zone<M>>, filling: Arc<Filling<M>>) -> Self {
        Self {
            zone,
            filling,
            reservation: None,
        }
    }

    /// The bytes of the claimed key.
    pub fn key(&self) -> &[u8] {
        &self.filling.key
    }

    /// When it was claimed.
    pub fn since(&self) -> Duration {
        self.filling.since
    }

    /// The head has come and may be stored: the object is found from now on, while its content grows, and the waiters get
    /// it. Once whole it removes those variants of the key that it `replaces`. The reader is the filler's own, from the
    /// first byte. If a limit or a purge forbids to store it, the fill is a passing stream, and the waiters are told so.
    pub fn start(
        self,
        arrival: Arrival<'_, M>,
        replaces: impl Fn(&M) -> bool,
    ) -> (Fill<M>, ContentReader) {
        self.zone.clone().start(&self.filling, arrival, replaces)
    }

    /// The stored object was validated (304): a new object with this metadata and the same content takes its place, and
    /// is given to the waiters. It is stored unless a purge or a limit forbids, or the old one is not stored any more; the
    /// caller may use it in any case.
    /// [`Arrival::length`] has no meaning here.
    pub fn refresh(self, old: &Arc<Object<M>>, arrival: Arrival<'_, M>) -> Arc<Object<M>> {
        self.zone.refresh(&self.filling, old, arrival)
    }

    /// A stored object was validated for other requests than its own: a new object with this metadata and the same content is
    /// listed beside it, and given to the waiters; the variants of the key that it `replaces` go. Each of the two counts the
    /// content. It is stored unless a purge or a limit forbids, or the old one is not stored any more; the caller may use it
    /// in any case. [`Arrival::length`] has no meaning here.
    pub fn share(
        self,
        old: &Arc<Object<M>>,
        arrival: Arrival<'_, M>,
        replaces: impl Fn(&M) -> bool,
    ) -> Arc<Object<M>> {
        self.zone.share(&self.filling, old, arrival, replaces)
    }

    /// Counts so many bytes among those that are being filled, until the ticket is used; false if the limit forbids it.
    pub fn reserve(&mut self, bytes: u64) -> bool {
        let zone = &self.zone;
        let reservation = self.reservation.get_or_insert_with(|| zone.reservation());
        reservation.extend(bytes)
    }

    /// The object was read from a disk: it is found from now on, and those that wait look again. False if it is not stored,
    /// because a purge since the claim or a limit forbids it.
    pub fn restore(self, restored: Restored<'_, M>) -> bool {
        self.zone.restore(&self.filling, restored)
    }

    /// The answer is not to be stored.
    pub fn not_stored(self) {
        self.zone.end_claim(&self.filling, Head::NotStored);
    }
}

impl<M: Weigh> Drop for FillTicket<M> {
    fn drop(&mut self) {
        // Without effect after any of the methods.
        self.zone.end_claim(&self.filling, Head::Failed);
    }
}

/// Writes the content of an object. Dropped before [`finish`](Self::finish), the content has failed for all its readers.
#[derive(Debug)]
pub struct Fill<M: Weigh> {
    zone: Arc<Zone<M>>,
    object: Arc<Object<M>>,
    writer: ContentWriter,
    /// The variants that go when it is whole; what is evicted before then must not be held until then.
    replaced: Vec<Weak<Object<M>>>,
    is_storing: bool,
}

impl<M: Weigh> Fill<M> {
    pub(crate) fn new(
        zone: Arc<Zone<M>>,
        object: Arc<Object<M>>,
        writer: ContentWriter,
        replaced: Option<Vec<Weak<Object<M>>>>,
    ) -> Self {
        // Not what the object says now: a purge in between is found at the next bytes, as any later one.
        let is_storing = replaced.is_some();
        Self {
            zone,
            object,
            writer,
            replaced: replaced.unwrap_or_default(),
            is_storing,
        }
    }

    /// The object, whose content this is.
    pub fn object(&self) -> &Arc<Object<M>> {
        &self.object
    }

    /// Whether it is still to be stored.
    pub fn is_storing(&self) -> bool {
        self.is_storing
    }

    /// Copies `bytes` to the end and wakes the readers. An object that turns out too large is not found any more.
    pub fn append(&mut self, bytes: &[u8]) -> Appended {
        if self.is_storing && !self.object.is_listed() {
            self.is_storing = false;
            self.writer.pass();
        }
        let appended = self.writer.append(bytes);
        if self.is_storing && appended != Appended::Stored {
            self.zone.count_pass();
            self.abandon();
        }
        appended
    }

    /// Whether the next bytes may come; with [`Room::Full`], `waker` is woken when they may, or when nothing reads it.
    pub fn poll_room(&self, waker: &Waker) -> Room {
        self.writer.poll_room(waker)
    }

    /// All bytes were appended. The object if it is stored; an error if the length is not the announced one.
    pub fn finish(mut self) -> Result<Option<Arc<Object<M>>>, LengthMismatch> {
        if !self.object.is_listed() {
            self.writer.pass();
        }
        let is_whole = self.writer.finish()?;
        let is_storing = std::mem::take(&mut self.is_storing);
        if !is_whole || !is_storing {
            return Ok(None);
        }
        let replaced = std::mem::take(&mut self.replaced);
        let is_stored = self.zone.complete(&self.object, &replaced);
        Ok(is_stored.then(|| self.object.clone()))
    }

    fn abandon(&mut self) {
        if std::mem::take(&mut self.is_storing) {
            self.zone.abandon(&self.object);
        }
    }
}

impl<M: Weigh> Drop for Fill<M> {
    fn drop(&mut self) {
        self.abandon();
    }
}
