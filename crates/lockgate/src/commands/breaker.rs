//! `lockgate breaker`: the circuit breakers before a remote safety kernel.

use clap::Args;
use lockgate_api::view;
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone};
use crate::session::CliSession;

/// Show the circuit breakers between this server and its safety kernel
#[derive(Args, Debug)]
pub(crate) struct BreakerArgs {}

impl BreakerArgs {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let response = session.admin().list_breakers(v1::ListBreakersRequest {}).await;
        let breakers = view::Breakers::from(session.answer(response)?);
        if session.out.is_json() {
            session.out.json(&breakers)?;
        } else if breakers.breakers.is_empty() {
            session.out.remark("no circuit breakers: the safety kernel is part of the server");
        } else {
            session.out.line(&table(&breakers, session.out))?;
        }
        Ok(Exit::Success)
    }
}

fn table(breakers: &view::Breakers, out: Output) -> String {
    let rows: Vec<_> = breakers
        .breakers
        .iter()
        .map(|breaker| {
            let tone = match &*breaker.state {
                "closed" => Tone::Good,
                "half_open" => Tone::Waiting,
                _ => Tone::Bad,
            };
            vec![
                TableCell::text(&breaker.name),
                TableCell::text(&breaker.state).toned(tone),
                TableCell::text(&breaker.sharing),
                TableCell::number(&breaker.failures),
                out.relative_or_dash(breaker.open_until),
                TableCell::clipped(breaker.last_error.as_deref().unwrap_or_default()),
            ]
        })
        .collect();
    out.table(&["breaker", "state", "sharing", "failures", "next probe", "last error"], &rows)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::output::Format;

    #[test]
    fn an_open_breaker_says_why_until_when_and_for_whom() {
        let open = v1::Breaker {
            name: "input".to_owned(),
            state: "open".to_owned(),
            failures: 3,
            open_until_ms: Some(30_000),
            last_error: "connection refused".to_owned(),
            sharing: "local_fallback".to_owned(),
        };
        let breakers = view::Breakers::from(v1::ListBreakersResponse { breakers: vec![open] });
        let text = table(&breakers, Output::new(Format::People { colour: false }, Timestamp::UNIX_EPOCH));
        let expected = "BREAKER  STATE  SHARING         FAILURES  NEXT PROBE  LAST ERROR
input    open   local_fallback         3  in 30s      connection refused";
        assert_eq!(text, expected);
    }
}
