"""The tidy checks must see what a compiler sees: tricky code first goes through their reader."""

import source
from test_architecture import rooms_imported


def read(tmp_path, text):
    path = tmp_path / "sample.rs"
    path.write_text(text)
    return path


def test_comments_and_literals_are_not_code(tmp_path):
    path = read(tmp_path, "let a = \"unsafe {\"; // unsafe\nlet b = r#\"a \" unsafe\"#; /* unsafe */ let c = '\"'; let d: &'a str;\n")
    assert "unsafe" not in source.code(path)
    assert "let d: &'a str;" in source.code(path)
    assert len(source.code(path)) == len(source.text(path))


def test_functions_are_measured(tmp_path):
    text = "trait T { fn declared(&self) -> [u8; 2]; }\nfn one() { 1 }\nfn two()\nwhere\n    T: X,\n{\n    \"}\";\n}\n"
    assert list(source.functions(read(tmp_path, text))) == [("one", 2, 1), ("two", 3, 6)]


def test_test_modules_are_left_out(tmp_path):
    text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { SystemTime }\n}\nfn c() {}\n"
    assert "SystemTime" not in source.without_test_modules(read(tmp_path, text))
    assert "fn c" in source.without_test_modules(read(tmp_path, text))


def test_rooms_that_a_file_uses_are_seen_however_they_are_written(tmp_path, monkeypatch):
    (tmp_path / "core").mkdir()
    path = tmp_path / "core" / "turn.rs"
    path.write_text("use crate::resp::Args;\nuse crate::{session::Visit, unit};\nuse super::work;\nuse super::super::shared;\n#[cfg(test)]\npub(crate) mod tests {\n    use crate::server;\n}\n")
    monkeypatch.setattr(source, "ROOT", tmp_path)
    assert [name for name, _ in rooms_imported(path, tmp_path)] == ["resp", "session", "unit", "shared"]
