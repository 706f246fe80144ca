//! Configurations as a whole: what they resolve into, and what is refused.

mod acme;
mod challenge;
mod diagnostics;
mod frang;
mod lookup;
mod network_stack;
mod probing;
mod proxy;
mod robustness;
mod seeds;
mod semicolon;
mod settings;
mod sharing;
mod stream;
mod tempesta;
mod unsupported;
mod upstream;
