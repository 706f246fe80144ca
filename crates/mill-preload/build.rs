//! The library's own calls of functions that it exports stay within it. A program may export functions of the same names, as Erlang does with
//! sigaction(2): these would be called in their place, and call the library's in turn, without end.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
}
