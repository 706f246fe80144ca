//! `sticky`: the requests of a session go to one server, which a cookie, a route or the table of learnt sessions names.

use super::Proxying;
use crate::local::Local;
use crate::request::Request;
use crate::response::FieldLine;
use crate::variables;
use mill_config::Text;
use mill_config::config::{Sticky, StickyCookie, StickyExpires, StickyLearn, Upstream, Variable};
use mill_http::date::imf_fixdate;
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::time::Instant;
use mill_upstream::group::Group;
use mill_upstream::peer::Peer;
use mill_upstream::select::Selected;
use mill_upstream::sessions::Sessions;
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

/// What the request says of its session: the server's name, or the session's own with `learn`.
pub(super) fn lookup<E: Engine>(
    upstream: &Upstream,
    request: &mut Request,
    local: &Local<E>,
) -> Vec<u8> {
    match &upstream.sticky {
        None => Vec::new(),
        Some(Sticky::Cookie(cookie)) => {
            let cookie = Variable::Cookie(cookie.name.clone());
            first_value(std::slice::from_ref(&cookie), request, local)
        }
        Some(Sticky::Route(variables)) => first_value(variables, request, local),
        Some(Sticky::Learn(learn)) => first_value(&learn.lookup, request, local),
    }
}

/// The first value that is not empty.
fn first_value<E: Engine>(
    variables: &[Variable],
    request: &mut Request,
    local: &Local<E>,
) -> Vec<u8> {
    for variable in variables {
        let value = variables::value(variable, request, local);
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            return value.into_owned();
        }
    }
    Vec::new()
}

impl<E: Engine> Proxying<'_, E> {
    /// [`Peer::session_id`] of the server that the request's session is bound to now; empty without one.
    pub(super) fn bound_server(&self, now: Instant) -> Cow<'_, [u8]> {
        if self.session.is_empty() {
            return Cow::Borrowed(&[]);
        }
        let group = &self.group.group;
        let Some((learn, sessions)) = learning(group) else {
            return Cow::Borrowed(&self.session);
        };
        let server = sessions.find(&self.session, learn, now);
        Cow::Owned(server.map_or_else(Vec::new, |server| server.as_bytes().to_vec()))
    }

    /// A server was chosen.
    pub(super) fn chosen(&mut self, selected: &Selected) {
        if let Some(Sticky::Cookie(_)) = &self.group.group.config().sticky {
            self.named = Some(Arc::clone(selected.peer()));
        }
    }

    /// As in nginx, every answer names the last server that was chosen, an error page too.
    pub(super) fn set_cookie(&self, request: &mut Request) {
        if let (Some(Sticky::Cookie(cookie)), Some(peer)) =
            (&self.group.group.config().sticky, &self.named)
        {
            let value = cookie_value(cookie, peer, request, self.local);
            request.carried_fields.push(FieldLine {
                name: "Set-Cookie".into(),
                value: value.into(),
            });
        }
    }

    /// The head of an answer is here: its session is bound to the server, now or when the result is dropped.
    pub(super) fn learn(&self, peer: &Peer, request: &mut Request) -> Option<Box<Binding>> {
        let (learn, sessions) = learning(&self.group.group)?;
        let created = first_value(&learn.create, request, self.local);
        let creates = !created.is_empty();
        let session = if creates {
            created
        } else {
            self.session.clone()
        };
        if session.is_empty() {
            return None;
        }
        let binding = Box::new(Binding {
            learn: learn.clone(),
            sessions: Arc::clone(sessions),
            scheduler: Rc::clone(&self.local.scheduler),
            server: peer.session_id().clone(),
            session,
            creates,
        });
        Some(binding).filter(|_| !learn.after_head)
    }
}

fn learning(group: &Group) -> Option<(&StickyLearn, &Arc<Sessions>)> {
    match &group.config().sticky {
        Some(Sticky::Learn(learn)) => Some((learn, group.sessions()?)),
        _ => None,
    }
}

/// Binds a session to a server when it is dropped: at the end of the answer, whole or not.
#[derive(Debug)]
pub(super) struct Binding {
    sessions: Arc<Sessions>,
    learn: StickyLearn,
    scheduler: Rc<Scheduler>,
    session: Vec<u8>,
    server: Text,
    /// The answer begins the session; else it only goes on if it is known.
    creates: bool,
}

impl Drop for Binding {
    fn drop(&mut self) {
        let now = self.scheduler.now();
        if self.creates {
            (self.sessions).bind(&self.session, &self.server, &self.learn, now);
        } else {
            (self.sessions).bind_known(&self.session, &self.server, &self.learn, now);
        }
    }
}

/// The value of `Set-Cookie`, its parts in nginx's order.
fn cookie_value<E: Engine>(
    cookie: &StickyCookie,
    peer: &Peer,
    request: &mut Request,
    local: &Local<E>,
) -> Vec<u8> {
    let mut value = [cookie.name.as_bytes(), b"=", peer.session_id().as_bytes()].concat();
    match cookie.expires {
        None => {}
        Some(StickyExpires::Max) => value.extend_from_slice(EXPIRES_MAX),
        Some(StickyExpires::After(time)) => {
            let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
            let now = local.scheduler.wall_clock().seconds;
            value.extend_from_slice(b"; expires=");
            value.extend_from_slice(&cookie_date(now.saturating_add(seconds)));
            value.extend_from_slice(format!("; max-age={seconds}").as_bytes());
        }
    }
    if let Some(domain) = &cookie.domain {
        let domain = variables::evaluate(domain, request, local);
        attribute(b"; domain=", &domain, &mut value);
    }
    if cookie.httponly {
        value.extend_from_slice(b"; httponly");
    }
    if cookie.secure {
        value.extend_from_slice(b"; secure");
    }
    if let Some(samesite) = &cookie.samesite {
        let mut text = variables::evaluate(samesite, request, local);
        let mut known = SAMESITE.iter();
        if !text.is_empty() && !known.any(|known| text.eq_ignore_ascii_case(known)) {
            text = SAMESITE[0].to_vec();
        }
        attribute(b"; samesite=", &text, &mut value);
    }
    let path = cookie.path.as_ref().map(Text::as_bytes);
    attribute(b"; path=", path.unwrap_or_default(), &mut value);
    value.extend_from_slice(cookie.attributes.as_bytes());
    value
}

fn attribute(name: &[u8], text: &[u8], value: &mut Vec<u8>) {
    if !text.is_empty() {
        value.extend_from_slice(name);
        value.extend_from_slice(text);
    }
}

/// `Thu, 31-Dec-37 23:55:55 GMT`, as nginx writes dates in cookies: with four digits of the year from 2038 on.
fn cookie_date(seconds: i64) -> Vec<u8> {
    let mut date = imf_fixdate(seconds).to_vec();
    (date[7], date[11]) = (b'-', b'-');
    if date[12..16] < b"2038"[..] {
        date.drain(12..14);
    }
    date
}

/// `expires=max`.
const EXPIRES_MAX: &[u8] = b"; expires=Thu, 31-Dec-37 23:55:55 GMT; max-age=315360000";

/// The values of `samesite=`; the first one stands for what is none of them.
const SAMESITE: [&[u8]; 3] = [b"strict", b"lax", b"none"];

#[cfg(test)]
mod tests {
    use super::cookie_date;

    #[test]
    fn the_year_of_a_date_has_two_digits_until_2037() {
        let check = |seconds, expected: &str| assert_eq!(cookie_date(seconds), expected.as_bytes());
        check(2_145_916_555, "Thu, 31-Dec-37 23:55:55 GMT");
        check(2_145_916_800, "Fri, 01-Jan-2038 00:00:00 GMT");
        check(0, "Thu, 01-Jan-70 00:00:00 GMT");
    }
}
