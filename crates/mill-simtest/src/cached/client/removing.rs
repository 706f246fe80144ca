//! Requests that remove what is kept: purges, and changes that make it useless.

use super::Client;
use crate::cached::ledger::{Removal, RemovalWay};
use crate::cached::plan::request::Purge;
use crate::proxied::incoming::Framing;
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use mill_runtime::time::Duration;
use mill_sim::stream::SimStream;

impl Client {
    /// Sends a request that has no content in its answer; returns its status, and whether the connection stays open.
    async fn order(&self, stream: &SimStream, head: String) -> Option<(u16, bool)> {
        stream.write(Payload::Copy(head.as_bytes()));
        let incoming = self.incoming(stream);
        let head = incoming.head().await.ok()?;
        let status: u16 = head.first_line().get(9..12)?.parse().ok()?;
        let is_kept = head.field("Connection").ok()? != Some("close");
        let framing = head.framing(Framing::Length(0)).ok()?;
        let framing = if status == 204 {
            Framing::Length(0)
        } else {
            framing
        };
        incoming.content(framing, |_| Ok(())).await.ok()?;
        Some((status, is_kept))
    }

    pub(super) async fn purge(&self, stream: &SimStream, purge: &Purge) -> bool {
        let asked_at = self.now();
        let objects = &self.plan.objects;
        let zone = |object: usize| self.plan.zone.of(&objects[object].target);
        let (target, tag, is_gone): (String, String, Box<dyn Fn(usize) -> bool>) = match *purge {
            Purge::Object(object) => {
                let target = objects[object].target.clone();
                (target, String::new(), Box::new(move |it| it == object))
            }
            Purge::FolderOf(object) => {
                let folder = objects[object]
                    .target
                    .get(..3)
                    .unwrap_or_default()
                    .to_owned();
                let begins = folder.clone();
                let is_in = move |it: usize| objects[it].target.starts_with(&begins);
                (folder + "*", String::new(), Box::new(is_in))
            }
            Purge::Tag(tag, object) => {
                let is_gone =
                    move |it: usize| zone(it) == zone(object) && objects[it].tags.contains(&tag);
                let field = format!("Surrogate-Key: t{tag}\r\n");
                (objects[object].target.clone(), field, Box::new(is_gone))
            }
        };
        let head = format!("PURGE {target} HTTP/1.1\r\nHost: world\r\n{tag}\r\n");
        // A purge that the disk has no room for is done, too, as long as the process lives.
        let is_done = |status| status == 204 || (status == 500 && self.plan.disk.fills_up);
        match self.order(stream, head).await {
            Some((status, goes_on)) if is_done(status) => {
                let way = match purge {
                    Purge::Tag(..) => RemovalWay::Tag,
                    Purge::Object(_) | Purge::FolderOf(_) => RemovalWay::Key,
                };
                let gone = (0..objects.len()).filter(|it| is_gone(*it));
                self.remove(gone.collect(), asked_at, way);
                goes_on
            }
            other => {
                self.ledger.note(format!("{purge:?}: {other:?}"));
                false
            }
        }
    }

    fn remove(&self, objects: Vec<usize>, asked_at: Duration, way: RemovalWay) {
        self.ledger.removals.borrow_mut().push(Removal {
            objects,
            asked_at,
            done_at: self.now(),
            done: self.ledger.next_act(),
            way,
        });
    }

    /// An unsafe method: what is kept of its target is of no use any more (RFC 9111 4.4).
    pub(super) async fn change(&self, stream: &SimStream, object: usize) -> bool {
        let asked_at = self.now();
        let target = &self.plan.objects[object].target;
        let head = format!("POST {target} HTTP/1.1\r\nHost: world\r\nContent-Length: 0\r\n\r\n");
        let Some((status, goes_on)) = self.order(stream, head).await else {
            return false;
        };
        if status == 204 && self.plan.serving.follows_rfc {
            self.remove(vec![object], asked_at, RemovalWay::Change);
        }
        goes_on
    }
}
