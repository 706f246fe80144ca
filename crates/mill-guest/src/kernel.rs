//! Where a kernel for guests and its modules are.

use std::io;
use std::path::{Path, PathBuf};

/// A kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// What QEMU loads.
    pub image: PathBuf,
    /// The folder of the modules, with their folders as in the sources.
    pub modules: PathBuf,
}

impl Kernel {
    /// The kernel in `folder` (as setup/ensure lays it out: `vmlinuz` and `kernel/` with the modules), else the newest
    /// of the usual places. The error says what is missing.
    pub fn find(folder: Option<&Path>) -> io::Result<Self> {
        if let Some(folder) = folder {
            return Self::in_folder(folder).ok_or_else(|| {
                let folder = folder.display();
                missing(format!(
                    "needs a kernel in {folder}: vmlinuz, and its modules below kernel/"
                ))
            });
        }
        Self::below(Path::new("/")).ok_or_else(|| {
            missing(String::from(
                "needs a kernel for guests: setup/ensure vm brings one, and /boot has none with its modules",
            ))
        })
    }

    fn in_folder(folder: &Path) -> Option<Self> {
        let (image, modules) = (folder.join("vmlinuz"), folder.join("kernel"));
        (image.is_file() && modules.is_dir()).then_some(Self { image, modules })
    }

    fn below(root: &Path) -> Option<Self> {
        let installed = root.join("usr/lib/modules");
        let unpacked = newest(&root.join(UNPACKED)).into_iter();
        let of_modules = newest(&installed);
        let mut folders = unpacked.chain(of_modules.clone());
        folders
            .find_map(|folder| Self::in_folder(&folder))
            .or_else(|| {
                // Before Linux 7 Debian's image lies apart from its modules.
                of_modules.iter().find_map(|folder| {
                    let version = folder.file_name()?.to_str()?;
                    let image = root.join("boot").join(format!("vmlinuz-{version}"));
                    let modules = folder.join("kernel");
                    (image.is_file() && modules.is_dir()).then_some(Self { image, modules })
                })
            })
    }
}

fn missing(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, text)
}

/// The folders in `folder`, the one with the highest version first.
fn newest(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort_by_cached_key(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let numbers = name.split(|c: char| !c.is_ascii_digit());
        numbers
            .filter_map(|word| word.parse().ok())
            .collect::<Vec<u64>>()
    });
    found.reverse();
    found
}

/// Where setup/ensure unpacks kernels: they boot guests, and never this machine.
const UNPACKED: &str = "var/lib/millstream/linux";

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A folder that vanishes.
    struct Root(PathBuf);

    impl Root {
        fn with(files: &[&str]) -> Self {
            let name = format!("mill-guest-kernel-{}-{}", std::process::id(), files.len());
            let root = Self(std::env::temp_dir().join(name));
            for file in files {
                let path = root.0.join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            root
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn check(files: &[&str], expected: Option<(&str, &str)>) {
        let root = Root::with(files);
        let expected = expected.map(|(image, modules)| Kernel {
            image: root.0.join(image),
            modules: root.0.join(modules),
        });
        assert_eq!(Kernel::below(&root.0), expected, "{files:?}");
    }

    #[test]
    fn the_newest_kernel_with_modules_is_taken() {
        check(&[], None);
        check(
            &[
                "boot/vmlinuz-6.1.0-9-amd64",
                "usr/lib/modules/6.1.0-9-amd64/kernel/net/a.ko",
            ],
            Some((
                "boot/vmlinuz-6.1.0-9-amd64",
                "usr/lib/modules/6.1.0-9-amd64/kernel",
            )),
        );
        check(
            &[
                "usr/lib/modules/6.9.1/vmlinuz",
                "usr/lib/modules/6.9.1/kernel/a.ko",
                "usr/lib/modules/6.12.0/vmlinuz",
                "usr/lib/modules/6.12.0/kernel/a.ko",
                "usr/lib/modules/7.0.0/vmlinuz",
            ],
            Some((
                "usr/lib/modules/6.12.0/vmlinuz",
                "usr/lib/modules/6.12.0/kernel",
            )),
        );
        check(
            &[
                "usr/lib/modules/9.0/vmlinuz",
                "usr/lib/modules/9.0/kernel/a.ko",
                "var/lib/millstream/linux/7.3.4/vmlinuz",
                "var/lib/millstream/linux/7.3.4/kernel/a.ko",
            ],
            Some((
                "var/lib/millstream/linux/7.3.4/vmlinuz",
                "var/lib/millstream/linux/7.3.4/kernel",
            )),
        );
    }

    #[test]
    fn an_error_says_what_brings_a_kernel() {
        let error = Kernel::find(Some(Path::new("/nonexistent"))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "needs a kernel in /nonexistent: vmlinuz, and its modules below kernel/"
        );
    }
}
