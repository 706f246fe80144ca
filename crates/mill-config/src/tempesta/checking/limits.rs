//! `frang_limits`, `tft` and `tfh`: limits per client. All of it is checked; the little that nginx's language says too is
//! kept, and the rest is not there yet.

use super::{Checker, directive_of, first};
use crate::resolve::Applied;
use crate::tempesta::entry::Directive;
use crate::tempesta::site::Given;
use crate::tempesta::specification::{self, Place};
use crate::tempesta::value;

/// Largest number of most limits: C's INT_MAX.
const INT_MAX: u64 = i32::MAX as u64;

/// Memory for fingerprints comes in this unit (fw/tf_conf.c).
const FINGERPRINTS_UNIT_BYTES: u64 = 2 << 20;

impl Checker {
    /// The block outside of vhosts.
    pub(super) fn limits(&mut self, directive: Directive) -> Applied {
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
                "http_body_len" => {
                    self.site.client.content = given(value::number(term, 0, i64::MAX as u64)?);
                }
                "http_header_cnt" => {
                    self.site.client.fields = given(value::number(term, 0, INT_MAX)?);
                }
                _ => self.limit(name, &inner)?,
            }
        }
        Ok(())
    }

    /// The block in a vhost or location: its own longest content.
    pub(super) fn inner_limits(&mut self, directive: Directive) -> Applied<Option<Given>> {
        let mut content = None;
        let mut used = Vec::new();
        for entry in directive.children.unwrap_or_default() {
            let inner = directive_of(entry)?;
            let name = specification::check(&inner, Place::InnerLimits, &mut used)?;
            if name == "http_body_len" {
                let term = first(&inner);
                content = Some(Given {
                    value: value::number(term, 0, i64::MAX as u64)?,
                    origin: term.origin.clone(),
                });
            } else {
                self.limit(name, &inner)?;
            }
        }
        Ok(content)
    }

    /// A limit that is not there yet, unless it is written that there is none.
    fn limit(&mut self, name: &'static str, directive: &Directive) -> Applied {
        let term = first(directive);
        let is_limit = match name {
            "http_strict_host_checking" | "http_ct_required" => value::switch(&directive.values)?,
            "http_trailer_split_allowed" | "http_method_override_allowed" => {
                !value::switch(&directive.values)?
            }
            "http_methods" | "http_ct_vals" => true,
            "http_resp_code_block" => {
                code_block(directive)?;
                true
            }
            "ip_block" if term.is("off") || term.is("on") => term.is("on"),
            "request_rate" | "tcp_connection_rate" => {
                for frame in directive.values.iter().skip(1) {
                    value::number(frame, 1, u64::from(u16::MAX))?;
                }
                value::number(term, 0, u64::from(u32::MAX))? > 0
            }
            _ => value::number(term, 0, INT_MAX)? > 0,
        };
        if is_limit {
            let label = format!("frang_limits {name}");
            self.notes.not_yet(&directive.name, label, "limits");
        }
        Ok(())
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
        let mut hashes: Vec<u64> = Vec::new();
        for entry in directive.children.unwrap_or_default() {
            let inner = directive_of(entry)?;
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
            for rate in inner.values.iter().skip(1) {
                value::number(rate, 0, u64::from(u16::MAX))?;
            }
        }
        self.notes.not_yet(&directive.name, name, "limits");
        Ok(())
    }
}

/// Statuses, then how many answers with one of them, and in how many seconds.
pub(super) fn code_block(directive: &Directive) -> Applied {
    let count = directive.values.len();
    for (index, term) in directive.values.iter().enumerate() {
        if index + 2 >= count {
            value::number(term, 1, u64::from(u16::MAX))?;
        } else {
            value::statuses(term)?;
        }
    }
    Ok(())
}
