//! Making the tenants of a scenario on a server, through `ENTREMET TENANT SET`.

use std::time::Duration;

use super::{promise, Scenario};
use crate::client::control::Control;
use crate::client::{Identity, Target};
use crate::error::WorkloadError;

/// A password is hashed with Argon2 and the list of tenants is written to the disk before the
/// reply.
const PATIENCE: Duration = Duration::from_secs(30);

/// Makes every tenant of the scenario, or changes it to what the scenario says, as `operator`, at
/// every server and front. Returns the promises that the command has no option for: those are
/// not kept.
///
/// # Errors
/// [`WorkloadError::Unreachable`]; [`WorkloadError::Refused`] if the server knows no such command
/// (it is not Entremet) or `operator` may not administer it.
pub fn provision(
    scenario: &Scenario,
    target: &Target,
    operator: &Identity,
) -> Result<Vec<&'static str>, WorkloadError> {
    let mut controls = Vec::new();
    for server in target.goal.places(operator, PATIENCE)? {
        controls.push(Control::connect(server, operator, PATIENCE)?);
    }
    let mut left: Vec<&'static str> = Vec::new();
    for tenant in &scenario.tenants {
        let identity = target.identity(tenant)?;
        let Some((name, password)) = &identity.credentials else {
            let what =
                "--provision makes tenants, and --anonymous uses none: leave one of them out";
            return Err(WorkloadError::Usage(what.into()));
        };
        let (options, unset) = promise::options(&tenant.terms);
        left.extend(
            unset
                .iter()
                .filter(|key| !left.contains(key))
                .collect::<Vec<_>>(),
        );
        let mut words: Vec<&[u8]> = vec![b"ENTREMET", b"TENANT", b"SET", name.as_bytes()];
        words.extend([b"PASSWORD".as_slice(), password.as_bytes()]);
        words.extend(options.iter().map(String::as_bytes));
        for control in &mut controls {
            if let Some(reply) = control.command(&words)? {
                return Err(WorkloadError::Refused {
                    tenant: operator.tenant().into(),
                    command: format!("ENTREMET TENANT SET {name}"),
                    reply,
                });
            }
        }
    }
    Ok(left)
}
