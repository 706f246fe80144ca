//! From the text on the command line to a run.

use super::{RunSummary, Store, StoreError};
use mill_config::suggest::nearest;
use std::path::Path;

pub(super) fn find(store: &Store, word: &str) -> Result<String, StoreError> {
    let runs = store.runs()?;
    if runs.is_empty() {
        return Err(StoreError::Empty {
            folder: store.folder().to_path_buf(),
        });
    }
    choose(&runs, word)
}

/// Runs come newest first.
fn choose(runs: &[RunSummary], word: &str) -> Result<String, StoreError> {
    let ids: Vec<&str> = runs.iter().map(|summary| summary.run.id.as_str()).collect();
    if word == "latest" {
        if let Some(newest) = ids.first() {
            return Ok(String::from(*newest));
        }
    } else if let Some(recipe) = word.strip_prefix("latest:") {
        return latest_of(runs, recipe);
    }
    // A path of a folder, as the shell completes it.
    let name = if word.contains('/') {
        Path::new(word)
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or(word)
    } else {
        word
    };
    if ids.contains(&name) {
        return Ok(String::from(name));
    }
    let fits = |fit: fn(&str, &str) -> bool| -> Vec<String> {
        let fitting = ids.iter().filter(|id| !name.is_empty() && fit(id, name));
        fitting.map(|id| String::from(*id)).collect()
    };
    let mut candidates = fits(|id, word| id.starts_with(word));
    if candidates.is_empty() {
        candidates = fits(|id, word| id.ends_with(&format!("-{word}")));
    }
    match candidates.len() {
        1 => Ok(candidates.remove(0)),
        0 => Err(unknown(word, &ids)),
        _ => Err(StoreError::Ambiguous {
            word: String::from(word),
            candidates,
        }),
    }
}

fn latest_of(runs: &[RunSummary], recipe: &str) -> Result<String, StoreError> {
    if let Some(summary) = runs.iter().find(|summary| summary.run.recipe == recipe) {
        return Ok(summary.run.id.clone());
    }
    let mut recipes: Vec<&str> = runs
        .iter()
        .map(|summary| summary.run.recipe.as_str())
        .collect();
    recipes.sort_unstable();
    recipes.dedup();
    Err(StoreError::Unknown {
        word: format!("latest:{recipe}"),
        advice: format!("; there are runs of {}", recipes.join(", ")),
    })
}

fn unknown(word: &str, ids: &[&str]) -> StoreError {
    let advice = match nearest(word.as_bytes(), ids.iter().copied()) {
        Some(id) => format!("; did you mean {id}?"),
        None => String::from("; `millstream lab runs` lists them"),
    };
    StoreError::Unknown {
        word: String::from(word),
        advice,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RunRecord;

    fn summary(id: &str, recipe: &str) -> RunSummary {
        RunSummary {
            run: RunRecord {
                id: String::from(id),
                recipe: String::from(recipe),
                ..RunRecord::default()
            },
            path: id.into(),
            ..RunSummary::default()
        }
    }

    #[test]
    fn a_run_is_found_by_what_a_person_types() {
        let runs = [
            summary("2026-11-22T0900-rubris-k3f9", "rubris"),
            summary("2026-11-21T0736-nginx-jemalloc-a000", "nginx-jemalloc"),
            summary("2026-11-21T0712-nginx-jemalloc-b000", "nginx-jemalloc"),
        ];
        for case in [
            "latest => 2026-11-22T0900-rubris-k3f9",
            "latest:nginx-jemalloc => 2026-11-21T0736-nginx-jemalloc-a000",
            "2026-11-21T0712-nginx-jemalloc-b000 => 2026-11-21T0712-nginx-jemalloc-b000",
            "2026-11-21T0712 => 2026-11-21T0712-nginx-jemalloc-b000",
            "k3f9 => 2026-11-22T0900-rubris-k3f9",
            "millstream-lab/runs/2026-11-22T0900-rubris-k3f9/ => 2026-11-22T0900-rubris-k3f9",
            "2026-11-21T07 => \"2026-11-21T07\" may be any of 2026-11-21T0736-nginx-jemalloc-a000, 2026-11-21T0712-nginx-jemalloc-b000",
            "2026-11-22T0900-rubris-k3g9 => no run \"2026-11-22T0900-rubris-k3g9\"; did you mean 2026-11-22T0900-rubris-k3f9?",
            " => no run \"\"; `millstream lab runs` lists them",
            "latest:rubri => no run \"latest:rubri\"; there are runs of nginx-jemalloc, rubris",
        ] {
            let (word, expected) = case.split_once(" => ").unwrap();
            let found = choose(&runs, word).unwrap_or_else(|error| error.to_string());
            assert_eq!(found, expected, "{word}");
        }
    }
}
