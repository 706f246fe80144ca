//! What an authority offers (RFC 8555 7.1.1).

use serde::Deserialize;
use std::collections::BTreeMap;

/// Where what is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Directory {
    pub(crate) new_nonce: String,
    pub(crate) new_account: String,
    pub(crate) new_order: String,
    #[serde(default)]
    pub(crate) meta: Meta,
}

/// What the authority says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Meta {
    pub(crate) terms_of_service: Option<String>,
    pub(crate) external_account_required: bool,
    /// Names of profiles, and what they are.
    pub(crate) profiles: BTreeMap<String, String>,
}
