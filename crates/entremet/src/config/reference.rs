//! docs/reference/config.md, written from the schema.

use settings::reference::{sections, UNITS};

const HEAD: &str = "# Configuration

`entremet serve --config FILE` reads TOML; [`entremet.toml`](../../entremet.toml) is a commented sample. This page is written
from the code by `UPDATE_DOCS=1 cargo test --release -p entremet --lib config`; a test compares the two.

`entremet check FILE` finds everything that is wrong, with line and column, and says the rest back in words. Unknown keys are errors.
A change *takes effect* at the next **start**, or at a **reload** (SIGHUP); a reload with an error in the file changes nothing.
*Not yet* means: read, checked and warned about, but nothing acts on it in this version. On the command line `--listen`,
`--admin`, `--engine` and `--data` stand in for `server.listen`, `server.admin`, `engine.url` and `engine.path`.

## Units

";

/// The text of the page.
pub fn reference() -> String {
    let sections = sections(&super::schema::LANGUAGE, 2, true, None);
    format!("{HEAD}{UNITS}{sections}")
}
