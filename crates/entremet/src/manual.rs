//! The manual: a page for the program and one for each subcommand, from the command line that
//! `--help` shows.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_mangen::roff::{roman, Roff};
use clap_mangen::Man;

use crate::cli::{Cli, VERSION};

/// Writes all pages into a directory, which is made where it is missing; returns what was written.
pub fn write(directory: &Path) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(directory)?;
    // `entremet help` says what the pages say.
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    let mut written = Vec::new();
    write_one(&program, directory, &mut written)?;
    Ok(written)
}

fn write_one(command: &Command, directory: &Path, written: &mut Vec<PathBuf>) -> io::Result<()> {
    for inner in command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
    {
        write_one(inner, directory, written)?;
    }
    let page = Man::new(command.clone())
        .source(format!("entremet {VERSION}"))
        .manual("Entremet");
    let path = directory.join(page.get_filename());
    fs::write(&path, text(command, &page)?)?;
    written.push(path);
    Ok(())
}

fn text(command: &Command, page: &Man) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    page.render_title(&mut out)?;
    page.render_name_section(&mut out)?;
    page.render_synopsis_section(&mut out)?;
    page.render_description_section(&mut out)?;
    page.render_options_section(&mut out)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut out)?;
    }
    if let Some(after) = command.get_after_help() {
        sections(&after.to_string()).to_writer(&mut out)?;
    }
    Ok(out)
}

/// What stands after the options in `--help`. A paragraph that opens with "Examples:" or "Exit
/// status:" is a section of that name, whatever else there is belongs to the notes. Indented lines
/// stay as they are.
fn sections(after: &str) -> Roff {
    let mut page = Roff::new();
    let mut open = String::new();
    for paragraph in after.split("\n\n") {
        let (heading, body) = match paragraph.split_once(':') {
            Some((heading @ ("Example" | "Examples" | "Exit status"), body)) => (heading, body),
            _ => ("Notes", paragraph),
        };
        if open == heading {
            page.control("PP", []);
        } else {
            page.control("SH", [heading.to_uppercase().as_str()]);
        }
        open = heading.to_string();
        for line in body.trim_start_matches([' ', '\n']).lines() {
            match line.strip_prefix("  ") {
                Some(verbatim) => verbatim_line(&mut page, verbatim),
                None if heading.starts_with("Example") => verbatim_line(&mut page, line),
                None => drop(page.text([roman(line)])),
            }
        }
    }
    page
}

fn verbatim_line(page: &mut Roff, line: &str) {
    page.control("nf", []);
    page.text([roman(line)]);
    page.control("fi", []);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_has_a_page_with_all_its_options() {
        let folder = tempfile::tempdir().expect("a folder");
        let written = write(&folder.path().join("man")).expect("written");
        let mut program = Cli::command();
        program.build();
        for command in program.get_subcommands() {
            if command.get_name() == "help" {
                continue;
            }
            let name = format!("entremet-{}.1", command.get_name());
            let path = written.iter().find(|path| path.ends_with(&name));
            let page = fs::read_to_string(path.expect("a page")).expect("readable");
            for long in command
                .get_arguments()
                .filter_map(|argument| argument.get_long())
            {
                let shown = format!("\\-\\-{}", long.replace('-', "\\-"));
                assert!(page.contains(&shown), "{name} lacks --{long}:\n{page}");
            }
        }
        assert_eq!(written.len(), pages(&program));
    }

    /// A command, and what is inside of it but its help.
    fn pages(command: &Command) -> usize {
        let inner = command.get_subcommands();
        let inner = inner.filter(|inner| inner.get_name() != "help");
        1 + inner.map(pages).sum::<usize>()
    }

    #[test]
    fn examples_are_not_filled() {
        let page = sections("Does it\nall.\n\nMore.\n\nExamples:\n  one\n  two\n\nExit status: 0.");
        let wanted = "\
.SH NOTES
Does it
all.
.PP
More.
.SH EXAMPLES
.nf
one
.fi
.nf
two
.fi
.SH \"EXIT STATUS\"
0.
";
        assert!(page.to_roff().ends_with(wanted), "{}", page.to_roff());
    }
}
