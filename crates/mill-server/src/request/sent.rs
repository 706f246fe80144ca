//! What has been sent of an answer, for logs and variables.

use crate::content::Compressed;
use crate::response::{FieldLine, FieldText, Response};
use mill_http::date::imf_fixdate;

/// What has been sent.
#[derive(Debug, Default)]
pub struct Sent {
    /// 0 until the answer's head is made. If a connection closes without an answer, the logged status: 444, 408, 400.
    pub status: u16,
    /// Head and content.
    pub bytes: u64,
    pub content_bytes: u64,
    /// The answer's field lines, for `$sent_http_…`; empty for a hot answer.
    pub fields: Vec<FieldLine>,
    /// The sizes before and after compression, if the content was compressed.
    pub compressed: Option<Compressed>,
    /// The answer was sent whole (`$request_completion`).
    pub complete: bool,
}

impl Sent {
    /// Makes `$sent_http_…` available before the answer is sent, for the filters' own settings.
    pub(crate) fn announce<File>(&mut self, response: &Response<File>) {
        self.status = response.status.0;
        self.fields.clear();
        let mut add = |name: &'static str, value: Option<FieldText>| {
            let name = name.into();
            self.fields
                .extend(value.map(|value| FieldLine { name, value }));
        };
        add("Content-Type", response.full_content_type());
        let len = response
            .content
            .len()
            .filter(|_| !response.status.has_no_content());
        add(
            "Content-Length",
            len.map(|len| FieldText::copy(len.to_string().as_bytes())),
        );
        let modified = response.last_modified.map(imf_fixdate);
        add("Last-Modified", modified.map(FieldText::from));
        add("ETag", response.etag.clone());
        add("Location", response.location.clone().map(FieldText::from));
        self.fields.extend_from_slice(&response.fields);
    }
}
