//! Recipes in files, over parents in files and in the program.

use crate::recipe::{Resolved, resolve};
use crate::store::fixtures::Scratch;

/// Recipes in a folder.
struct Folder(Scratch);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Scratch::new();
        std::fs::create_dir_all(folder.0.join("conf")).unwrap();
        for (name, text) in files {
            std::fs::write(folder.0.join(name), text).unwrap();
        }
        Self(folder)
    }

    fn resolve(&self, file: &str, size: &str) -> Result<Resolved, String> {
        let path = self.0.0.join(file).display().to_string();
        let error = |error: crate::recipe::RecipeError| {
            let text = error.to_string();
            text.replace(&format!("{}/", self.0.0.display()), "")
        };
        resolve(&path, size, &[]).map_err(error)
    }
}

const BASE: &str = r#"id = "base"
title = "base"
question = "q?"
rows = ["X1"]
[vars]
n = 1
[system.nginx]
title = "nginx"
kind = "nginx"
config = "@conf/own.conf"
[load]
tool = "wrk"
args = "${n} ${url}"
[size.smoke]
vars.n = 2
"#;

#[test]
fn a_child_overrides_its_parent_and_its_sizes_the_parents() {
    let child = "parent = \"base\"\ntitle = \"child\"\n[vars]\nn = 3\n[size.seed]\nvars.n = 4\n";
    let folder = Folder::new(&[
        ("base.toml", BASE),
        ("child.toml", child),
        ("conf/own.conf", "events {}"),
    ]);
    let n = |size: &str| folder.resolve("child.toml", size).unwrap().recipe.vars["n"].clone();
    assert_eq!(n("smoke").as_integer(), Some(2));
    assert_eq!(n("standard").as_integer(), Some(3));
    assert_eq!(n("seed").as_integer(), Some(4));
    let resolved = folder.resolve("child.toml", "").unwrap();
    assert_eq!(resolved.recipe.title, "child");
    assert_eq!(resolved.recipe.id, "child");
    assert_eq!(resolved.recipe.rows, ["X1"]);
    // The text of the configuration is inside, so that the stored recipe needs no other file.
    let (setup, _) = resolved.setup(&resolved.points()[0]).unwrap();
    assert_eq!(setup.system.config.as_deref(), Some("events {}"));
}

#[test]
fn a_file_may_have_a_parent_in_the_program_of_its_own_name() {
    let folder = Folder::new(&[(
        "nginx-jemalloc.toml",
        "parent = \"nginx-jemalloc\"\ntitle = \"mine\"\n",
    )]);
    let resolved = folder.resolve("nginx-jemalloc.toml", "").unwrap();
    assert_eq!(resolved.recipe.title, "mine");
    assert_eq!(resolved.recipe.rows, ["N1", "N2"]);
}

#[test]
fn what_is_not_there_is_said_with_its_place() {
    let folder = Folder::new(&[
        ("slip.toml", "parent = \"nginx-jemaloc\"\n"),
        ("self.toml", "parent = \"self.toml\"\n"),
        ("round.toml", "parent = \"back.toml\"\n"),
        ("back.toml", "parent = \"round.toml\"\n"),
        ("number.toml", "title = \"x\"\nparent = 1\n"),
        ("config.toml", BASE),
    ]);
    for case in [
        "slip.toml => slip.toml:1:1: no recipe is called `nginx-jemaloc`; did you mean `nginx-jemalloc`?",
        "self.toml => self.toml:1:1: a recipe can't be its own parent",
        "round.toml => round.toml:1:1: more than 8 parents",
        "number.toml => number.toml:2:1: `parent` is the id of a recipe or the path of a file, in quotes",
        "config.toml => config.toml:10:1: `@conf/own.conf` is neither conf/own.conf nor a file that comes with Millstream",
        "missing.toml => missing.toml: the file missing.toml can't be read: ",
    ] {
        let (file, expected) = case.split_once(" => ").unwrap();
        let error = folder.resolve(file, "").unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let unknown = resolve("nginx-jemaloc", "", &[]).unwrap_err().to_string();
    assert_eq!(
        unknown,
        "nginx-jemaloc: no recipe is called `nginx-jemaloc`; did you mean `nginx-jemalloc`?"
    );
}
