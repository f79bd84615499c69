//! What a process that runs for long says: not the same again and again.

/// Says on standard error why nothing is done, once until something else is the reason.
#[derive(Debug, Default)]
pub struct Say {
    last: String,
}

impl Say {
    /// Says it, unless it was said last. Numbers may differ.
    pub fn why(&mut self, text: &str) {
        let words: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
        if self.last != words {
            eprintln!("{text}");
            self.last = words;
        }
    }

    /// Something was done: the next reason is said again.
    pub fn did(&mut self) {
        self.last.clear();
    }
}
