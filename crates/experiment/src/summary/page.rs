//! `summary.html`: every verdict of every result.

use super::{picture, took, Line, Row, WORDS};
use crate::report::{bound, escape, plain_page};
use crate::table;

/// The page.
pub(super) fn of(rows: &[Row]) -> String {
    let results = || rows.iter().filter_map(|row| row.result.as_ref());
    let count = |word: &str| -> usize { results().map(|one| one.count(word)).sum() };
    let all: usize = results().map(|one| one.targets().count()).sum();
    let open: Vec<String> = WORDS[1..]
        .iter()
        .map(|word| (count(word), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {}", word.to_lowercase().replace("miss", "missed")))
        .collect();
    let summary = format!("{} of {all} targets met", count(WORDS[0]));
    let summary = [vec![summary], open].concat().join(", ");
    let body = format!(
        "<header><h1>Published results, run again</h1><p class=\"summary\">{}</p></header>\n{}\
         <section><h2>Experiments</h2><div class=\"wide\"><table>{}</table></div></section>\n{}",
        escape(&summary),
        picture::of(rows),
        experiments(rows),
        rows.iter().map(verdicts).collect::<String>(),
    );
    plain_page("summary", &body)
}

/// A line for each experiment, whether it was run or not.
fn experiments(rows: &[Row]) -> String {
    let heads = ["experiment", "met", "of", "runs", "took", "commit"];
    let heads: String = heads
        .iter()
        .map(|head| format!("<th>{head}</th>"))
        .collect();
    let each = rows.iter().map(|row| {
        let name = escape(&row.name);
        let Some(result) = &row.result else {
            return format!("<tr class=\"open\"><td>{name}</td><td colspan=\"5\">not run</td></tr>\n");
        };
        let (met, all) = (result.count(WORDS[0]), result.targets().count());
        let class = match result.count(WORDS[1]) {
            0 if met == all => "pass",
            0 => "open",
            _ => "miss",
        };
        let form = if result.quick { "short form, " } else { "" };
        format!(
            "<tr class=\"{class}\"><td><a href=\"{name}/report.html\">{name}</a></td><td class=\"n word\">{met}</td>\
             <td class=\"n\">{all}</td><td class=\"n\">{}</td><td>{form}{}</td><td>{}</td></tr>\n",
            result.runs,
            took(result.took_s),
            escape(&result.commit),
        )
    });
    format!("<tr>{heads}</tr>{}", each.collect::<String>())
}

fn verdicts(row: &Row) -> String {
    let Some(result) = &row.result else {
        return String::new();
    };
    let head =
        "<tr><th></th><th>target</th><th class=\"n\">measured</th><th class=\"n\">bound</th>\
                <th class=\"paper\">paper</th></tr>";
    let lines: String = result.verdicts.iter().map(verdict).collect();
    format!(
        "<section><h2 id=\"{name}\">{name}</h2><p>{}</p>\
         <div class=\"wide\"><table class=\"verdicts\">{head}{lines}</table></div></section>\n",
        escape(&row.title),
        name = escape(&row.name),
    )
}

fn verdict(line: &Line) -> String {
    let class = match line.word.as_str() {
        "pass" => "pass",
        "MISS" => "miss",
        _ => "open",
    };
    let why = match (line.judged(), line.why.as_str()) {
        (true, _) | (_, "" | "shown") => String::new(),
        (false, why) => format!("<br><small>{}</small>", escape(why)),
    };
    format!(
        "<tr class=\"{class}\"><td class=\"word\">{}</td><td>{}{why}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td class=\"paper\">{}</td></tr>\n",
        escape(&line.word),
        escape(&line.target),
        line.measured.map(table::number).unwrap_or_default(),
        escape(&bound(&line.must)),
        escape(&line.paper),
    )
}
