//! What a tenant was promised, for a server that runs.
//!
//! The load client measures; keeping promises is the work of the server. So it only hands them on.

use settings::tenant::{Setting, Terms, SETTINGS};

/// The words of `ENTREMET TENANT SET name …`, and the keys given that the command has no option
/// for. What is not given is left as it is there.
#[must_use]
pub fn options(terms: &Terms) -> (Vec<String>, Vec<&'static str>) {
    let given = SETTINGS.iter().filter(|row| terms.gives(row.name()));
    let (words, left): (Vec<&Setting>, Vec<&Setting>) = given.partition(|row| row.one_word());
    let words = words
        .iter()
        .flat_map(|row| [row.option(), row.text(&terms.settings)]);
    let left = left.iter().map(|row| row.name());
    (words.collect(), left.collect())
}
