//! `…_store`: a copy of an answer as a file.

use super::trace::UpstreamTrace;
use crate::local::{FileOf, Local};
use crate::log::error::ErrorContext;
use crate::request::{Request, document};
use crate::temporary_file::{TemporaryFile, TemporaryFileError};
use mill_config::config::settings::{PassSettings, PassStore};
use mill_config::config::{Location, LogLevel};
use mill_http::h1::response::RequestKind;
use mill_http::method::Method;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::files::{Files, Publication, Visibility};
use mill_runtime::spawned::Purpose;
use mill_runtime::time::UnixTime;
use std::rc::Rc;
use std::sync::Arc;

/// A copy while it is written: a temporary file, which gets its name once the answer is whole, and else is removed.
pub(super) struct FileCopy<E: Engine> {
    local: Rc<Local<E>>,
    trace: Rc<UpstreamTrace>,
    /// What the log says of the request, and where: it may be over when the copy gets its name.
    context: ErrorContext,
    location: Arc<Location>,
    /// `None` once it has its name, or could not be written.
    file: Option<TemporaryFile<FileOf<E>>>,
    path: Vec<u8>,
    publication: Publication,
}

impl<E: Engine> FileCopy<E> {
    /// Of an answer with this status and date to a request of this kind; `None` if it is not to be kept.
    pub(super) fn of(
        settings: &PassSettings,
        kind: RequestKind,
        answer: (Status, Option<i64>),
        trace: &Rc<UpstreamTrace>,
        request: &mut Request,
        local: &Local<E>,
    ) -> Option<Box<Self>> {
        let (status, modified) = answer;
        if settings.store == PassStore::Off
            || status != Status::OK
            || request.method == Method::Head
            || kind == RequestKind::Head
        {
            return None;
        }
        let path = match &settings.store {
            PassStore::Path(template) => document::absolute_path(template, request, local),
            _ => document::document_path(request, local).path,
        };
        let directory = &settings.temp_path;
        match TemporaryFile::create(directory, Visibility::Named, local) {
            Ok(file) => Some(Box::new(Self {
                local: local.shared(),
                trace: Rc::clone(trace),
                context: local.error_context(request),
                location: Arc::clone(&request.location),
                file: Some(file),
                path,
                publication: Publication {
                    mode: settings.store_access,
                    modified: modified.map(UnixTime::from_seconds),
                },
            })),
            Err(error) => {
                trace.note(format_args!("{error}"), LogLevel::Crit);
                None
            }
        }
    }

    /// The next bytes of the content.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let files = self.local.engine.files();
        let written = files.write_at(&file.file, file.len, bytes);
        file.len += bytes.len() as u64;
        if let Err(error) = written {
            let path = file.path.clone();
            let error = TemporaryFileError { path, error };
            self.trace.note(format_args!("{error}"), LogLevel::Crit);
            self.discard();
        }
    }

    /// The answer is whole. A task of its own gives the copy its name: the disk, or another file system, may take its
    /// time.
    pub(super) fn publish(self: Box<Self>) {
        let local = Rc::clone(&self.local);
        if let Err(full) = local.scheduler.spawn(Purpose::Finishing, self.give_name()) {
            drop(full);
            let text = format_args!("no task is left to store an answer");
            local.log_error(None, LogLevel::Error, text);
        }
    }

    async fn give_name(mut self: Box<Self>) {
        let Some(file) = &self.file else { return };
        let (files, path) = (self.local.engine.files(), &self.path);
        let published = files.publish(&file.file, &file.path, path, &self.publication);
        match published.await {
            Ok(()) => self.file = None,
            Err(error) => {
                let path = path.clone();
                let error = TemporaryFileError { path, error };
                let (context, logs) = (&self.context, &self.location.log.error_logs);
                let text = format_args!("{error} while reading upstream");
                self.local.log_error_in(context, logs, LogLevel::Crit, text);
            }
        }
    }

    fn discard(&mut self) {
        if let Some(file) = self.file.take() {
            // What is gone already needs no removal.
            let _ = self.local.engine.files().remove(&file.path);
        }
    }
}

impl<E: Engine> Drop for FileCopy<E> {
    fn drop(&mut self) {
        self.discard();
    }
}
