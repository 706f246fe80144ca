//! `frang_limits`, `tft` and `tfh`: limits of clients and of kinds of clients.

use super::{Checker, directive_of, first};
use crate::config::frang::KNOWN_METHODS;
use crate::resolve::Applied;
use crate::tempesta::entry::Directive;
use crate::tempesta::site::{Given, Limit, Limits};
use crate::tempesta::specification::{self, Place};
use crate::tempesta::value;

/// Largest number of most limits: C's INT_MAX.
const INT_MAX: u64 = i32::MAX as u64;

/// Memory for fingerprints comes in this unit (fw/tf_conf.c).
const FINGERPRINTS_UNIT_BYTES: u64 = 2 << 20;

impl Checker {
    /// The block outside of vhosts.
    pub(super) fn limits(&mut self, directive: Directive) -> Applied {
        self.site.has_limits = true;
        let mut used = Vec::new();
        for entry in directive.children.unwrap_or_default() {
            let inner = directive_of(entry)?;
            let name = specification::check(&inner, Place::Limits, &mut used)?;
            let term = first(&inner);
            let given = |value: u64| {
                Some(Given {
                    value,
                    origin: term.origin.clone(),
                })
            };
            match name {
                "client_header_timeout" => {
                    self.site.client.head_timeout = given(value::number(term, 0, INT_MAX)?);
                }
                "client_body_timeout" => {
                    self.site.client.content_timeout = given(value::number(term, 0, INT_MAX)?);
                }
                _ => self.site.limits.set(limit(name, &inner)?),
            }
        }
        Ok(())
    }

    /// The block in a vhost or location.
    pub(super) fn inner_limits(&mut self, directive: Directive, limits: &mut Limits) -> Applied {
        self.site.has_limits = true;
        let mut used = Vec::new();
        for entry in directive.children.unwrap_or_default() {
            let inner = directive_of(entry)?;
            let name = specification::check(&inner, Place::InnerLimits, &mut used)?;
            limits.set(limit(name, &inner)?);
        }
        Ok(())
    }

    /// A client that is blocked gets no answer, as Tempesta FW says at its start.
    pub(super) fn finish_limits(&self) -> Applied {
        let mut limits = self.site.limits.0.iter();
        let block = limits.find(|limit| limit.name == "ip_block" && limit.words != [b"off"]);
        match block {
            Some(block) if self.site.attack_replies => {
                let message = "\"ip_block\" and \"block_action attack reply\" exclude each other";
                let mut error = block.origin.error(message);
                error.help = Some(String::from("a client that is blocked gets no answer"));
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// `tft` and `tfh`: fingerprints of TLS and of HTTP with their rates.
    pub(super) fn fingerprints(&mut self, name: &'static str, directive: Directive) -> Applied {
        for (key, text) in &directive.parameters {
            if !key.is("storage_size") {
                return Err(super::group::invalid_parameter(key));
            }
            value::size(
                text,
                FINGERPRINTS_UNIT_BYTES,
                FINGERPRINTS_UNIT_BYTES,
                1 << 40,
            )?;
        }
        let (entry, variable) = match name {
            "tft" => ("tls_fingerprint", "$tls_fingerprint"),
            _ => ("http_fingerprint", "$request_fingerprint"),
        };
        let mut hashes: Vec<u64> = Vec::new();
        for child in directive.children.unwrap_or_default() {
            let inner = directive_of(child)?;
            specification::check(&inner, Place::Fingerprints, &mut Vec::new())?;
            let term = first(&inner);
            let text = String::from_utf8_lossy(&term.bytes);
            let Ok(hash) = u64::from_str_radix(&text, 16) else {
                return Err(term.error(format!("invalid fingerprint \"{text}\"")));
            };
            if hashes.contains(&hash) {
                return Err(term.error(format!("duplicate fingerprint \"{text}\"")));
            }
            hashes.push(hash);
            let mut words = vec![format!("{hash:016x}").into_bytes()];
            for rate in inner.values.iter().skip(1) {
                let rate = value::number(rate, 0, u64::from(u16::MAX))?;
                words.push(rate.to_string().into_bytes());
            }
            self.site.entries.push(Limit {
                name: entry,
                words,
                origin: term.origin.clone(),
            });
        }
        self.notes.warn(
            &directive.name,
            format!("fingerprints of \"{name}\" are those of {variable}, not Tempesta FW's"),
            "take them from that variable in a log; docs/frang.md says how they are made",
        );
        Ok(())
    }
}

/// An entry of `frang_limits`, checked, in the words of `frang`.
pub(super) fn limit(name: &'static str, directive: &Directive) -> Applied<Limit> {
    let term = first(directive);
    let word = |text: String| vec![text.into_bytes()];
    let words = match name {
        "http_strict_host_checking"
        | "http_ct_required"
        | "http_trailer_split_allowed"
        | "http_method_override_allowed" => {
            let is_on = value::switch(&directive.values)?;
            word(String::from(if is_on { "on" } else { "off" }))
        }
        "http_methods" => methods(directive)?,
        "http_ct_vals" => {
            let values = directive.values.iter().map(|term| term.bytes.clone());
            values.collect()
        }
        "http_resp_code_block" => code_block(directive)?,
        "ip_block" if term.is("off") || term.is("on") => word(term.display().to_ascii_lowercase()),
        "request_rate" | "tcp_connection_rate" => {
            let mut words = word(value::number(term, 0, u64::from(u32::MAX))?.to_string());
            for frame in directive.values.iter().skip(1) {
                let frame = value::number(frame, 1, u64::from(u16::MAX))?;
                words.push(frame.to_string().into_bytes());
            }
            words
        }
        "http_body_len" => word(value::number(term, 0, i64::MAX as u64)?.to_string()),
        _ => word(value::number(term, 0, INT_MAX)?.to_string()),
    };
    Ok(Limit {
        name,
        words,
        origin: term.origin.clone(),
    })
}

/// Methods that are let in.
fn methods(directive: &Directive) -> Applied<Vec<Vec<u8>>> {
    let is_known = |name: &[u8]| {
        let mut known = KNOWN_METHODS.iter();
        name.eq_ignore_ascii_case(b"unknown")
            || known.any(|known| known.as_bytes().eq_ignore_ascii_case(name))
    };
    let words = directive
        .values
        .iter()
        .map(|term| match is_known(&term.bytes) {
            true => Ok(term.bytes.to_ascii_lowercase()),
            false => Err(term.error(format!("unknown method \"{}\"", term.display()))),
        });
    words.collect()
}

/// Statuses, then how many answers with one of them, and in how many seconds.
fn code_block(directive: &Directive) -> Applied<Vec<Vec<u8>>> {
    let count = directive.values.len();
    let words = directive.values.iter().enumerate();
    let words = words.map(|(index, term)| {
        if index + 2 >= count {
            let number = value::number(term, 1, u64::from(u16::MAX))?;
            return Ok(number.to_string().into_bytes());
        }
        value::statuses(term)?;
        Ok(term.bytes.clone())
    });
    words.collect()
}
