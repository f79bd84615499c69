//! What the subcommands do, and how they fail.

use std::error::Error;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use server::tenants::Password;

use crate::calibrate;
use crate::cli::{CheckArgs, Cli, Command, ServeArgs};
use crate::config::{self, words, Overrides};
use crate::{cluster, explain, export, manual, plan, serve, top};

/// Failures are shown as they are: each says what is wrong, where, and what to do.
type Failure = Box<dyn Error>;

/// Runs the command. Failures go to standard error and make the status 1.
pub fn run(cli: Cli) -> ExitCode {
    let done = match cli.command {
        Command::Serve(args) => serve(&args),
        Command::Check(args) => check(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Load(args) => workload::run(args).map_err(Failure::from),
        Command::Export(args) => export::run(&args),
        Command::Experiment(args) => return experiment(&args),
        Command::Top(args) => top::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Plan(args) => return plan(&args),
        Command::Cluster(args) => cluster::run(&args),
        Command::Sim(args) => {
            sim::cli::run(&args, &experiment::report::of_simulation).map_err(Failure::from)
        }
        Command::HashPassword => hash_password(),
        Command::Completions { shell } => completions(shell),
        Command::Man { directory } => man(&directory),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough.
        Err(failure) if broken_pipe(&failure) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("entremet: {}", failure.to_string().trim_end());
            ExitCode::FAILURE
        }
    }
}

/// Says by its status whether targets were met; wrong usage has a status of its own.
fn experiment(args: &experiment::cli::ExperimentArgs) -> ExitCode {
    experiment::run(args).unwrap_or_else(|error| {
        eprintln!("entremet: {error}");
        ExitCode::from(error.exit_status())
    })
}

/// Says by its status whether what is planned would do.
fn plan(args: &plan::PlanArgs) -> ExitCode {
    plan::run(args).unwrap_or_else(|failure| {
        eprintln!("entremet: {failure}");
        ExitCode::FAILURE
    })
}

fn broken_pipe(failure: &Failure) -> bool {
    failure
        .downcast_ref::<io::Error>()
        .is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

fn serve(args: &ServeArgs) -> Result<(), Failure> {
    let source = serve::Source {
        file: args.config.clone(),
        overrides: args.overrides(),
    };
    let loaded = config::load(source.file.as_deref(), &source.overrides).map_err(refused)?;
    eprint!("{}", loaded.report);
    serve::run(loaded.config, source)
}

fn check(args: &CheckArgs) -> Result<(), Failure> {
    let loaded = config::load(Some(&args.file), &Overrides::default()).map_err(refused)?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{}: good, {}.\n",
        args.file.display(),
        loaded.report.summary()
    )?;
    write!(out, "{}", words(&loaded.config))?;
    eprint!("{}", loaded.report);
    Ok(())
}

fn refused(report: settings::Report) -> Failure {
    format!(
        "the configuration cannot be used: {}\n{report}",
        report.summary()
    )
    .into()
}

fn hash_password() -> Result<(), Failure> {
    let password = if io::stdin().is_terminal() {
        let password = rpassword::prompt_password("Password: ")?;
        if password != rpassword::prompt_password("Once more: ")? {
            return Err("the two passwords differ; try again".into());
        }
        password
    } else {
        let mut line = String::new();
        io::stdin()
            .lock()
            .read_line(&mut line)
            .map_err(|cause| format!("cannot read the password: {cause}"))?;
        line.trim_end_matches(['\r', '\n']).to_string()
    };
    match Password::hash(password.as_bytes()) {
        Ok(Password::Hashed(hash)) => Ok(writeln!(io::stdout(), "{hash}")?),
        Ok(Password::None) => unreachable!("what was hashed has a hash"),
        Err(why) => Err(format!("the password {why}; use 1 to 512 characters").into()),
    }
}

fn man(directory: &Path) -> Result<(), Failure> {
    manual::write(directory).map_err(|cause| {
        let place = directory.display();
        format!("cannot write the manual pages to {place}: {cause}")
    })?;
    Ok(())
}

fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "entremet", &mut script);
    io::stdout().write_all(&script)?;
    Ok(())
}
