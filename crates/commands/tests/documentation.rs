//! The page about commands says what the table says.

#[test]
fn the_commands_page_is_current() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/commands.md"
    );
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        page == commands::documentation::commands_page(),
        "docs/reference/commands.md is out of date: run \
         `cargo run -p entremet-commands --example commands_doc > docs/reference/commands.md`"
    );
}
