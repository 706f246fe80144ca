//! The parts of a Cargo.toml that the rules look at: the package's name, its dependencies, and the paths of targets
//! outside the usual places.

use super::Tree;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// None for a workspace without a package of its own.
    pub(crate) package: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
    /// The `path` of every `[lib]`, `[[bin]]`, `[[test]]` and similar section.
    pub(crate) target_paths: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    /// The package's own name, also when it is renamed.
    pub(crate) package: String,
    pub(crate) kind: DependencyKind,
    /// Counted from 1.
    pub(crate) line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    Normal,
    Dev,
    Build,
}

/// Every Cargo.toml of the tree: its folder (with a slash at the end, empty for the root) and its content.
pub(crate) fn manifests(tree: &Tree) -> impl Iterator<Item = (&str, Manifest)> {
    tree.texts().filter_map(|(path, text)| {
        let folder = path.strip_suffix("Cargo.toml")?;
        (folder.is_empty() || folder.ends_with('/')).then(|| (folder, Manifest::parse(text)))
    })
}

impl Manifest {
    /// Parses what cargo has accepted, so it needs only the forms in use: one key per line, arrays over several
    /// lines.
    pub(crate) fn parse(text: &str) -> Self {
        let mut manifest = Self::default();
        let mut section = Section::Other;
        let mut open_brackets = 0_usize;
        for (index, line) in text.lines().enumerate() {
            let line = without_comment(line).trim();
            if open_brackets == 0 {
                if let Some(header) = header_of(line) {
                    section = Section::of(&header);
                    manifest.on_header(&section, index + 1);
                    continue;
                }
                if let Some((key, value)) = line.split_once('=') {
                    manifest.on_key(&section, key.trim(), value.trim(), index + 1);
                }
            }
            open_brackets = (open_brackets + line.matches(['[', '{']).count())
                .saturating_sub(line.matches([']', '}']).count());
        }
        manifest
    }

    fn on_header(&mut self, section: &Section, line: usize) {
        if let Section::Dependency(kind, package) = section {
            self.dependencies.push(Dependency {
                package: package.clone(),
                kind: *kind,
                line,
            });
        }
    }

    fn on_key(&mut self, section: &Section, key: &str, value: &str, line: usize) {
        match section {
            Section::Package if key == "name" => self.package = quoted(value),
            Section::Target if key == "path" => self.target_paths.extend(quoted(value)),
            Section::Dependencies(kind) => {
                let name = names_of(key).into_iter().next().unwrap_or_default();
                let package = renamed(value).unwrap_or(name);
                self.dependencies.push(Dependency {
                    package,
                    kind: *kind,
                    line,
                });
            }
            Section::Dependency(..) if key == "package" => {
                if let (Some(dependency), Some(package)) =
                    (self.dependencies.last_mut(), quoted(value))
                {
                    dependency.package = package;
                }
            }
            _ => {}
        }
    }
}

/// The meaning of the keys under a header.
enum Section {
    Package,
    Target,
    /// `[dependencies]`, also under `[target.…]`: a dependency per key.
    Dependencies(DependencyKind),
    /// `[dependencies.name]`: all keys are about one dependency.
    Dependency(DependencyKind, String),
    Other,
}

impl Section {
    fn of(header: &str) -> Self {
        let names = names_of(header);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let names = match names.as_slice() {
            ["target", _, inner @ ..] => inner,
            all => all,
        };
        match names {
            ["package"] => Self::Package,
            ["lib" | "bin" | "test" | "bench" | "example"] => Self::Target,
            [kind] => kind_of(kind).map_or(Self::Other, Self::Dependencies),
            [kind, name] => kind_of(kind).map_or(Self::Other, |kind| {
                Self::Dependency(kind, (*name).to_owned())
            }),
            _ => Self::Other,
        }
    }
}

fn kind_of(name: &str) -> Option<DependencyKind> {
    match name {
        "dependencies" => Some(DependencyKind::Normal),
        "dev-dependencies" => Some(DependencyKind::Dev),
        "build-dependencies" => Some(DependencyKind::Build),
        _ => None,
    }
}

/// The name in `[name]` or `[[name]]`.
fn header_of(line: &str) -> Option<String> {
    let inner = line.strip_prefix('[')?.strip_suffix(']')?;
    let inner = inner
        .strip_prefix('[')
        .and_then(|i| i.strip_suffix(']'))
        .unwrap_or(inner);
    Some(inner.trim().to_owned())
}

/// The names of a dotted key, whose quoted parts may hold dots.
fn names_of(key: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut quote = None;
    for c in key.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '.') => names.push(String::new()),
            (None, ' ') => {}
            _ => names.last_mut().expect("there is always one name").push(c),
        }
    }
    names
}

/// The text of a value in quotes.
fn quoted(value: &str) -> Option<String> {
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    Some(value.get(1..)?.split(quote).next()?.to_owned())
}

/// The package in `{ package = "…", … }`.
fn renamed(value: &str) -> Option<String> {
    let (before, after) = value.strip_prefix('{')?.split_once("package")?;
    let own_word = before.trim_end().is_empty() || before.trim_end().ends_with(',');
    let value = after.trim_start().strip_prefix('=')?;
    own_word.then(|| quoted(value.trim_start())).flatten()
}

/// The line up to a `#` outside of quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '#') => return line.get(..at).unwrap_or(line),
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{DependencyKind, Manifest};
    use DependencyKind::{Build, Dev, Normal};

    fn check(text: &str, expected: &[(&str, DependencyKind, usize)]) {
        let manifest = Manifest::parse(text);
        let found = manifest.dependencies.iter();
        let found: Vec<_> = found
            .map(|d| (d.package.as_str(), d.kind, d.line))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_dependency_is_read_in_each_of_its_forms() {
        check("[dependencies]\na = \"1\"", &[("a", Normal, 2)]);
        check("[dependencies]\na.workspace = true", &[("a", Normal, 2)]);
        check(
            "[dependencies]\n\"a\" = { path = \"../a\" }",
            &[("a", Normal, 2)],
        );
        check(
            "[dependencies]\nb = { version = \"1\", package = \"a\" }",
            &[("a", Normal, 2)],
        );
        check(
            "[dependencies]\nb = { path = \"../package = \" }",
            &[("b", Normal, 2)],
        );
        check("[dependencies.a]\nversion = \"1\"", &[("a", Normal, 1)]);
        check(
            "[dependencies.b]\nversion = \"1\"\npackage = \"a\"",
            &[("a", Normal, 1)],
        );
    }

    #[test]
    fn the_kind_is_that_of_the_section() {
        check("[dev-dependencies]\na = \"1\"", &[("a", Dev, 2)]);
        check("[build-dependencies]\na = \"1\"", &[("a", Build, 2)]);
        check(
            "[target.'cfg(unix)'.dependencies]\na = \"1\"",
            &[("a", Normal, 2)],
        );
        check(
            "[target.\"x.y\".dev-dependencies.a]\nversion = \"1\"",
            &[("a", Dev, 1)],
        );
    }

    #[test]
    fn what_is_no_dependency_of_the_package_is_not_read_as_one() {
        check("[workspace.dependencies]\na = \"1\"", &[]);
        check("[dependencies]\n# a = \"1\"", &[]);
        check("[features]\na = [\n  \"b\",\n]", &[]);
        check(
            "[dependencies]\na = { version = \"1\", features = [\n  \"b\", # c = 1\n] }\nd = \"1\"",
            &[("a", Normal, 2), ("d", Normal, 5)],
        );
    }

    #[test]
    fn the_package_and_its_target_paths_are_read() {
        let text = "[package]\nname = 'mill' # why\n\n[lib]\nname = \"x\"\npath = \"a.rs\"\n\
                    [[bin]]\npath = \"b.rs\"\n";
        let manifest = Manifest::parse(text);
        assert_eq!(manifest.package.as_deref(), Some("mill"));
        assert_eq!(manifest.target_paths, ["a.rs", "b.rs"]);
        assert_eq!(Manifest::parse("[workspace]\nmembers = []\n").package, None);
    }
}
