//! The table of certificates. They stand in the configuration: no worker thread is asked.

use mill_server::site::Site;
use mill_server::tls::served::ServedCertificate;
use mill_status::tables::Certificate;

/// The certificates of all servers; `now` is in seconds since 1970.
pub(crate) fn rows(site: &Site, now: i64) -> Vec<Certificate> {
    let all = ServedCertificate::all(site).into_iter();
    all.map(|certificate| Certificate {
        days_left: certificate.days_left(now),
        server: certificate.server.display().into_owned(),
        file: certificate.file.display().into_owned(),
        names: certificate.facts.names,
        subject: certificate.facts.subject,
        issuer: certificate.facts.issuer,
        serial: certificate.facts.serial,
        not_before: certificate.facts.not_before,
        not_after: certificate.facts.not_after,
    })
    .collect()
}
