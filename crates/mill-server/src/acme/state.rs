//! Files in `state_path`: the account's key, and each certificate with its key. Only the worker's user can read them.

use super::{IssuedCertificate, Issuer};
use crate::local::Local;
use crate::log::{Errno, Text};
use mill_acme::client::Issued;
use mill_config::config::LogLevel;
use mill_runtime::engine::Engine;
use mill_runtime::files::{FileError, FileErrorKind, Files, Symlinks, Visibility};

/// Takes up certificates that have been written since the configuration was read, by another process or by this one.
pub(super) async fn take_up<E: Engine>(issuer: &Issuer, local: &Local<E>) {
    let Some(path) = &issuer.config.state_path else {
        return;
    };
    for certificate in &issuer.certificates {
        let chain = read(&certificate.order.certificate_path(path), local).await;
        let key = read(&certificate.order.key_path(path), local).await;
        if let (Ok(chain), Ok(key)) = (chain, key)
            && !certificate.take(&chain, &key)
        {
            let name = certificate.order.certificate_path(path);
            let text = format_args!("\"{}\" and its key cannot be used", Text(&name));
            local.log_error(None, LogLevel::Warn, text);
        }
    }
}

/// Writes a certificate and its key. Between the two another process finds a pair that does not match, and orders anew.
pub(super) fn keep<E: Engine>(
    issuer: &Issuer,
    certificate: &IssuedCertificate,
    issued: &Issued,
    local: &Local<E>,
) {
    let Some(path) = &issuer.config.state_path else {
        return;
    };
    let order = &certificate.order;
    write(&order.key_path(path), issued.key.as_bytes(), local);
    write(
        &order.certificate_path(path),
        issued.chain.as_bytes(),
        local,
    );
}

/// The account's key, as text; `None`: there is none yet.
pub(super) async fn account_key<E: Engine>(path: &[u8], local: &Local<E>) -> Option<String> {
    let path = account_key_path(path);
    match read(&path, local).await {
        Ok(pem) => String::from_utf8(pem).ok(),
        Err(error) if error.kind == FileErrorKind::NotFound => None,
        Err(error) => {
            let (path, call, code) = (Text(&path), error.call, Errno(error.code));
            let text = format_args!("{call} \"{path}\" failed ({code})");
            local.log_error(None, LogLevel::Error, text);
            None
        }
    }
}

pub(super) fn keep_account_key<E: Engine>(path: &[u8], pem: &str, local: &Local<E>) {
    write(&account_key_path(path), pem.as_bytes(), local);
}

fn account_key_path(path: &[u8]) -> Vec<u8> {
    [path, b"/account.key"].concat()
}

async fn read<E: Engine>(path: &[u8], local: &Local<E>) -> Result<Vec<u8>, FileError> {
    let files = local.engine.files();
    let (file, _) = files.open(path, Symlinks::Follow).await?;
    let mut content = vec![0; FILE_BYTES_MAX];
    let mut len = 0;
    loop {
        let rest = content.get_mut(len..).unwrap_or_default();
        match files.read_at(&file, len as u64, rest).await? {
            0 => break,
            read => len += read,
        }
    }
    content.truncate(len);
    Ok(content)
}

/// A file has this content, or the one before.
fn write<E: Engine>(path: &[u8], content: &[u8], local: &Local<E>) {
    let files = local.engine.files();
    let temporary = [path, b".new"].concat();
    let written = || {
        match files.remove(&temporary) {
            Err(error) if error.kind != FileErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = files.create(&temporary, 1, Visibility::Named)?;
        files.write_at(&file, 0, content)?;
        files.rename(&temporary, path)
    };
    if let Err(error) = written() {
        let (path, call, code) = (Text(path), error.call, Errno(error.code));
        let text = format_args!("{call} \"{path}\" failed ({code})");
        local.log_error(None, LogLevel::Error, text);
    }
}

/// Chains have a few kilobytes.
const FILE_BYTES_MAX: usize = 256 * 1024;
