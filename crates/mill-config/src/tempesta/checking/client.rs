//! What concerns clients: sockets, connections, heads, errors, logs.

use super::group::invalid_parameter;
use super::{Checker, first};
use crate::resolve::Applied;
use crate::tempesta::entry::Directive;
use crate::tempesta::lexer::Term;
use crate::tempesta::site::{Body, Given, Limit, Listen, Protocol};
use crate::tempesta::value;

/// Largest number of most options: C's INT_MAX.
const INT_MAX: u64 = i32::MAX as u64;

/// The file of the logger where none is named.
const LOGGER_CONFIG: &str = "/etc/tempesta/tfw_logger.json";

/// The entry of `frang` for `block_action error`.
const ERROR_ACTION: &str = "error_action";

/// A range of bytes in the words of `frang`.
fn byte_range(term: &Term) -> Applied<Vec<u8>> {
    let (first, last) = value::byte_range(term)?;
    Ok(match first == last {
        true => format!("0x{first:02x}"),
        false => format!("0x{first:02x}-0x{last:02x}"),
    }
    .into_bytes())
}

impl Checker {
    pub(super) fn client(&mut self, name: &'static str, directive: Directive) -> Applied {
        let term = first(&directive).clone();
        let given = |value: u64| {
            Some(Given {
                value,
                origin: term.origin.clone(),
            })
        };
        match name {
            "listen" => self.listen(&directive)?,
            "keepalive_timeout" => {
                let seconds = value::number(&term, 0, INT_MAX)?;
                self.site.client.keepalive_timeout = given(seconds);
            }
            "max_concurrent_streams" => {
                self.site.client.streams = given(value::number(&term, 1, 65536)?);
            }
            "client_ws_timeout" => {
                let seconds = value::number(&term, 0, INT_MAX)?;
                self.site.client.tunnel_timeout = given(seconds);
            }
            "http_max_header_list_size" => {
                let bytes = value::number(&term, 0, u64::from(u32::MAX))?;
                self.site.client.head = given(bytes);
            }
            "hdr_via" => self.site.via = Some(term),
            "response_body" => self.response_body(&directive)?,
            "block_action" => self.block_action(&directive)?,
            "access_log" => self.access_log(&directive)?,
            "mmap_log_buffer_size" => {
                value::size(&term, 4096, 4096, 128 << 20)?;
                let why = "it is for \"access_log mmap\"";
                self.notes.without_effect(&directive.name, why);
            }
            "http_allow_empty_body_content_type" => {
                if !value::switch(&directive.values)? {
                    self.entry(name, &directive.name, vec![b"off".into()]);
                }
            }
            "ctrl_frame_rate_multiplier" | "window_update_frame_rate_multiplier" => {
                value::number(&term, 1, 65536)?;
                let why = "such frames have limits of their own, which grow with the content that a connection carries";
                self.notes.without_effect(&directive.name, why);
            }
            "grace_shutdown_time" => {
                value::number(&term, 0, INT_MAX)?;
                let why = "a request goes on with the servers of the configuration it began with";
                self.notes.without_effect(&directive.name, why);
            }
            _ => self.without_meaning(name, &directive)?,
        }
        Ok(())
    }

    /// What belongs to Tempesta FW's databases and to the kernel, and sets of bytes.
    fn without_meaning(&mut self, name: &'static str, directive: &Directive) -> Applied {
        let term = first(directive);
        match name {
            "client_db" | "sessions_db" | "filter_db" => self.path_without_effect(directive),
            "client_tbl_size" | "sessions_tbl_size" | "filter_tbl_size" => {
                value::size(term, 4096, 4096, 1 << 30)?;
                self.notes
                    .without_effect(&directive.name, "tables size themselves");
                Ok(())
            }
            "client_lru_size" => {
                let value = value::number(term, 1, u64::from(u32::MAX))?;
                let origin = term.origin.clone();
                self.site.client.known = Some((Given { value, origin }, directive.name.clone()));
                Ok(())
            }
            "client_mem" => {
                for size in &directive.values {
                    value::size(size, 1024, 1024, 100 << 30)?;
                }
                let why = "the buffers of a connection have limits of their own";
                self.notes.without_effect(&directive.name, why);
                Ok(())
            }
            "whitelist_mark" => {
                let marks = directive.values.iter().map(|mark| {
                    let mark = value::number(mark, 0, u64::from(u32::MAX))?;
                    Ok(mark.to_string().into_bytes())
                });
                let words = marks.collect::<Applied<_>>()?;
                self.entry(name, &directive.name, words);
                Ok(())
            }
            _ => {
                let ranges = directive.values.iter().map(byte_range);
                let words = ranges.collect::<Applied<_>>()?;
                self.entry(name, &directive.name, words);
                Ok(())
            }
        }
    }

    /// One more entry of `frang`.
    fn entry(&mut self, name: &'static str, term: &Term, words: Vec<Vec<u8>>) {
        let origin = term.origin.clone();
        self.site.entries.push(Limit {
            name,
            words,
            origin,
        });
    }

    fn listen(&mut self, directive: &Directive) -> Applied {
        let term = first(directive).clone();
        let address = value::listen(&term)?;
        let mut protocol = Protocol::Http;
        if let Some((key, _)) = directive.parameters.get(1) {
            return Err(invalid_parameter(key));
        }
        for (key, text) in &directive.parameters {
            if !key.is("proto") {
                return Err(invalid_parameter(key));
            }
            protocol = self.protocol(text)?;
        }
        let mut known = self.site.listens.iter();
        if known.any(|known| known.address == address) {
            return Err(term.error(format!("duplicate listen \"{}\"", term.display())));
        }
        self.site.listens.push(Listen {
            term,
            address,
            protocol,
        });
        Ok(())
    }

    /// `http`, `https`, `h2`, or the last two with a comma between them.
    fn protocol(&mut self, text: &Term) -> Applied<Protocol> {
        if text.is("http") {
            return Ok(Protocol::Http);
        }
        let words: Vec<Vec<u8>> = text
            .bytes
            .split(|&byte| byte == b',')
            .map(|word| word.trim_ascii().to_ascii_lowercase())
            .collect();
        let known = |word: &Vec<u8>| word == b"https" || word == b"h2";
        if words.iter().all(known) {
            let has = |name: &[u8]| words.iter().any(|word| word == name);
            if !has(b"h2") {
                return Ok(Protocol::Https);
            }
            if !has(b"https") {
                self.notes.notice(
                    text,
                    "clients without HTTP/2 get HTTP/1.1 at this address",
                    "as with \"proto=h2,https\"; Tempesta FW would refuse them",
                );
            }
            return Ok(Protocol::H2);
        }
        let mut error = text.error(format!("unknown protocol \"{}\"", text.display()));
        error.help = Some(String::from("it is one of http, https, h2, and h2,https"));
        Err(error)
    }

    fn response_body(&mut self, directive: &Directive) -> Applied {
        let [code, path] = directive.values.as_slice() else {
            return Ok(());
        };
        let (first, last) = value::statuses(code)?;
        if !path.bytes.starts_with(b"/") {
            let message = format!("invalid path \"{}\"", path.display());
            let mut error = path.error(message);
            error.help = Some(String::from("it is absolute"));
            return Err(error);
        }
        if last < 300 {
            let why = "answers of ours below 300 have no page";
            self.notes.without_effect(&directive.name, why);
            return Ok(());
        }
        self.site.bodies.push(Body {
            first,
            last,
            path: path.clone(),
        });
        Ok(())
    }

    fn block_action(&mut self, directive: &Directive) -> Applied {
        let invalid = |term: &Term, known: &str| {
            let mut error = term.error(format!("invalid value \"{}\"", term.display()));
            error.help = Some(format!("it is {known}"));
            Err(error)
        };
        let [kind, action, options @ ..] = directive.values.as_slice() else {
            return Ok(());
        };
        if let Some(option) = options.first() {
            if !option.is("nolog") {
                return invalid(option, "nolog");
            }
            self.notes
                .without_effect(option, "what is refused is a line of the access log only");
        }
        let replies = action.is("reply");
        if !replies && !action.is("drop") {
            return invalid(action, "drop or reply");
        }
        if kind.is("attack") {
            self.site.attack_replies = replies;
        } else if !kind.is("error") {
            return invalid(kind, "error or attack");
        } else {
            self.site.entries.retain(|entry| entry.name != ERROR_ACTION);
            if !replies {
                self.entry(ERROR_ACTION, action, vec![b"drop".into()]);
            }
        }
        Ok(())
    }

    fn access_log(&mut self, directive: &Directive) -> Applied {
        let mut path = LOGGER_CONFIG.as_bytes().to_vec();
        for (key, text) in &directive.parameters {
            if !key.is("logger_config") {
                return Err(invalid_parameter(key));
            }
            if !text.bytes.starts_with(b"/") {
                return Err(text.error(format!("invalid path \"{}\"", text.display())));
            }
            path.clone_from(&text.bytes);
        }
        let is_off = directive.values.iter().any(|word| word.is("off"));
        for word in &directive.values {
            if word.is("mmap") {
                self.site.logger = Some((word.clone(), path.clone()));
            } else if word.is("dmesg") {
                self.site.logs_to_kernel = true;
            } else if !word.is("off") {
                let mut error = word.error(format!("invalid value \"{}\"", word.display()));
                error.help = Some(String::from("it is one of off, dmesg, mmap"));
                return Err(error);
            }
            if is_off && !word.is("off") {
                return Err(word.error("\"off\" must stand alone"));
            }
        }
        Ok(())
    }
}
