//! Names in certificates as text, in the two forms of OpenSSL that nginx shows.

use std::fmt::Write;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::asn1::{BmpString, Ia5StringRef, PrintableStringRef, TeletexStringRef};
use x509_cert::der::{Decode, Encode, Tag, Tagged};
use x509_cert::name::RdnSequence;

/// The last part first, with commas between: `CN=a,O=b` (RFC 2253; bytes beyond ASCII as `\C3\A4`).
pub fn rfc2253(name: &RdnSequence) -> String {
    let mut out = String::new();
    for (place, part) in name.0.iter().rev().enumerate() {
        if place > 0 {
            out.push(',');
        }
        // Within a part of several attributes OpenSSL turns the order too.
        let attributes: Vec<_> = part.0.iter().collect();
        for (place, attribute) in attributes.into_iter().rev().enumerate() {
            if place > 0 {
                out.push('+');
            }
            emit_attribute(attribute, &mut out);
        }
    }
    out
}

/// The first part first, with slashes before each: `/O=b/CN=a`, as old programs expect it.
pub fn oneline(name: &RdnSequence) -> String {
    let mut out = String::new();
    let places = name.0.iter().flat_map(|part| part.0.iter().enumerate());
    for (place, attribute) in places {
        out.push(if place == 0 { '/' } else { '+' });
        let _ = write!(out, "{}=", label(attribute));
        let value = text(attribute).unwrap_or_default();
        for byte in value.bytes() {
            match byte {
                b' '..=b'~' => out.push(char::from(byte)),
                _ => {
                    let _ = write!(out, "\\x{byte:02X}");
                }
            }
        }
    }
    out
}

fn emit_attribute(attribute: &AttributeTypeAndValue, out: &mut String) {
    let known = short_name(&attribute.oid.to_string());
    let _ = write!(out, "{}=", label(attribute));
    match text(attribute) {
        Some(value) if known.is_some() => emit_escaped(&value, out),
        _ => {
            out.push('#');
            for byte in attribute.value.to_der().unwrap_or_default() {
                let _ = write!(out, "{byte:02X}");
            }
        }
    }
}

fn emit_escaped(value: &str, out: &mut String) {
    let last = value.len().saturating_sub(1);
    for (place, byte) in value.bytes().enumerate() {
        match byte {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b'#' if place == 0 => out.push_str("\\#"),
            b' ' if place == 0 || place == last => out.push_str("\\ "),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\{byte:02X}");
            }
        }
    }
}

fn label(attribute: &AttributeTypeAndValue) -> String {
    let oid = attribute.oid.to_string();
    short_name(&oid).map_or(oid, str::to_owned)
}

/// A value that is a string; `None` for other types.
fn text(attribute: &AttributeTypeAndValue) -> Option<String> {
    let der = attribute.value.to_der().ok()?;
    let text = match attribute.value.tag() {
        Tag::Utf8String => String::from_der(&der).ok()?,
        Tag::PrintableString => PrintableStringRef::from_der(&der).ok()?.to_string(),
        Tag::Ia5String => Ia5StringRef::from_der(&der).ok()?.to_string(),
        Tag::TeletexString => TeletexStringRef::from_der(&der).ok()?.to_string(),
        Tag::BmpString => BmpString::from_der(&der).ok()?.to_string(),
        _ => return None,
    };
    Some(text)
}

/// The short name that OpenSSL has for a kind of attribute.
fn short_name(oid: &str) -> Option<&'static str> {
    Some(match oid {
        "2.5.4.3" => "CN",
        "2.5.4.4" => "SN",
        "2.5.4.5" => "serialNumber",
        "2.5.4.6" => "C",
        "2.5.4.7" => "L",
        "2.5.4.8" => "ST",
        "2.5.4.9" => "street",
        "2.5.4.10" => "O",
        "2.5.4.11" => "OU",
        "2.5.4.12" => "title",
        "2.5.4.13" => "description",
        "2.5.4.15" => "businessCategory",
        "2.5.4.17" => "postalCode",
        "2.5.4.41" => "name",
        "2.5.4.42" => "GN",
        "2.5.4.43" => "initials",
        "2.5.4.44" => "generationQualifier",
        "2.5.4.46" => "dnQualifier",
        "2.5.4.65" => "pseudonym",
        "2.5.4.97" => "organizationIdentifier",
        "0.9.2342.19200300.100.1.1" => "UID",
        "0.9.2342.19200300.100.1.25" => "DC",
        "1.2.840.113549.1.9.1" => "emailAddress",
        "1.2.840.113549.1.9.2" => "unstructuredName",
        "1.3.6.1.4.1.311.60.2.1.1" => "jurisdictionL",
        "1.3.6.1.4.1.311.60.2.1.2" => "jurisdictionST",
        "1.3.6.1.4.1.311.60.2.1.3" => "jurisdictionC",
        _ => return None,
    })
}
