//! One lab per run: two would disturb each other's measurements and write the same trials.

use std::fs::File;
use std::io;
use std::path::Path;

/// Locks a run's folder for this process until the returned value is dropped or the process ends in any way.
pub(super) fn alone(run: &Path) -> Result<File, String> {
    let path = run.join("run.json");
    let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    match mill_sys::lock::lock_exclusive(&file) {
        Ok(()) => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(format!(
            "{} is being measured by another lab",
            run.display()
        )),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_one_labs_at_a_time() {
        let scratch = crate::scratch::Scratch::new("alone");
        let folder = &scratch.0;
        std::fs::write(folder.join("run.json"), "{}").unwrap();
        let first = alone(folder).unwrap();
        let second = alone(folder).unwrap_err();
        assert!(second.contains("another lab"), "{second}");
        drop(first);
        assert!(alone(folder).is_ok());
        std::fs::remove_file(folder.join("run.json")).unwrap();
        assert!(alone(folder).is_err());
    }
}
