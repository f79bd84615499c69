//! `entremet explain`: where the time of a tenant's requests goes, and why.

use std::error::Error;
use std::io::{self, Write};

use clap::Args;

use crate::admin::{Admin, AdminArgs};

/// `entremet explain`.
#[derive(Args, Clone, Debug)]
pub struct ExplainArgs {
    /// The tenant
    #[arg(value_name = "TENANT")]
    pub tenant: String,

    /// Which server
    #[command(flatten)]
    pub server: AdminArgs,

    /// How many of its slowest requests to show
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    pub slowest: usize,

    /// Print JSON, as /api/explain answers
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// The admin address does not answer, or there is no such tenant.
pub fn run(args: &ExplainArgs) -> Result<(), Box<dyn Error>> {
    let explanation = Admin::of(&args.server)?.explain(&args.tenant)?;
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &explanation)?;
        return Ok(writeln!(out)?);
    }
    for line in &explanation.lines {
        writeln!(out, "{line}")?;
    }
    let slowest = explanation.slowest.iter().take(args.slowest);
    if slowest.len() > 0 {
        writeln!(out, "\nThe slowest requests of the last hour:")?;
    }
    for (place, slow) in slowest.enumerate() {
        writeln!(out, "{}. {}", place + 1, slow.words)?;
    }
    Ok(())
}
