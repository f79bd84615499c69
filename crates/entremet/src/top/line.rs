//! Lines of styled text, cut to a width.

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// As it is.
    Plain,
    /// Bold: headings, figures.
    Strong,
    /// Faint: what need not be read.
    Faint,
    /// Light and dark turned round: the bar, the heading of the table.
    Turned,
    /// Yellow: worth a look.
    Warn,
    /// Red: wrong.
    Bad,
}

impl Look {
    /// The terminal's code; without colours the meaning must do with bold and reverse.
    fn code(self, colours: bool) -> &'static str {
        match (self, colours) {
            (Self::Plain, _) => "",
            (Self::Strong, _) => "\x1b[1m",
            (Self::Faint, true) => "\x1b[2m",
            (Self::Turned, _) => "\x1b[7m",
            (Self::Warn, true) => "\x1b[33m",
            (Self::Bad, true) => "\x1b[1;31m",
            (Self::Faint, false) => "",
            (Self::Warn | Self::Bad, false) => "\x1b[1m",
        }
    }
}

/// One line of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line(Vec<(String, Look)>);

impl Line {
    /// A line of one piece.
    pub fn new(text: impl Into<String>, look: Look) -> Self {
        Self::default().and(text, look)
    }

    /// With another piece at its end. Control characters, which could move the cursor or worse,
    /// become question marks, whoever sent them.
    pub fn and(mut self, text: impl Into<String>, look: Look) -> Self {
        let text: String = text.into();
        let text = if text.chars().any(char::is_control) {
            text.replace(char::is_control, "?")
        } else {
            text
        };
        self.0.push((text, look));
        self
    }

    /// The text alone.
    pub fn text(&self) -> String {
        self.0.iter().map(|(text, _)| text.as_str()).collect()
    }

    /// At most `width` characters of it, with the codes of a terminal.
    pub fn coded(&self, width: usize, colours: bool) -> String {
        let (mut left, mut coded) = (width, String::new());
        for (text, look) in &self.0 {
            let piece: String = text.chars().take(left).collect();
            left -= piece.chars().count();
            let code = look.code(colours);
            coded += code;
            coded += &piece;
            if !code.is_empty() {
                coded += "\x1b[0m";
            }
        }
        coded
    }

    /// The whole line in one look, filled with blanks to `width`.
    pub fn filled(&self, width: usize, look: Look) -> Self {
        Self::new(format!("{:width$}", self.text()), look)
    }
}

/// `text` in exactly `width` characters: cut with an ellipsis, or filled with blanks.
pub fn fit(text: &str, width: usize, right: bool) -> String {
    let length = text.chars().count();
    if length > width {
        let kept: String = text.chars().take(width.saturating_sub(1)).collect();
        return if width == 0 { kept } else { kept + "…" };
    }
    if right {
        format!("{text:>width$}")
    } else {
        format!("{text:width$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_without_breaking_codes() {
        let line = Line::new("abc", Look::Bad).and("déf", Look::Plain);
        assert_eq!(line.coded(5, true), "\x1b[1;31mabc\x1b[0mdé");
        assert_eq!(line.coded(2, false), "\x1b[1mab\x1b[0m");
        assert_eq!(line.filled(8, Look::Turned).text(), "abcdéf  ");
    }

    #[test]
    fn a_name_cannot_speak_to_the_terminal() {
        assert_eq!(
            Line::new("a\x1b[2Jb\r\u{9b}", Look::Plain).text(),
            "a?[2Jb??"
        );
    }

    #[test]
    fn cells_have_their_width() {
        assert_eq!(fit("tenant", 4, false), "ten…");
        assert_eq!(
            (fit("a", 3, false), fit("é", 3, true)),
            ("a  ".into(), "  é".into())
        );
        assert_eq!(
            (fit("ab", 0, true), fit("ab", 1, true)),
            (String::new(), "…".into())
        );
    }
}
