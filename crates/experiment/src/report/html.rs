//! The page's frame, and text that is safe in it.

use serde_json::Value;

use super::pictures::Picture;
use super::{DRAW, MARKS, PLOT, PLOT_STYLE, STYLE, UPLOT, UPLOT_STYLE};

/// Text as HTML shows it.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// A table's row; what is not the first cell is a number.
pub(super) fn row(tag: &str, cells: &[String]) -> String {
    let mut text = String::from("<tr>");
    for (index, cell) in cells.iter().enumerate() {
        let class = if index == 0 { "" } else { " class=\"n\"" };
        text += &format!("<{tag}{class}>{}</{tag}>", escape(cell));
    }
    text + "</tr>\n"
}

/// Where the pictures go: those of one plot side by side.
pub(super) fn pictures(pictures: &[Picture]) -> String {
    let (mut text, mut at) = (String::new(), 0);
    for picture in pictures {
        let places = at..at + picture.specs.len();
        at = places.end;
        let many = if places.len() > 1 { "many" } else { "one" };
        let plots: String = places
            .map(|place| format!("<div data-plot=\"{place}\"></div>"))
            .collect();
        text += &format!(
            "<figure><figcaption>{}</figcaption><div class=\"{many}\">{plots}</div></figure>\n",
            escape(&picture.title)
        );
    }
    if text.is_empty() {
        return text;
    }
    format!("<section><h2>Pictures</h2>{text}</section>\n")
}

/// A page without pictures that need a script.
pub(crate) fn plain(name: &str, body: &str) -> String {
    let name = escape(name);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{name}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// The whole page.
pub(super) fn page(name: &str, body: &str, pictures: &[Picture]) -> String {
    let specs: Vec<&Value> = pictures.iter().flat_map(|one| &one.specs).collect();
    // Inside a script nothing is escaped, so nothing in it may look like its end.
    let data = serde_json::json!(specs).to_string().replace('<', "\\u003c");
    let scripts: String = [UPLOT, MARKS, PLOT]
        .map(|script| format!("<script>{script}</script>\n"))
        .concat();
    let name = escape(name);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{name}</title>\n\
         <style>{UPLOT_STYLE}\n{PLOT_STYLE}\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n{scripts}\
         <script type=\"application/json\" id=\"plots\">{data}</script>\n<script>{DRAW}</script>\n</body>\n</html>\n"
    )
}
