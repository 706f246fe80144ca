//! Certificates in the text format of Prometheus.

use super::families::{Families, escaped};
use crate::site::Site;
use crate::tls::served::ServedCertificate;

/// Appends when each certificate expires; nothing if there are none.
pub(super) fn render(site: &Site, out: &mut String) {
    let all = ServedCertificate::all(site);
    if all.is_empty() {
        return;
    }
    let mut families = Families {
        prefix: "millstream_certificate_",
        out,
    };
    let help = "When a certificate expires, in seconds since 1970.";
    families.head("expires_seconds", "gauge", help);
    for certificate in &all {
        let server = certificate.server.display().into_owned();
        let file = certificate.file.display().into_owned();
        families.line(format_args!(
            "expires_seconds{{server=\"{}\",file=\"{}\",subject=\"{}\"}} {}",
            escaped(&server),
            escaped(&file),
            escaped(&certificate.facts.subject),
            certificate.facts.not_after
        ));
    }
}
