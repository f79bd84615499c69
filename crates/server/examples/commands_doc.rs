//! Prints `docs/reference/commands.md`:
//! `cargo run --release -p entremet-server --example commands_doc > docs/reference/commands.md`

fn main() {
    print!("{}", server::commands::documentation::commands_page());
}
