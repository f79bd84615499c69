//! Words for what people choose: each once, beside the values that it stands for.

/// A word, and what choosing it means, as a sentence.
pub type Choice = (&'static str, &'static str);

/// A few values, each with a word that people write and read for it.
pub trait Words: Copy + PartialEq + 'static {
    /// Every value, with its word and what it means.
    const ALL: &'static [(Self, Choice)];

    /// Its row.
    fn choice(self) -> Choice {
        let row = Self::ALL.iter().find(|(value, _)| *value == self);
        row.map_or(("", ""), |(_, choice)| *choice)
    }

    /// The word for it.
    fn word(self) -> &'static str {
        self.choice().0
    }

    /// What it means.
    fn meaning(self) -> &'static str {
        self.choice().1
    }

    /// The value that a word stands for.
    fn from_word(word: &str) -> Option<Self> {
        let row = Self::ALL.iter().find(|(_, (known, _))| *known == word);
        row.map(|(value, _)| *value)
    }
}
