//! Publishes dead letters to NATS.

use std::sync::Arc;

use clap::Args;
use clap::builder::FalseyValueParser;
use lockgate_nats::{DeliveryTerms, Relay, Transport};
use lockgate_ports::{Entropy, Outlet};

use super::Serve;
use super::roles::RoleSet;
use crate::error::CliError;

#[derive(Args, Debug)]
pub(crate) struct RelayArgs {
    /// Tell every dead letter to the NATS subject sys.job.dlq; needs JetStream. All processes of an installation need it
    #[arg(long, env = "LOCKGATE_NATS_DEAD_LETTERS", hide_env_values = true, value_parser = FalseyValueParser::new(),
        help_heading = "Cluster")]
    pub(super) nats_dead_letters: bool,
}

impl RelayArgs {
    pub(super) fn check(&self, roles: RoleSet, shared: bool) -> Result<(), CliError> {
        let text = match self.nats_dead_letters {
            true if !shared => "--nats-dead-letters tells them to NATS: name DATABASE_URL, REDIS_URL and NATS_URL",
            true if roles.judges_only() => "--nats-dead-letters does nothing with --roles kernel: no job ends there",
            _ => return Ok(()),
        };
        Err(CliError::Usage(text.to_owned()))
    }

    /// The sink of dead letters.
    pub(super) fn sink(&self) -> Option<Arc<str>> {
        self.nats_dead_letters.then(|| Arc::from(Relay::DEAD_LETTERS))
    }
}

impl Serve {
    /// The outlets of this process.
    pub(super) async fn outlets(&self, entropy: &Arc<dyn Entropy>) -> Result<Vec<Arc<dyn Outlet>>, CliError> {
        let Some(servers) = self.servers.shared()?.filter(|_| self.relay.nats_dead_letters) else { return Ok(Vec::new()) };
        let unusable = |error: lockgate_nats::ConnectError| CliError::Server(error.to_string());
        let options = servers.nats().map_err(unusable)?;
        let transport = Transport::connect(&options, entropy.clone()).await.map_err(unusable)?;
        Ok(vec![Arc::new(Relay::new(Arc::new(transport), DeliveryTerms::default()))])
    }
}

#[cfg(test)]
mod tests {
    use super::super::roles::Role;
    use super::*;

    #[test]
    fn dead_letters_are_told_only_where_jobs_end_and_nats_is() {
        let check = |roles: &[Role], shared| {
            let args = RelayArgs { nats_dead_letters: true };
            args.check(RoleSet::of(roles, true, shared).expect("roles"), shared).map_err(|error| error.to_string())
        };
        assert_eq!(check(&[Role::All], true), Ok(()));
        assert_eq!(check(&[Role::Gateway], true), Ok(()));
        assert!(check(&[Role::All], false).is_err_and(|text| text.contains("name DATABASE_URL")));
        assert!(check(&[Role::Kernel], true).is_err_and(|text| text.contains("--roles kernel")));
    }
}
