//! `entremet`: one binary, every subcommand.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    entremet::run(entremet::cli::Cli::parse())
}
