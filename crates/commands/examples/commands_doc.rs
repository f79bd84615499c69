//! Prints `docs/reference/commands.md`:
//! `cargo run -p entremet-commands --example commands_doc > docs/reference/commands.md`

fn main() {
    print!("{}", commands::documentation::commands_page());
}
