//! The directories of temporary files, of caches and of what acme issuers keep, which workers may not be allowed to make.

use crate::locations;
use mill_config::config::{Config, Location, PassProtocol};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::Path;

/// Makes the directories that are missing, and gives them to the worker's user; returns those that could not be made, and
/// why. Only locations that pass requests on have temporary
/// files.
pub fn create_all(config: &Config, uid: Option<u32>) -> Vec<(String, io::Error)> {
    let create = |path: &[u8]| {
        let path = Path::new(OsStr::from_bytes(path));
        let failed = create(path, uid).err()?;
        Some((path.display().to_string(), failed))
    };
    paths(config).into_iter().filter_map(create).collect()
}

fn paths(config: &Config) -> BTreeSet<&[u8]> {
    let mut paths = BTreeSet::new();
    locations::visit_all(config, &mut |location: &Location| {
        let Some(pass) = &location.pass else { return };
        paths.insert(&*location.client_body.temp_path.path);
        let settings = match pass.protocol {
            // Its answers are not read ahead of the client.
            PassProtocol::Http if pass.is_grpc => return,
            PassProtocol::Http => &location.proxy,
            PassProtocol::Fastcgi => &location.fastcgi,
            PassProtocol::Uwsgi => &location.uwsgi,
            PassProtocol::Scgi => &location.scgi,
            // Its answers have no temporary files.
            PassProtocol::Memcached => return,
        };
        paths.insert(&*settings.temp_path.path);
    });
    let caches = config.http.iter().flat_map(|http| &http.cache_zones);
    let folders = caches.filter(|cache| cache.on_disk);
    paths.extend(folders.map(|cache| &*cache.path));
    let issuers = config.http.iter().flat_map(|http| &http.acme_issuers);
    paths.extend(issuers.filter_map(|issuer| issuer.state_path.as_deref()));
    paths
}

fn create(path: &Path, uid: Option<u32>) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    match uid {
        Some(uid) if std::fs::metadata(path)?.uid() != uid => chown(path, Some(uid), None),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Directory;
    use mill_config::{Memory, Options, load};

    #[test]
    fn directories_of_locations_that_pass_requests_on_are_made() {
        let scratch = Directory::new();
        let path = |name: &str| scratch.path(name).display().to_string();
        let (body, proxy, unused) = (path("a/body"), path("proxy"), path("unused"));
        let text = format!(
            "events {{ }} http {{ client_body_temp_path {body}; proxy_temp_path {unused};
             server {{ location / {{ proxy_temp_path {proxy} 1 2; proxy_pass http://127.0.0.1; }} }} }}"
        );
        let options = Options::default();
        let source = Memory::new().with(&*options.conf_file(), text);
        let config = load(&source, &options).unwrap().config;
        for _ in 0..2 {
            assert!(create_all(&config, None).is_empty());
        }
        for made in [&body, &proxy] {
            let mode = std::fs::metadata(made).unwrap().mode();
            assert_eq!(mode & 0o777, 0o700, "{made}");
        }
        assert!(!std::fs::exists(unused).unwrap());
        // A file is in the way of the directory.
        std::fs::remove_dir(&proxy).unwrap();
        std::fs::remove_dir(&body).unwrap();
        std::fs::remove_dir(path("a")).unwrap();
        std::fs::write(path("a"), "").unwrap();
        let failed = create_all(&config, None);
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0].0, body);
    }
}
