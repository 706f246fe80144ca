//! The `http` block.

use std::sync::Arc;

use super::{Listener, LogFormat, Map, Server};
use crate::Text;

/// Everything that serves HTTP.
#[derive(Debug)]
pub struct Http {
    /// Sockets to open, in the order in which their addresses first occur.
    pub listeners: Vec<Listener>,
    /// All servers, by [`Server::index`].
    pub servers: Vec<Arc<Server>>,
    /// `log_format`s; `combined` is the first.
    pub log_formats: Vec<LogFormat>,
    /// `map`s.
    pub maps: Vec<Map>,
    /// Variables that the configuration defines, by the index in [`super::Variable::User`].
    pub user_variables: Vec<UserVariable>,
}

/// A variable defined by `set`, `map` or a named capture. It lives as long as its request, and is empty until it is
/// set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserVariable {
    /// Its name, lower-cased, without `$`.
    pub name: Text,
    /// Index into [`Http::maps`] if a `map` defines it: the value unless another one was assigned.
    pub map: Option<usize>,
}
