//! Words of a command that change fields of one table of a list: a promise, or a workload.

use resp::{is, Args};
use settings::tenant::Field;

/// Fields to be changed, each with a word that it takes.
pub struct Edits<T: 'static>(Vec<(&'static Field<T>, String)>);

impl<T: Default> Edits<T> {
    /// Reads pairs of an option and its value, which are the first `words` of `args`. `fields` are
    /// those that the command may change; `command` is what its errors call it.
    ///
    /// # Errors
    /// What is wrong, as a reply.
    pub fn read(
        args: Args<'_>,
        words: usize,
        fields: impl Iterator<Item = &'static Field<T>> + Clone,
        command: &str,
    ) -> Result<Self, String> {
        let (mut edits, mut at) = (Vec::new(), 0);
        while at < words {
            let option = args.get(at);
            let Some(value) = args.find(at + 1).filter(|_| at + 1 < words) else {
                return Err("ERR syntax error".into());
            };
            let known = |field: &&'static Field<T>| is(option, &field.option());
            let Some(field) = fields.clone().find(known) else {
                let options: Vec<String> = fields.map(Field::option).collect();
                return Err(format!(
                    "ERR unknown option '{}' of {command}; there are {}",
                    String::from_utf8_lossy(option).to_ascii_uppercase(),
                    options.join(", ")
                ));
            };
            let word = String::from_utf8_lossy(value).into_owned();
            let tried = field.take(&mut T::default(), &word);
            tried.map_err(|must| format!("ERR {} {must}", field.option()))?;
            edits.push((field, word));
            at += 2;
        }
        Ok(Self(edits))
    }

    /// Changes them.
    pub fn apply(&self, one: &mut T) {
        for (field, word) in &self.0 {
            let taken = field.take(one, word);
            debug_assert!(taken.is_ok(), "it was tried when it was read");
        }
    }
}
