//! Why a call of the API is refused, in the words of NGINX Plus.

use mill_http::status::Status;
use serde_json::{Value, json};
use std::borrow::Cow;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiError {
    pub(super) status: Status,
    pub(super) code: &'static str,
    pub(super) text: Cow<'static, str>,
}

/// The page that explains the codes.
const REFERENCE: &str = "https://nginx.org/en/docs/http/ngx_http_api_module.html";

const FORMAT: &str = "UpstreamConfFormatError";

impl ApiError {
    pub(super) const PATH_NOT_FOUND: Self =
        Self::of(Status::NOT_FOUND, "PathNotFound", "path not found");
    pub(super) const UNKNOWN_VERSION: Self =
        Self::of(Status::NOT_FOUND, "UnknownVersion", "unknown version");
    pub(super) const METHOD_DISABLED: Self = Self::of(
        Status::METHOD_NOT_ALLOWED,
        "MethodDisabled",
        "method disabled",
    );
    pub(super) const METHOD_NOT_SUPPORTED: Self = Self::of(
        Status::METHOD_NOT_ALLOWED,
        "MethodNotSupported",
        "method not supported",
    );
    pub(super) const UPSTREAM_NOT_FOUND: Self =
        Self::of(Status::NOT_FOUND, "UpstreamNotFound", "upstream not found");
    pub(super) const BAD_SERVER_ID: Self = Self::of(
        Status::BAD_REQUEST,
        "UpstreamBadServerId",
        "invalid server ID",
    );
    pub(super) const RESOLVER_NOT_FOUND: Self = Self::of(
        Status::NOT_FOUND,
        "ResolverZoneNotFound",
        "resolver zone not found",
    );
    pub(super) const SERVER_ZONE_NOT_FOUND: Self = Self::of(
        Status::NOT_FOUND,
        "ServerZoneNotFound",
        "server zone not found",
    );
    pub(super) const LOCATION_ZONE_NOT_FOUND: Self = Self::of(
        Status::NOT_FOUND,
        "LocationZoneNotFound",
        "location zone not found",
    );
    pub(super) const SLAB_NOT_FOUND: Self =
        Self::of(Status::NOT_FOUND, "SlabNotFound", "slab not found");
    pub(super) const CACHE_NOT_FOUND: Self =
        Self::of(Status::NOT_FOUND, "CacheNotFound", "cache not found");
    pub(super) const BLOCK_NOT_FOUND: Self = Self::of(
        Status::NOT_FOUND,
        "FrangBlockNotFound",
        "address is not blocked",
    );
    pub(super) const KEYVAL_NOT_FOUND: Self =
        Self::of(Status::NOT_FOUND, "KeyvalNotFound", "keyval not found");
    pub(super) const LIMIT_CONN_NOT_FOUND: Self = Self::of(
        Status::NOT_FOUND,
        "LimitConnNotFound",
        "limit_conn not found",
    );
    pub(super) const LIMIT_REQ_NOT_FOUND: Self =
        Self::of(Status::NOT_FOUND, "LimitReqNotFound", "limit_req not found");
    pub(super) const WORKER_NOT_FOUND: Self =
        Self::of(Status::NOT_FOUND, "WorkerNotFound", "worker not found");

    const fn of(status: Status, code: &'static str, text: &'static str) -> Self {
        let text = Cow::Borrowed(text);
        Self { status, code, text }
    }

    pub(super) const JSON: Self = Self::of(Status(415), "JsonError", "JSON error");
    pub(super) const NESTED: Self = Self::of(Status::BAD_REQUEST, FORMAT, "nested object or list");
    pub(super) const NO_SERVER: Self =
        Self::of(Status::BAD_REQUEST, FORMAT, "missing \"server\" argument");
    pub(super) const ENTRY_EXISTS: Self = Self::of(Status(409), "EntryExists", "entry exists");
    pub(super) const BAD_ROUTE: Self =
        Self::of(Status::BAD_REQUEST, "UpstreamBadRoute", "route is too long");

    /// A refused setting: the code, and what it is.
    pub(super) fn bad(code: &'static str, text: String) -> Self {
        Self {
            status: Status::BAD_REQUEST,
            code,
            text: text.into(),
        }
    }

    /// A server of a name that is resolved while running.
    pub(super) fn immutable(text: String) -> Self {
        Self::bad("UpstreamServerImmutable", text)
    }

    /// A document of the wrong form.
    pub(super) fn format(text: String) -> Self {
        Self::bad(FORMAT, text)
    }

    pub(super) fn server_not_found(id: u32) -> Self {
        Self {
            status: Status::NOT_FOUND,
            code: "UpstreamServerNotFound",
            text: format!("server with ID \"{id}\" does not exist").into(),
        }
    }

    /// The content of the answer.
    pub(super) fn document(&self, request_id: Option<String>) -> Value {
        json!({
            "error": { "status": self.status.0, "text": self.text, "code": self.code },
            "request_id": request_id,
            "href": REFERENCE,
        })
    }
}
