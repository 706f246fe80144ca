//! The certificates that servers show, for status and metrics.

use crate::site::Site;
use mill_config::Text;
use mill_config::config::settings::TlsFile;
use mill_tls::certificate_facts::CertificateFacts;
use std::sync::Arc;

/// One certificate of a server.
#[derive(Clone, Debug)]
pub struct ServedCertificate {
    /// The first server with it, by its first name.
    pub server: Text,
    pub file: Text,
    pub facts: CertificateFacts,
}

impl ServedCertificate {
    /// Those of all servers, each once. Parses each.
    pub fn all(site: &Site) -> Vec<Self> {
        let (mut all, mut seen) = (Vec::new(), Vec::new());
        let config = &site.config;
        for server in config.http.iter().flat_map(|http| &http.servers) {
            let settings = &server.location.tls;
            if seen.contains(&Arc::as_ptr(settings)) {
                continue;
            }
            seen.push(Arc::as_ptr(settings));
            let files = settings.certificates.iter();
            all.extend(files.filter_map(|file| {
                Some(Self {
                    server: server.name.clone(),
                    file: file.name.clone(),
                    facts: CertificateFacts::of_pem(&file.pem)?,
                })
            }));
        }
        for certificate in site.tls.acme().certificates() {
            let names = certificate.order.names.iter().map(String::as_str);
            let facts = CertificateFacts::of_pem(&certificate.state().pem);
            all.extend(facts.map(|facts| Self {
                server: Text::from(names.clone().next().unwrap_or_default()),
                file: Text::from(TlsFile::ACME_CERTIFICATE),
                facts,
            }));
        }
        all
    }

    /// Whole days until it expires; negative once it has.
    pub fn days_left(&self, now_seconds: i64) -> i64 {
        let left = self.facts.not_after.saturating_sub(now_seconds);
        left.div_euclid(SECONDS_OF_DAY)
    }
}

const SECONDS_OF_DAY: i64 = 24 * 3600;
