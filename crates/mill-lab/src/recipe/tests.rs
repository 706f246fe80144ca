//! Recipes from text to setups.

use super::*;

#[test]
fn every_embedded_recipe_has_setups_at_all_sizes() {
    let mut problems = Vec::new();
    for id in embedded::ids() {
        for size in SIZES {
            let resolved = match resolve(id, size, &[]) {
                Ok(resolved) => resolved,
                Err(error) => {
                    problems.push(format!("{id} {size}: {error}"));
                    continue;
                }
            };
            assert_eq!(resolved.recipe.id, id);
            assert!(!resolved.points().is_empty(), "{id} {size} has no points");
            for point in resolved.points() {
                if let Err(error) = resolved.setup(&point) {
                    problems.push(format!("{id} {size} {point:?}: {error}"));
                }
            }
        }
    }
    problems.dedup();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
