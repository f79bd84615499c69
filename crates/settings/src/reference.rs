//! Pages of the reference, written from a language's declaration.

use std::fmt::Write;

use crate::schema::{Key, Language, Otherwise, Takeover, Takes};

/// How quantities are written; the same in every language.
pub const UNITS: &str = "\
| quantity | written as | units |
|---|---|---|
| time | `\"20ms\"`, `\"1.5s\"` | `ns` `us` `ms` `s` `min` `h` `d` |
| data | `\"64MiB\"`, `\"1.5GB\"` | `B` `KiB` `MiB` `GiB` `TiB` (1024), `kB` `MB` `GB` `TB` (1000) |
| rate of requests | `\"2000/s\"`, `\"50k/s\"`, `\"30/min\"` | none, `k`, `M`; `/s` `/min` `/h` |
| rate of bytes | `\"1250MB/s\"` | as data; `/s` `/min` `/h` |

Quantities are kept exactly; one that cannot be (`\"0.5ns\"`) is refused, not rounded.
";

/// A table for each section, behind a heading of `level` number signs. `takeover`: with a column
/// that says when a change takes effect. `top` is what the keys of no section are for.
pub fn sections(language: &Language, level: usize, takeover: bool, top: Option<&str>) -> String {
    let mut text = String::new();
    let heading = "#".repeat(level);
    if let Some(top) = top {
        let _ = write!(text, "\n{heading} At the top\n\n{top}\n\n");
        table(&mut text, language, "", takeover);
    }
    let tables = |key: &&Key| matches!(key.takes, Takes::Table | Takes::Tables);
    for section in language.keys().filter(tables) {
        let title = match section.takes {
            Takes::Tables => format!("[[{}]]", section.path),
            _ => format!("[{}]", section.path),
        };
        let _ = write!(text, "\n{heading} `{title}`\n\n{}\n\n", section.effect);
        table(&mut text, language, section.path, takeover);
    }
    text
}

fn table(text: &mut String, language: &Language, section: &str, takeover: bool) {
    let (head, rule) = if takeover {
        (" takes effect |", "---|")
    } else {
        ("", "")
    };
    let _ = writeln!(
        text,
        "| key | value | default |{head} what it does |\n|---|---|---|{rule}---|"
    );
    let own =
        |key: &&Key| key.section() == section && !matches!(key.takes, Takes::Table | Takes::Tables);
    for key in language.keys().filter(own) {
        let default = match key.otherwise {
            Otherwise::Value(value) => format!("`{value}`"),
            Otherwise::Unset(words) => words.to_string(),
            Otherwise::Required => "must be given".to_string(),
        };
        let when = match (takeover, key.takeover) {
            (false, _) => "",
            (_, Takeover::Reload) => " reload |",
            (_, Takeover::Start) => " start |",
        };
        let (name, takes) = (key.name(), key.takes.describe());
        let mut effect = key.effect.to_string();
        if let Takes::Choice(choices) = key.takes {
            for (word, meaning) in choices() {
                let _ = write!(effect, " `{word}`: {meaning}");
            }
        }
        let _ = writeln!(text, "| `{name}` | {takes} | {default} |{when} {effect} |");
    }
}
