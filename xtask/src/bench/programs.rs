//! The programs that are measured: those of the system by name, those of this workspace built.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::failure::{Failure, Result};

/// /usr/sbin is where Debian puts nginx, and not in the PATH of most users.
pub(super) fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    folders
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Builds an optimised binary of this workspace.
pub(super) fn build(root: &Path, package: &str) -> Result<PathBuf> {
    eprintln!("building {package}");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--package",
            package,
        ])
        .current_dir(root)
        .status()
        .map_err(Failure::during("cargo"))?;
    if !status.success() {
        return Err(Failure(format!("{package} does not build")));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), |target| root.join(target));
    Ok(target.join("release").join(package))
}
