//! TLS as ab has it: `-f`, `-Z`, `-E` and `-I`, and what its report says of the connections.
//!
//! Every handshake is a full one, and no certificate is checked. TLS 1.0 and 1.1 are refused in words.

use super::arguments::Options;
use super::message::Message;
use crate::tls::TlsPlan;
use core::net::IpAddr;
use mill_config::cipher_list::{known_names, select};
use mill_tls::certificate::{self, CertificateError, Certified};
use mill_tls::client_context::ClientSettings;
use mill_tls::facts::TlsFacts;
use mill_tls::groups::group_name;
use mill_tls::public_key::public_key_bits;
use mill_tls::server_context::all_cipher_names;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The options of TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TlsOptions {
    /// `-f`.
    pub(super) protocol: Protocol,
    /// `-Z`: those of TLS 1.2, in OpenSSL's words.
    pub(super) ciphers: Option<Vec<u8>>,
    /// `-E`: the file of a certificate with its key.
    pub(super) certificate: Option<Vec<u8>>,
    /// `-I`.
    pub(super) is_nameless: bool,
}

/// The versions of `-f`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Protocol {
    #[default]
    All,
    Tls12,
    Tls13,
}

/// What the first handshake has agreed on, for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Secured {
    pub(super) protocol: &'static str,
    pub(super) cipher: &'static str,
    /// Of the key in the server's certificate.
    pub(super) key_bits: u32,
    /// The group in which keys were exchanged.
    pub(super) group: Option<u16>,
}

/// How connections are secured, and what is to be told of it on stderr.
#[derive(Debug)]
pub(super) struct Prepared {
    /// `None`: in clear.
    pub(super) plan: Option<TlsPlan>,
    pub(super) notice: Option<String>,
}

impl Protocol {
    /// The word of `-f`, in any case and with anything behind it; one that Debian's ab does not know is `ALL`, which SSL2
    /// and SSL3 are too. `Err`: a version that is not here.
    pub(super) fn parse(word: &[u8]) -> Result<Self, &'static str> {
        let starts = |name: &[u8]| {
            let start = word.get(..name.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        if starts(b"TLS1.2") {
            Ok(Self::Tls12)
        } else if starts(b"TLS1.3") {
            Ok(Self::Tls13)
        } else if starts(b"TLS1.1") {
            Err("TLS1.1")
        } else if starts(b"TLS1") {
            Err("TLS1")
        } else {
            Ok(Self::All)
        }
    }
}

impl Secured {
    pub(super) fn of(facts: &TlsFacts) -> Self {
        let certificate = facts.peer_certificates.first();
        Self {
            protocol: facts.protocol,
            cipher: facts.cipher,
            key_bits: certificate
                .and_then(|der| public_key_bits(der))
                .unwrap_or(0),
            group: facts.group,
        }
    }

    /// The bits of the cipher's key.
    fn cipher_bits(&self) -> u32 {
        let is_128 = self.cipher.contains("AES128") || self.cipher.contains("AES_128");
        if is_128 { 128 } else { 256 }
    }

    fn temporary_key(&self) -> Option<String> {
        let name = group_name(self.group?)?;
        Some(match name {
            "X25519" => String::from("X25519 253 bits"),
            "prime256v1" => format!("ECDH {name} 256 bits"),
            "secp384r1" => format!("ECDH {name} 384 bits"),
            "secp521r1" => format!("ECDH {name} 521 bits"),
            name => String::from(name),
        })
    }
}

/// Reads the options as ab does: `-Z` and `-E` are checked without `https://` too.
pub(super) fn prepare(options: &Options) -> Result<Prepared, Message> {
    let tls = &options.tls;
    let (ciphers, notice) = match &tls.ciphers {
        None => (None, None),
        Some(text) => ciphers(text)?,
    };
    let certified = match &tls.certificate {
        None => None,
        Some(path) => Some(certified(path)?),
    };
    if !options.url.is_secure {
        return Ok(Prepared { plan: None, notice });
    }
    let settings = ClientSettings {
        tls12: tls.protocol != Protocol::Tls13,
        tls13: tls.protocol != Protocol::Tls12,
        ciphers: ciphers.as_deref(),
        groups: Some(&GROUPS),
        trusted: None,
        certified,
        sends_name: !tls.is_nameless,
        resumes: false,
        keeps_many: false,
        early_data: false,
        key_log: None,
    };
    let plan = TlsPlan::of_settings(&options.url.host, settings);
    let plan = plan.map_err(|error| Message::fatal(&format!("ab: {error}")))?;
    Ok(Prepared {
        plan: Some(plan),
        notice,
    })
}

/// Writes the report's lines.
pub(super) fn emit(
    options: &Options,
    secured: Option<&Secured>,
    out: &mut dyn Write,
) -> io::Result<()> {
    if let Some(secured) = secured {
        writeln!(
            out,
            "SSL/TLS Protocol:       {},{},{},{}",
            secured.protocol,
            secured.cipher,
            secured.key_bits,
            secured.cipher_bits()
        )?;
        if let Some(key) = secured.temporary_key() {
            writeln!(out, "Server Temp Key:        {key}")?;
        }
    }
    if let Some(name) = server_name(options) {
        out.write_all(&[b"TLS Server Name:        ", name, b"\n"].concat())?;
    }
    Ok(())
}

/// The name that the server is told: an address is none.
fn server_name(options: &Options) -> Option<&[u8]> {
    let host = options.url.host.as_slice();
    let text = std::str::from_utf8(host).ok()?;
    let is_told = options.url.is_secure && !options.tls.is_nameless;
    (is_told && text.parse::<IpAddr>().is_err()).then_some(host)
}

/// The ciphers of `-Z` with those of TLS 1.3, which `-Z` leaves alone, and a notice of those that are not here.
fn ciphers(text: &[u8]) -> Result<(Option<Vec<&'static str>>, Option<String>), Message> {
    let text = String::from_utf8_lossy(text);
    let selected = select(&text);
    if selected.names.is_empty() {
        let known = known_names();
        return Err(Message::fatal(&format!(
            "error setting ciphersuite list [{text}]\nmillstream: of TLS 1.2 there are {known}"
        )));
    }
    let absent = selected.absent.join(", ");
    let notice =
        format!("millstream: ciphers of -Z that are not there: {absent}; the others are used");
    let (_, of_13) = all_cipher_names();
    let names = selected.names.into_iter().chain(of_13).collect();
    Ok((Some(names), (!absent.is_empty()).then_some(notice)))
}

fn certified(path: &[u8]) -> Result<Certified, Message> {
    let shown = String::from_utf8_lossy(path);
    let fatal = |what: &str, reason: &dyn std::fmt::Display| {
        Message::fatal(&format!("{what} '{shown}'\nmillstream: {reason}"))
    };
    let text = std::fs::read(Path::new(OsStr::from_bytes(path)))
        .map_err(|error| fatal("unable to get certificate from", &error))?;
    certificate::load(&text, &text, []).map_err(|error| match error {
        CertificateError::Mismatch => fatal(
            "private key does not match the certificate public key in",
            &error,
        ),
        CertificateError::Encrypted => {
            let reason = "the key is encrypted, and no password is asked for";
            fatal("unable to get private key from", &reason)
        }
        error if error.is_of_key() => fatal("unable to get private key from", &error),
        error => fatal("unable to get certificate from", &error),
    })
}

/// Of what OpenSSL 3.0 under Debian's ab offers, what is there.
const GROUPS: [&str; 3] = ["X25519", "prime256v1", "secp384r1"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_f_are_read_as_ab_reads_them() {
        let check = |word: &str, expected| {
            assert_eq!(Protocol::parse(word.as_bytes()), expected, "{word}");
        };
        for word in ["ALL", "all", "SSL2", "SSL3", "", "x"] {
            check(word, Ok(Protocol::All));
        }
        check("TLS1.2", Ok(Protocol::Tls12));
        check("tls1.3x", Ok(Protocol::Tls13));
        check("TLS1.1", Err("TLS1.1"));
        check("tls1.9", Err("TLS1"));
    }

    #[test]
    fn the_lines_have_abs_form() {
        let lines = |protocol, cipher, key_bits, group| {
            let secured = Secured {
                protocol,
                cipher,
                key_bits,
                group,
            };
            let mut out = Vec::new();
            emit(&Options::default(), Some(&secured), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let suite = "ECDHE-RSA-AES128-GCM-SHA256";
        assert_eq!(
            lines("TLSv1.2", suite, 2048, Some(0x17)),
            "SSL/TLS Protocol:       TLSv1.2,ECDHE-RSA-AES128-GCM-SHA256,2048,128\n\
             Server Temp Key:        ECDH prime256v1 256 bits\n"
        );
        assert_eq!(
            lines("TLSv1.3", "TLS_CHACHA20_POLY1305_SHA256", 253, None),
            "SSL/TLS Protocol:       TLSv1.3,TLS_CHACHA20_POLY1305_SHA256,253,256\n"
        );
    }
}
