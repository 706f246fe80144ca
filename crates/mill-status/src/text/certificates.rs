//! The table of certificates.

use super::columns::{Columns, Side};
use crate::document::Status;
use crate::tables::Certificate;

/// Each certificate in one line, the one that expires first in front.
pub fn certificates(status: &Status) -> String {
    let parts = status.parts.iter();
    let mut all: Vec<&Certificate> = parts.flat_map(|part| &part.certificates).collect();
    if all.is_empty() {
        return String::from("no servers with a certificate\n");
    }
    all.sort_by_key(|certificate| certificate.not_after);
    let mut table = Columns::new(&[
        ("DAYS LEFT", Side::Right),
        ("SERVER", Side::Left),
        ("VALID FOR", Side::Left),
        ("ISSUER", Side::Left),
        ("FILE", Side::Left),
    ]);
    for certificate in all {
        let left = match certificate.days_left {
            days if days < 0 => String::from("expired"),
            days => days.to_string(),
        };
        let names = match &certificate.names[..] {
            [] => certificate.subject.clone(),
            names => names.join(" "),
        };
        let Certificate {
            server,
            issuer,
            file,
            ..
        } = certificate;
        table.push(vec![
            left,
            if server.is_empty() {
                String::from("-")
            } else {
                server.clone()
            },
            names,
            issuer.clone(),
            file.clone(),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Part;

    #[test]
    fn the_certificate_that_expires_first_is_in_front() {
        let certificate = |server: &str, days_left| Certificate {
            server: server.into(),
            file: "/a.pem".into(),
            subject: "CN=a".into(),
            issuer: "CN=ca".into(),
            not_after: days_left,
            days_left,
            ..Certificate::default()
        };
        let late = Certificate {
            names: vec!["a.example".into(), "b.example".into()],
            ..certificate("late", 80)
        };
        let status = Status {
            parts: vec![Part {
                certificates: vec![late, certificate("early", 3), certificate("gone", -1)],
                ..Part::default()
            }],
            ..Status::default()
        };
        let text = certificates(&status);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(
            lines[1],
            "expired  gone    CN=a                 CN=ca   /a.pem"
        );
        assert!(lines[2].starts_with("3  early"), "{text}");
        assert!(lines[3].contains("a.example b.example"), "{text}");
        assert_eq!(
            certificates(&Status::default()),
            "no servers with a certificate\n"
        );
    }
}
