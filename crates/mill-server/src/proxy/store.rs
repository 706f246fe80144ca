//! `…_store`: a copy of an answer as a file.

use super::trace::UpstreamTrace;
use crate::local::{FileOf, Local};
use crate::request::{Request, document};
use crate::temporary_file::{TemporaryFile, TemporaryFileError};
use mill_config::config::LogLevel;
use mill_config::config::settings::{PassSettings, PassStore};
use mill_http::method::Method;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::files::{Files, Publication, Visibility};
use mill_runtime::time::UnixTime;
use std::rc::Rc;

/// A copy while it is written: a temporary file, which gets its name once the answer is whole, and else is removed.
pub(super) struct FileCopy<E: Engine> {
    engine: E,
    trace: Rc<UpstreamTrace>,
    /// `None` once it has its name, or could not be written.
    file: Option<TemporaryFile<FileOf<E>>>,
    path: Vec<u8>,
    publication: Publication,
}

impl<E: Engine> FileCopy<E> {
    /// Of an answer with this status and date; `None` if it is not to be kept.
    pub(super) fn of(
        settings: &PassSettings,
        answer: (Status, Option<i64>),
        trace: &Rc<UpstreamTrace>,
        request: &mut Request,
        local: &Local<E>,
    ) -> Option<Box<Self>> {
        let (status, modified) = answer;
        if settings.store == PassStore::Off
            || status != Status::OK
            || request.method == Method::Head
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
                engine: local.engine.clone(),
                trace: Rc::clone(trace),
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
        let written = self.engine.files().write_at(&file.file, file.len, bytes);
        file.len += bytes.len() as u64;
        if let Err(error) = written {
            let path = file.path.clone();
            let error = TemporaryFileError { path, error };
            self.trace.note(format_args!("{error}"), LogLevel::Crit);
            self.discard();
        }
    }

    /// The answer is whole.
    pub(super) fn publish(mut self) {
        let Some(file) = &self.file else { return };
        let (files, path) = (self.engine.files(), &self.path);
        match files.publish(&file.file, &file.path, path, &self.publication) {
            Ok(()) => self.file = None,
            Err(error) => {
                let path = path.clone();
                let error = TemporaryFileError { path, error };
                self.trace.note(format_args!("{error}"), LogLevel::Crit);
            }
        }
    }

    fn discard(&mut self) {
        if let Some(file) = self.file.take() {
            // What is gone already needs no removal.
            let _ = self.engine.files().remove(&file.path);
        }
    }
}

impl<E: Engine> Drop for FileCopy<E> {
    fn drop(&mut self) {
        self.discard();
    }
}
