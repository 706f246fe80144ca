//! TLS 1.2 and 1.3 over any engine's `Stream`: handshakes by rustls, records sealed and opened by our own code over aws-lc-rs,
//! in the bytes that the engine lends.

#![forbid(unsafe_code)]
