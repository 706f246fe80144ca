//! Asking a server for what is stale, while clients get that: a request of our own, without a client.

use super::look_up::Looking;
use crate::exchange::{ContentError, Exchange, SendError};
use crate::local::{Local, ResponseOf};
use crate::proxy;
use crate::proxy::connection::UpstreamConnection;
use crate::request::Request;
use crate::response::FieldLine;
use mill_config::config::LogLevel;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::spawned::Purpose;
use mill_runtime::time::Duration;
use std::fmt;
use std::marker::PhantomData;

/// Begins to ask for what `looking` has found stale.
pub(super) fn start<E: Engine>(looking: &mut Looking, request: &Request, local: &Local<E>) {
    let Some(update) = looking.take_update() else {
        return;
    };
    let shared = local.shared();
    let mut own = request.without_client(local);
    let asking = async move {
        let caching = update.into_caching(&own, &shared);
        proxy::update(caching, &mut own, &shared).await;
        shared.put_trace(own.upstream.take());
        shared.put_request(own);
    };
    if local.scheduler.spawn(Purpose::Background, asking).is_err() {
        let text = format_args!("no task is left to update a cache");
        local.log_error(Some(request), LogLevel::Error, text);
    }
}

/// The exchange of a request that no client waits for: it has no content, and its answer goes nowhere.
pub(in crate::proxy) struct NoClient<E>(PhantomData<E>);

impl<E> NoClient<E> {
    pub(in crate::proxy) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<E: Engine> Exchange for NoClient<E> {
    type Engine = E;

    async fn content(
        &mut self,
        _: &Request,
        _: usize,
        _: impl FnMut(&[u8]),
    ) -> Result<bool, ContentError> {
        Ok(false)
    }

    fn interim(&mut self, _: &Request, _: Status, _: &[FieldLine]) {}

    fn discard_present(&mut self, _: &Request, _: bool) -> Result<(), ContentError> {
        Ok(())
    }

    async fn respond(&mut self, _: &mut Request, _: Box<ResponseOf<E>>) -> Result<(), SendError> {
        Ok(())
    }

    async fn discard_rest(&mut self, _: &Request) -> Result<(), ContentError> {
        Ok(())
    }

    fn is_abandoned(&self) -> bool {
        false
    }

    fn is_reset(&self) -> bool {
        false
    }

    fn upgrade(&mut self, _: UpstreamConnection<E>, _: Duration) {}

    fn keep_open(&mut self, request: Box<Request>) -> Option<Box<Request>> {
        Some(request)
    }

    fn end_connection(&mut self, _: bool) {}

    fn abort(&mut self) {}
}

impl<E> fmt::Debug for NoClient<E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("NoClient")
    }
}
