//! The server's name and version: in `Server`, at the foot of its built-in pages, in `$nginx_version`.

use mill_config::config::settings::ServerTokens;

/// The name without a version: `server_tokens off`.
pub const NAME: &str = "millstream";

/// The version, from Cargo.toml.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Name and version: `server_tokens on`.
pub const SIGNATURE: &str = concat!("millstream/", env!("CARGO_PKG_VERSION"));

/// Name, version and build: `server_tokens build`. The build is Cargo's profile.
pub const SIGNATURE_AND_BUILD: &str = if cfg!(debug_assertions) {
    concat!("millstream/", env!("CARGO_PKG_VERSION"), " (debug)")
} else {
    concat!("millstream/", env!("CARGO_PKG_VERSION"), " (release)")
};

/// The value of `Server`, and the last line of a built-in page.
pub const fn signature(tokens: ServerTokens) -> &'static str {
    match tokens {
        ServerTokens::Off => NAME,
        ServerTokens::On => SIGNATURE,
        ServerTokens::Build => SIGNATURE_AND_BUILD,
    }
}
