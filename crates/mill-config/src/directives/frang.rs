//! `frang`: limits against attacks, as Tempesta FW's `frang_limits` has them.

/// What stands in the block.
mod entry;

use std::sync::Arc;

use crate::Text;
use crate::config::frang::{FrangMethods, StatusLimit};
use crate::config::settings::group;
use crate::directive::{ANY_LEVEL, Apply, Arity, Directive, once};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};

group! {
    /// What `frang` says of single requests; limits of clients are [`FrangLimits`](crate::config::frang::FrangLimits).
    FrangSettings {
        /// `http_methods`; `None` lets all in.
        methods: Option<FrangMethods> = None,
        /// `http_uri_len`: bytes of path and query as they are sent; 0 is no limit.
        uri_bytes: u64 = 0,
        /// `http_body_len`: bytes of content; 0 is no limit.
        content_bytes: u64 = 0,
        /// `http_strict_host_checking`.
        strict_host: bool = false,
        /// `http_ct_required`: POST has a Content-Type.
        needs_content_type: bool = false,
        /// `http_ct_vals`: how that of POST may begin, without regard to case; empty lets all in.
        content_types: Vec<Text> = Vec::new(),
        /// `http_method_override_allowed`.
        allows_method_override: bool = true,
        /// `http_allow_empty_body_content_type`: a request without content may have a Content-Type.
        allows_type_without_content: bool = true,
        /// `http_post_validate`: a form of several parts has one boundary.
        validates_post: bool = false,
        /// `http_resp_code_block`.
        statuses: Option<Arc<StatusLimit>> = None,
    }
}

impl FrangSettings {
    /// Whether any of it looks at heads.
    pub fn checks_heads(&self) -> bool {
        self.methods.is_some()
            || self.uri_bytes > 0
            || self.content_bytes > 0
            || self.strict_host
            || self.checks_content_type()
            || !self.allows_method_override
            || !self.allows_type_without_content
            || self.validates_post
    }

    /// Whether POST needs a Content-Type, of any or of certain kinds.
    pub const fn checks_content_type(&self) -> bool {
        self.needs_content_type || !self.content_types.is_empty()
    }
}

pub(crate) const DIRECTIVES: &[Directive] = &[once(
    "frang",
    ANY_LEVEL,
    Arity::Exactly(0),
    "",
    Apply::Block(frang),
    "Limits against attacks: how often a client may connect and ask, and what its requests may look like.",
)];

fn frang(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    resolver.http.get_or_insert_default().frang.is_on = true;
    resolver.entries(statement, entry::apply)
}
