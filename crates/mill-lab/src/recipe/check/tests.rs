//! Mistakes, and what is said of them.

use super::*;
use crate::recipe::embedded;

#[test]
fn every_embedded_recipe_is_without_mistakes() {
    let errors: Vec<String> = embedded::ids()
        .flat_map(check_all)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}
