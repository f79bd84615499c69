//! `entremet plan`: what would come of a change, asked of a running server before it is made.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::client::{credentials, Client, Reply, Target, TargetArgs};

/// `entremet plan`.
#[derive(Args, Clone, Debug)]
pub struct PlanArgs {
    /// What is planned
    #[command(subcommand)]
    pub what: Plan,
}

/// What can be planned.
#[derive(Clone, Debug, Subcommand)]
pub enum Plan {
    /// Ask whether a promise of latency or throughput would fit beside those that are made
    #[command(after_help = ADMIT)]
    Admit(AdmitArgs),
}

const ADMIT: &str = "\
Prints whether it fits, at what cost to whom, the least latency that could be promised instead, and what was reckoned
with: what is measured of the disk, and what such requests asked for in the last minutes. Nothing is changed. A promise
of the same class and workload counts as replaced. ENTREMET SLO SET … CHECK says the same to a client;
docs/guide/promises.md tells how it is reckoned.

Exit status: 0 it fits; 1 it does not, or nobody knows; 2 wrong usage.

Examples:
  entremet plan admit web get --at-most 20ms --p 99.9 --contract 2000/s --operator operator:operator-demo
  entremet plan admit web scan --workload reports --throughput 20/s --operator operator:operator-demo";

/// `entremet plan admit`.
#[derive(Args, Clone, Debug)]
pub struct AdmitArgs {
    /// The tenant
    #[arg(value_name = "TENANT")]
    pub tenant: String,

    /// The class of its requests: get, put, multiget, scan or any
    #[arg(value_name = "CLASS")]
    pub class: String,

    /// The workload whose requests are meant; without it, connections of no workload
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,

    /// The time that requests should not exceed
    #[arg(long, value_name = "TIME", required_unless_present = "throughput")]
    pub at_most: Option<String>,

    /// The percentage of the requests that should not exceed it [default: 99]
    #[arg(long, value_name = "PERCENTILE")]
    pub p: Option<String>,

    /// Requests that should be served
    #[arg(long, value_name = "RATE")]
    pub throughput: Option<String>,

    /// Requests offered up to which it holds
    #[arg(long, value_name = "RATE")]
    pub contract: Option<String>,

    /// Who gives way, from 1 to 100
    #[arg(long, value_name = "NUMBER")]
    pub importance: Option<String>,

    /// Who asks: a tenant that may administer the server; without it, the untagged default tenant
    #[arg(long, value_name = "NAME:PASSWORD", value_parser = credentials)]
    pub operator: Option<(String, String)>,

    /// Which server
    #[command(flatten)]
    pub server: TargetArgs,
}

impl AdmitArgs {
    /// The command that asks it.
    fn words(&self) -> Vec<&[u8]> {
        let head = ["ENTREMET", "SLO", "SET", &self.tenant, &self.class];
        let mut words: Vec<&[u8]> = head.map(str::as_bytes).into();
        let options = [
            ("WORKLOAD", &self.workload),
            ("AT-MOST", &self.at_most),
            ("P", &self.p),
            ("THROUGHPUT", &self.throughput),
            ("CONTRACT", &self.contract),
            ("IMPORTANCE", &self.importance),
        ];
        for (option, word) in options {
            if let Some(word) = word {
                words.extend([option.as_bytes(), word.as_bytes()]);
            }
        }
        words.push(b"CHECK");
        words
    }
}

/// Runs the command; the status says whether it fits.
///
/// # Errors
/// The server cannot be asked, or refuses to be.
pub fn run(args: &PlanArgs) -> Result<ExitCode, Box<dyn Error>> {
    let Plan::Admit(args) = &args.what;
    let target = Target::of(&args.server, "entremet-plan")?;
    let (tenant, password) = match &args.operator {
        Some((tenant, password)) => (tenant.as_str(), Some(password.as_str())),
        None => ("default", None),
    };
    let mut client = Client::connect(&target, tenant, password)?;
    let Reply::List(lines) = client.ask(args.words())? else {
        return Err("the server answers as no entremet server of this version does".into());
    };
    let mut out = io::stdout().lock();
    let mut fits = false;
    for line in lines {
        if let Reply::Bulk(line) = line {
            let line = String::from_utf8_lossy(&line);
            fits |= line.starts_with("fits ");
            writeln!(out, "{line}")?;
        }
    }
    Ok(ExitCode::from(u8::from(!fits)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    #[test]
    fn a_plan_is_a_command_that_changes_nothing() {
        let line = "entremet plan admit web get --p 99.9 --at-most 20ms --workload etl";
        let cli = Cli::try_parse_from(line.split(' ')).expect("good");
        let Command::Plan(PlanArgs {
            what: Plan::Admit(args),
        }) = cli.command
        else {
            panic!("a plan")
        };
        let words: Vec<String> = (args.words().iter())
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        let wanted = "ENTREMET SLO SET web get WORKLOAD etl AT-MOST 20ms P 99.9 CHECK";
        assert_eq!(words.join(" "), wanted);
        let nothing = Cli::try_parse_from(["entremet", "plan", "admit", "web", "get"]);
        assert_eq!(nothing.expect_err("promises nothing").exit_code(), 2);
    }
}
