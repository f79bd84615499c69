//! docs/reference/config.md, written from the schema.

use std::fmt::Write;

use super::schema::{of_section, Key, Otherwise, Takeover, Takes, KEYS};

const HEAD: &str = "# Configuration

`entremet serve --config FILE` reads TOML; [`entremet.toml`](../../entremet.toml) is a commented sample. This page is written
from the code by `UPDATE_DOCS=1 cargo test --release -p entremet --lib config`; a test compares the two.

`entremet check FILE` finds everything that is wrong, with line and column, and says the rest back in words. Unknown keys are errors.
A change *takes effect* at the next **start**, or at a **reload** (SIGHUP); a reload with an error in the file changes nothing.
*Not yet* means: read, checked and warned about, but nothing acts on it in this version. On the command line `--listen`,
`--admin` and `--data` stand in for `server.listen`, `server.admin` and `engine.path`.

## Units

| quantity | written as | units |
|---|---|---|
| time | `\"20ms\"`, `\"1.5s\"` | `ns` `us` `ms` `s` `min` `h` `d` |
| data | `\"64MiB\"`, `\"1.5GB\"` | `B` `KiB` `MiB` `GiB` `TiB` (1024), `kB` `MB` `GB` `TB` (1000) |
| rate of requests | `\"2000/s\"`, `\"50k/s\"`, `\"30/min\"` | none, `k`, `M`; `/s` `/min` `/h` |
| rate of bytes | `\"1250MB/s\"` | as data; `/s` `/min` `/h` |

Quantities are kept exactly; one that cannot be (`\"0.5ns\"`) is refused, not rounded.
";

/// The text of the page.
pub fn reference() -> String {
    let mut text = HEAD.to_string();
    for section in KEYS
        .iter()
        .filter(|key| matches!(key.takes, Takes::Table | Takes::Tables))
    {
        let title = match section.takes {
            Takes::Tables => format!("[[{}]]", section.path),
            _ => format!("[{}]", section.path),
        };
        let _ = write!(
            text,
            "\n## `{title}`\n\n{}\n\n| key | value | default | takes effect | what it does |\n|---|---|---|---|---|\n",
            section.effect
        );
        let below = |key: &&Key| !matches!(key.takes, Takes::Table | Takes::Tables);
        for key in of_section(section.path).filter(below) {
            let default = match key.otherwise {
                Otherwise::Value(value) => format!("`{value}`"),
                Otherwise::Unset(words) => words.to_string(),
                Otherwise::Required => "must be given".to_string(),
            };
            let takeover = match key.takeover {
                Takeover::Reload => "reload",
                Takeover::Start => "start",
                Takeover::NotYet => "not yet",
            };
            let (name, takes, effect) = (key.name(), key.takes.describe(), key.effect);
            let _ = writeln!(
                text,
                "| `{name}` | {takes} | {default} | {takeover} | {effect} |"
            );
        }
    }
    text
}
