//! `$fastcgi_script_name` and `$fastcgi_path_info`.

use crate::request::Request;
use mill_config::config::Captures;
use std::borrow::Cow;

/// The path, or its first part that `fastcgi_split_path_info` tells; with `fastcgi_index` behind a slash.
pub(super) fn script_name(request: &Request) -> Cow<'_, [u8]> {
    let (name, _) = split(request);
    match name.last() {
        Some(b'/') => [name, &request.location.fastcgi_params.index]
            .concat()
            .into(),
        _ => name.into(),
    }
}

/// The other part; empty if the path is not split.
pub(super) fn path_info(request: &Request) -> &[u8] {
    split(request).1
}

fn split(request: &Request) -> (&[u8], &[u8]) {
    let uri = request.uri.as_slice();
    let Some(pattern) = &request.location.fastcgi_params.split_path_info else {
        return (uri, &[]);
    };
    let mut captures = Captures::default();
    if !pattern.captures(uri, &mut captures) {
        return (uri, &[]);
    }
    let of = |number: usize| uri.get(captures.get(number)?.clone()?);
    (of(1).unwrap_or_default(), of(2).unwrap_or_default())
}
