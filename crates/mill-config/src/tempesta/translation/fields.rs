//! Fields of requests and answers.
//!
//! Lists of fields are not joined with those outside in nginx's language: a location that changes one names them all.

use super::Translator;
use crate::tempesta::lexer::Term;
use crate::tempesta::policies::Policies;
use crate::tempesta::site::FieldChange;
use crate::tempesta::writing::{Phrase, literal};

/// Fields of all requests to servers: the client's own Host, its address, and upgrades to WebSocket alone.
const BASE: [(&str, &str); 4] = [
    ("Host", "$http_host"),
    ("X-Forwarded-For", "$proxy_add_x_forwarded_for"),
    ("Upgrade", "$tempesta_upgrade"),
    ("Connection", "$tempesta_connection"),
];

/// The type of a form without what is not its boundary.
const CUT_TYPE: &str = "$tempesta_content_type";

/// A form whose boundary `frang` has found to be the only one.
const FORM: &str = "~*^POST:multipart/form-data[ \\t]*;(.*[; \\t])?boundary=(?<tempesta_boundary>\"[^\"]+\"|[^; \\t]+)";

/// Values of fields that are added to what a request has: each is a variable.
#[derive(Default)]
pub(super) struct Fields {
    /// Name of the field, value, and the directive's place.
    added: Vec<(Vec<u8>, Vec<u8>, Term)>,
    /// Some forms go on with their boundary as the only parameter.
    cuts_types: bool,
}

impl Fields {
    /// The variable of a field with one more value.
    fn add(&mut self, name: &Term, value: &Term) -> String {
        let lower = name.bytes.to_ascii_lowercase();
        let same = |known: &(Vec<u8>, Vec<u8>, Term)| known.0 == lower && known.1 == value.bytes;
        let index = match self.added.iter().position(same) {
            Some(index) => index,
            None => {
                self.added.push((lower, value.bytes.clone(), value.clone()));
                self.added.len() - 1
            }
        };
        format!("$tempesta_field_{}", index + 1)
    }
}

impl Translator<'_> {
    /// Variables and fields of all servers.
    pub(super) fn base_fields(&mut self) {
        let origin = &self.site.origin;
        let writer = &mut self.writer;
        for (variable, value) in [
            ("$tempesta_upgrade", "websocket"),
            ("$tempesta_connection", "upgrade"),
        ] {
            writer.open(Phrase::new(origin, "map $http_upgrade").word(variable));
            writer.end(Phrase::new(origin, "websocket").word(value));
            writer.end(Phrase::new(origin, "default").word(""));
            writer.close();
        }
        self.via_variables();
        self.added_variables();
        self.type_variable();
        for phrase in self.request_fields(&[], false) {
            self.writer.end(phrase);
        }
        if let Some(phrase) = self.via_answer() {
            self.writer.end(phrase);
        }
    }

    /// `hdr_via`: our name after those that the request has come through (RFC 9110 7.6.3).
    fn via_variables(&mut self) {
        let Some(via) = &self.site.via else {
            return;
        };
        let origin = &via.origin;
        let name = String::from_utf8_lossy(&literal(&via.bytes)).into_owned();
        let writer = &mut self.writer;
        writer.open(Phrase::new(
            origin,
            "map $server_protocol $tempesta_received",
        ));
        writer.say(origin, "HTTP/1.0 1.0");
        writer.say(origin, "HTTP/2.0 2.0");
        writer.say(origin, "default 1.1");
        writer.close();
        let ours = format!("$tempesta_received {name}");
        writer.open(Phrase::new(origin, "map $http_via $tempesta_via"));
        writer.end(Phrase::new(origin, "").word("").word(ours.as_str()));
        writer.end(Phrase::new(origin, "default").word(format!("$http_via, {ours}")));
        writer.close();
    }

    /// Variables of fields with one more value.
    fn added_variables(&mut self) {
        for (index, (name, value, term)) in self.fields.added.iter().enumerate() {
            let source: Vec<u8> = name
                .iter()
                .map(|&byte| if byte == b'-' { b'_' } else { byte })
                .collect();
            let source = [&b"$http_"[..], &source].concat();
            let head = Phrase::new(&term.origin, "map").word(source.clone());
            let variable = format!("$tempesta_field_{}", index + 1);
            self.writer.open(head.word(variable));
            let value = literal(value);
            let alone = Phrase::new(&term.origin, "")
                .word("")
                .at(value.clone(), term);
            self.writer.end(alone);
            let joined = [&source[..], b", ", &value].concat();
            let default = Phrase::new(&term.origin, "default");
            self.writer.end(default.at(joined, term));
            self.writer.close();
        }
    }

    /// `http_post_validate`: the type of a form without other parameters than its boundary.
    fn type_variable(&mut self) {
        if !self.fields.cuts_types {
            return;
        }
        let origin = &self.site.origin;
        let source = "$request_method:$content_type";
        let head = Phrase::new(origin, "map").word(source);
        self.writer.open(head.word(CUT_TYPE));
        let row = Phrase::new(origin, "").word(FORM);
        let cut = "multipart/form-data; boundary=$tempesta_boundary";
        self.writer.end(row.word(cut));
        self.writer.say(origin, "default $content_type");
        self.writer.close();
    }

    /// `proxy_set_header`s: the base with changes.
    fn request_fields(&mut self, changes: &[FieldChange], cuts_type: bool) -> Vec<Phrase> {
        let site = self.site;
        let named = |name: &str| changes.iter().any(|change| change.name.is(name));
        let mut phrases = Vec::new();
        if cuts_type && !named("Content-Type") {
            let phrase = Phrase::new(&site.origin, "proxy_set_header Content-Type");
            phrases.push(phrase.word(CUT_TYPE));
        }
        for (name, value) in BASE {
            if !named(name) {
                let phrase = Phrase::new(&site.origin, "proxy_set_header");
                phrases.push(phrase.word(name).word(value));
            }
        }
        if let Some(via) = site.via.as_ref().filter(|_| !named("Via")) {
            phrases.push(Phrase::new(
                &via.origin,
                "proxy_set_header Via $tempesta_via",
            ));
        }
        for change in changes {
            let value = match &change.value {
                Some(value) if change.appends => self.fields.add(&change.name, value).into_bytes(),
                Some(value) => literal(&value.bytes),
                // An empty field is not sent.
                None => Vec::new(),
            };
            let phrase = Phrase::new(&change.name.origin, "proxy_set_header");
            let phrase = phrase.at(change.name.bytes.clone(), &change.name);
            phrases.push(match &change.value {
                Some(term) => phrase.at(value, term),
                None => phrase.word(value),
            });
        }
        phrases
    }

    fn via_answer(&self) -> Option<Phrase> {
        let via = self.site.via.as_ref()?;
        let value = [&b"1.1 "[..], &literal(&via.bytes)].concat();
        let phrase = Phrase::new(&via.origin, "add_header Via");
        Some(phrase.at(value, via).word("always"))
    }

    /// The fields of a location, if it changes any.
    pub(super) fn changed_fields(&mut self, policies: &Policies<'_>) {
        let request = policies.list(|policy| &policy.request);
        let mut limits = policies.limits().into_iter();
        let cuts_type = limits.any(|limit| limit.name == "http_post_validate");
        self.fields.cuts_types |= cuts_type;
        if cuts_type || !request.is_empty() {
            for phrase in self.request_fields(request, cuts_type) {
                self.writer.end(phrase);
            }
        }
        let answer = policies.list(|policy| &policy.response);
        for change in answer.iter().filter(|change| !change.appends) {
            let phrase = Phrase::new(&change.name.origin, "proxy_hide_header");
            let phrase = phrase.at(change.name.bytes.clone(), &change.name);
            self.writer.end(phrase);
        }
        let mut added = Vec::new();
        for change in answer {
            if let Some(value) = &change.value {
                let phrase = Phrase::new(&change.name.origin, "add_header");
                let phrase = phrase.at(change.name.bytes.clone(), &change.name);
                added.push(phrase.at(literal(&value.bytes), value).word("always"));
            }
        }
        if !added.is_empty() {
            added.extend(self.via_answer());
        }
        for phrase in added {
            self.writer.end(phrase);
        }
    }
}
