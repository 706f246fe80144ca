//! Modules of the kernel, each behind those that it depends on.
//!
//! Packages bring no `modules.dep`, which is made where they are installed; each module names what it depends on itself,
//! in its section `.modinfo` (modinfo(8)).

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A module, decompressed.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) content: Vec<u8>,
}

/// Reads the modules of these names and all that they depend on, in the order in which they are loaded. A name that is
/// not there is built into the kernel, or the kernel lacks it: the guest shows that.
pub(crate) fn read(folder: &Path, names: &[&str]) -> io::Result<Vec<Module>> {
    let mut paths = BTreeMap::new();
    list(folder, &mut paths)?;
    let mut found = Vec::new();
    for name in names {
        add(name, &mut paths, &mut found)?;
    }
    Ok(found)
}

/// A module that is taken out of `paths` is loaded once.
fn add(
    name: &str,
    paths: &mut BTreeMap<String, PathBuf>,
    found: &mut Vec<Module>,
) -> io::Result<()> {
    let name = name.replace('-', "_");
    let Some(path) = paths.remove(&name) else {
        return Ok(());
    };
    let content = decompressed(&path)?;
    for needed in depends(&content) {
        add(&needed, paths, found)?;
    }
    found.push(Module { name, content });
    Ok(())
}

/// All modules below a folder, by their names with underscores.
fn list(folder: &Path, paths: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            list(&entry.path(), paths)?;
        } else if let Some((name, _)) = entry.file_name().to_string_lossy().split_once(".ko") {
            paths.insert(name.replace('-', "_"), entry.path());
        }
    }
    Ok(())
}

fn decompressed(path: &Path) -> io::Result<Vec<u8>> {
    let program = match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return std::fs::read(path),
    };
    let output = Command::new(program).arg("-dc").arg(path).output();
    let output =
        output.map_err(|error| io::Error::new(error.kind(), format!("needs {program}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let path = path.display();
    Err(io::Error::other(format!("{program} can't read {path}")))
}

/// What a module says that it depends on.
fn depends(content: &[u8]) -> Vec<String> {
    let at = content
        .windows(DEPENDS.len())
        .position(|window| window == DEPENDS);
    let rest = at.and_then(|at| content.get(at + DEPENDS.len()..));
    let value = rest.and_then(|rest| rest.split(|byte| *byte == 0).next());
    let value = String::from_utf8_lossy(value.unwrap_or_default());
    let names = value.split(',').filter(|name| !name.is_empty());
    names.map(String::from).collect()
}

/// The key, behind the end of the entry before it.
const DEPENDS: &[u8] = b"\0depends=";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_depends_on_is_read() {
        let module = b"\x7fELF\0license=GPL\0depends=i2c-algo-bit,dca\0name=igb\0";
        assert_eq!(depends(module), ["i2c-algo-bit", "dca"]);
        assert!(depends(b"\0license=GPL\0depends=\0name=dca\0").is_empty());
        assert!(depends(b"").is_empty());
    }

    #[test]
    fn modules_come_behind_those_that_they_depend_on_and_once() {
        let folder =
            std::env::temp_dir().join(format!("mill-guest-modules-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("net")).unwrap();
        for (name, needed) in [
            ("net/igb", "dca,algo-bit"),
            ("dca", ""),
            ("net/algo-bit", "dca"),
        ] {
            let content = format!("\0depends={needed}\0");
            std::fs::write(folder.join(format!("{name}.ko")), content).unwrap();
        }
        let found = read(&folder, &["igb", "dca", "builtin"]).unwrap();
        let names: Vec<&str> = found.iter().map(|module| module.name.as_str()).collect();
        assert_eq!(names, ["dca", "algo_bit", "igb"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
