//! What the API changes: servers of groups, what caches hold, and counters that begin anew.

use super::error::ApiError;
use super::{frang, purging, resetting, servers, upstreams};
use crate::answer::Answer;
use crate::exchange::Exchange;
use crate::local::{AnswerOf, Local};
use crate::request::Request;
use crate::temporary_file::TemporaryFileError;
use mill_config::config::LogLevel;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::files::{FileError, Files, Visibility};
use mill_upstream::group::Group;
use serde_json::Value;

/// The request's content; 413 if there is more than `client_body_buffer_size`, as in NGINX Plus.
pub(super) async fn content<X: Exchange>(
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> Result<Vec<u8>, AnswerOf<X::Engine>> {
    let most = request.location.client_body.buffer_size;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut content = Vec::new();
    loop {
        let room = (most + 1).saturating_sub(content.len());
        let take = |piece: &[u8]| content.extend_from_slice(piece);
        match exchange.content(request, room, take).await {
            Ok(true) if content.len() > most => {
                return Err(Answer::Status(Status::CONTENT_TOO_LARGE));
            }
            Ok(true) => {}
            Ok(false) => return Ok(content),
            Err(error) => return Err(Answer::without_content(error, request, local)),
        }
    }
}

/// Changes what `path`, which is behind the version, stands for.
pub(super) fn change<E: Engine>(
    path: &[&str],
    content: &[u8],
    request: &Request,
    local: &Local<E>,
) -> Result<(Status, Option<Value>), ApiError> {
    let groups = &request.site.upstreams;
    if request.method_name() == b"DELETE"
        && let Some(done) = resetting::reset(path, request, local)
    {
        return done.map(|()| (Status::NO_CONTENT, None));
    }
    if let (b"POST", ["http", "caches", name]) = (request.method_name(), path) {
        purging::purge(name, content, &request.site.caches, local)?;
        return Ok((Status::NO_CONTENT, None));
    }
    if let (b"POST", ["http", "frang", "blocks"]) = (request.method_name(), path) {
        let clock = super::Clock::of(local);
        return frang::add(content, request, &clock).map(|value| (Status(201), Some(value)));
    }
    let (status, (group, done)) = match (request.method_name(), path) {
        (b"POST", ["http", "upstreams", name, "servers"]) => {
            let group = upstreams::named(name, groups)?;
            (
                Status(201),
                group.amend(|group| servers::add(group, content)),
            )
        }
        (b"PATCH", ["http", "upstreams", name, "servers", id]) => {
            let group = upstreams::named(name, groups)?;
            (
                Status::OK,
                group.amend(|group| servers::change(group, id, content)),
            )
        }
        (b"DELETE", ["http", "upstreams", name, "servers", id]) => {
            let group = upstreams::named(name, groups)?;
            (Status::OK, group.amend(|group| servers::remove(group, id)))
        }
        _ => {
            super::find(path, request, local)?;
            return Err(ApiError::METHOD_NOT_SUPPORTED);
        }
    };
    let value = done?;
    save(&group, request, local);
    Ok((status, Some(value)))
}

/// Writes the group's `state` file: another file takes its place, so that it is whole at any time. If that fails, the change is
/// in force all the same, until the next reload.
fn save<E: Engine>(group: &Group, request: &Request, local: &Local<E>) {
    let Some(path) = &group.config().state else {
        return;
    };
    let files = local.engine.files();
    let number = local.next_temporary_number();
    let suffix = format!(".{}.{number}", local.environment.pid);
    let temporary = [path.as_bytes(), suffix.as_bytes()].concat();
    let written = group.save(|text| {
        let file = files.create(&temporary, 0, Visibility::Named)?;
        let written = files.write_at(&file, 0, text);
        let renamed = written.and_then(|()| files.rename(&temporary, path));
        if renamed.is_err() {
            // What is left of it is of no use; the first error is told.
            let _ = files.remove(&temporary);
        }
        renamed
    });
    if let Err(error) = written {
        log(temporary, error, request, local);
    }
}

fn log<E: Engine>(path: Vec<u8>, error: FileError, request: &Request, local: &Local<E>) {
    let failed = TemporaryFileError { path, error };
    let text = format_args!("{failed} while saving upstream state");
    local.log_error(Some(request), LogLevel::Crit, text);
}
