//! Go's net/http, with a program of its standard library alone.

use crate::namespace::{has, text_of};
use crate::stage::{Stage, on_every_network};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

on_every_network!(converse);

fn converse(stage: &Stage<'_>) {
    let Some(program) = program() else {
        println!("not tested: there is no Go");
        return;
    };
    let address = stage.address(443).to_string();
    let authority = stage.site.path("ca.pem").display().to_string();
    let large = stage.site.path("large.bin").display().to_string();
    let words = [&address[..], &authority, &large];
    let said = stage.at_client(|| text_of(program.to_str().unwrap(), &words));
    assert_eq!(said, "all is well\n");
    stage.assert_carried();
}

/// The client, compiled; `None` if that cannot be done here.
fn program() -> Option<&'static PathBuf> {
    static COMPILED: OnceLock<Option<PathBuf>> = OnceLock::new();
    let compiled = COMPILED.get_or_init(|| {
        if !has("go") {
            return None;
        }
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let program = folder.join("go-client");
        let output = Command::new("go")
            .args(["build", "-o"])
            .arg(&program)
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/clients/go/client.go"
            ))
            .env("GOCACHE", folder.join("go-cache"))
            .envs([
                ("GO111MODULE", "off"),
                ("GOTOOLCHAIN", "local"),
                ("CGO_ENABLED", "0"),
            ])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{complaint}");
        Some(program)
    });
    compiled.as_ref()
}
