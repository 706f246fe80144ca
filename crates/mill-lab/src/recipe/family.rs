//! `[system.X] parent = "Y"`: a system laid over another of the same recipe.

use super::RecipeError;
use super::source::Source;
use mill_config::suggest::nearest;

/// Gives each system with a parent the parent's keys that it lacks.
pub(super) fn lay(source: &mut Source) -> Result<(), RecipeError> {
    let names: Vec<String> = match source.table.get("system").and_then(toml::Value::as_table) {
        Some(systems) => systems.keys().cloned().collect(),
        None => return Ok(()),
    };
    let mut done = Vec::new();
    for name in &names {
        lay_one(source, name, &names, &mut Vec::new(), &mut done)?;
    }
    Ok(())
}

fn lay_one(
    source: &mut Source,
    name: &str,
    names: &[String],
    around: &mut Vec<String>,
    done: &mut Vec<String>,
) -> Result<(), RecipeError> {
    if done.iter().any(|other| other == name) {
        return Ok(());
    }
    let written = ["system", name, "parent"];
    let parent = match source
        .copy(&written[..2])
        .and_then(|mut own| own.table.remove("parent"))
    {
        None => {
            done.push(String::from(name));
            return Ok(());
        }
        Some(toml::Value::String(parent)) => parent,
        Some(_) => {
            return Err(source.error(&written, "`parent` is the name of a system, in quotes"));
        }
    };
    around.push(String::from(name));
    if !names.contains(&parent) {
        let problem = match nearest(parent.as_bytes(), names.iter().map(String::as_str)) {
            Some(near) => format!("there is no system `{parent}`; did you mean `{near}`?"),
            None => format!(
                "there is no system `{parent}`; there are: {}",
                names.join(", ")
            ),
        };
        return Err(source.error(&written, problem));
    }
    if around.contains(&parent) {
        let circle = format!("{} -> {parent}", around.join(" -> "));
        return Err(source.error(&written, format!("parents go round in a circle: {circle}")));
    }
    lay_one(source, &parent, names, around, done)?;
    around.pop();
    let below = source.copy(&["system", &parent]);
    let above = source.copy(&["system", name]);
    if let (Some(mut whole), Some(mut above)) = (below, above) {
        above.table.remove("parent");
        whole.lay(above);
        source.put(&["system", name], whole);
    }
    done.push(String::from(name));
    Ok(())
}
