//! `entremet`: one binary, every subcommand.

use std::process::ExitCode;

use clap::Parser;
use tikv_jemallocator::Jemalloc;

/// RocksDB's too: its features make this `malloc` for all of the program.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    entremet::run(entremet::cli::Cli::parse())
}
