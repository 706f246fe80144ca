//! The parts of a Cargo.toml that the rules look at: the package's name, its dependencies, and the paths of targets
//! outside the usual places.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

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
    /// Parses what cargo has accepted.
    pub(crate) fn parse(text: &str) -> Self {
        let Ok(table) = DeTable::parse(text) else {
            return Self::default();
        };
        let table = table.get_ref();
        let mut manifest = Self::default();
        if let Some(package) = table.get("package").and_then(table_of) {
            manifest.package = package.get("name").and_then(text_of);
        }
        let of_platforms = table.get("target").and_then(table_of).into_iter();
        let of_platforms = of_platforms.flat_map(|table| table.values().filter_map(table_of));
        for table in std::iter::once(table).chain(of_platforms) {
            for (section, kind) in KINDS {
                let section = table.get(section).and_then(table_of).into_iter().flatten();
                let dependencies = section.map(|(name, value)| Dependency {
                    package: table_of(value)
                        .and_then(|keys| keys.get("package").and_then(text_of))
                        .unwrap_or_else(|| name.get_ref().to_string()),
                    kind,
                    line: text[..name.span().start].matches('\n').count() + 1,
                });
                manifest.dependencies.extend(dependencies);
            }
        }
        for target in ["lib", "bin", "test", "bench", "example"] {
            let targets = table.get(target).map(|target| target.get_ref());
            let targets: Vec<&DeTable<'_>> = match targets {
                Some(DeValue::Table(table)) => vec![table],
                Some(DeValue::Array(tables)) => tables.iter().filter_map(table_of).collect(),
                _ => Vec::new(),
            };
            let paths = targets.into_iter().filter_map(|target| target.get("path"));
            manifest.target_paths.extend(paths.filter_map(text_of));
        }
        manifest
    }
}

const KINDS: [(&str, DependencyKind); 3] = [
    ("dependencies", DependencyKind::Normal),
    ("dev-dependencies", DependencyKind::Dev),
    ("build-dependencies", DependencyKind::Build),
];

fn table_of<'a>(value: &'a Spanned<DeValue<'a>>) -> Option<&'a DeTable<'a>> {
    value.get_ref().as_table()
}

fn text_of(value: &Spanned<DeValue<'_>>) -> Option<String> {
    value.get_ref().as_str().map(str::to_owned)
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
