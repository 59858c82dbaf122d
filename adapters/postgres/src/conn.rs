//! One connection with its prepared statements, and statements sent in one round trip.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Row, Statement};

use crate::counters::LiveCounters;
use crate::error::StatementError;
use crate::options::{ConnectOptions, Dialect};

/// Statements read rows by key and queues by their index, whatever the statistics of a young or fast-changing table suggest;
/// and each statement is planned once, not once per call.
const PLANNER: &str = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_bitmapscan=off \
    -c enable_hashjoin=off -c enable_mergejoin=off -c enable_sort=off -c jit=off";

pub(crate) type SqlParam<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// One statement among several.
pub(crate) struct SqlCall<'a> {
    pub(crate) sql: &'static str,
    pub(crate) params: Vec<SqlParam<'a>>,
}

pub(crate) struct Conn {
    client: Client,
    prepared: BTreeMap<&'static str, Statement>,
    tally: Arc<LiveCounters>,
    driver: JoinHandle<()>,
    /// A request was sent and its answer not read yet. The next answer on this connection would be for that request, so the
    /// connection must not be reused.
    pub(crate) busy: bool,
}

impl Drop for Conn {
    fn drop(&mut self) {
        if self.busy {
            self.driver.abort();
        }
    }
}

impl Conn {
    pub(crate) async fn open(options: &ConnectOptions, tally: &Arc<LiveCounters>) -> Result<Self, StatementError> {
        let config = settings(options);
        let opened =
            tokio::time::timeout(options.deadline, options.wire.dial(&config)).await.map_err(|_| StatementError::TimedOut);
        let (client, driver) = opened?.map_err(StatementError::Away)?;
        Ok(Self { client, prepared: BTreeMap::new(), tally: Arc::clone(tally), driver, busy: false })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Prepares the statement once per connection.
    async fn statement(&mut self, sql: &'static str) -> Result<Statement, StatementError> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.prepared.insert(sql, statement.clone());
        Ok(statement)
    }

    pub(crate) async fn rows(
        &mut self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StatementError> {
        let statement = self.statement(sql).await?;
        self.tally.sent(1);
        Ok(self.client.query(&statement, params).await?)
    }

    /// Executes text without parameters, such as BEGIN.
    pub(crate) async fn say(&mut self, text: &str) -> Result<(), StatementError> {
        self.tally.sent(1);
        Ok(self.client.batch_execute(text).await?)
    }

    pub(crate) async fn prepare_all(&mut self, calls: &[SqlCall<'_>]) -> Result<(), StatementError> {
        for call in calls {
            self.statement(call.sql).await?;
        }
        Ok(())
    }

    /// Sends `first`, the calls and `last` together and waits once for all answers. Prepares the statements before.
    pub(crate) async fn together(
        &mut self,
        first: Option<&str>,
        calls: &[SqlCall<'_>],
        last: Option<&str>,
    ) -> Result<PipelinedAnswers, StatementError> {
        let mut statements = Vec::with_capacity(calls.len());
        for call in calls {
            statements.push(self.statement(call.sql).await?);
        }
        let params: Vec<Vec<&(dyn ToSql + Sync)>> =
            calls.iter().map(|call| call.params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect()).collect();
        let client = &self.client;
        let say = async |text: Option<&str>| match text {
            Some(text) => client.batch_execute(text).await,
            None => Ok(()),
        };
        let asked = statements.iter().zip(&params).map(|(statement, params)| client.query(statement, params));
        self.tally.sent(calls.len() + usize::from(first.is_some()) + usize::from(last.is_some()));
        // The futures are polled in this order, and each sends its request when first polled, so the requests leave in this
        // order.
        let (first, rows, last) = futures::join!(say(first), join_all(asked), say(last));
        Ok(PipelinedAnswers { first: first.map_err(StatementError::from), rows, last: last.map_err(StatementError::from) })
    }
}

/// The rows of each call, and the outcome of the last text.
pub(crate) type Replies = (Vec<Vec<Row>>, Result<(), StatementError>);

/// The answers, in the order of the requests.
pub(crate) struct PipelinedAnswers {
    first: Result<(), StatementError>,
    rows: Vec<Result<Vec<Row>, tokio_postgres::Error>>,
    last: Result<(), StatementError>,
}

impl PipelinedAnswers {
    /// The rows of each call and the outcome of `last`, unless an earlier request failed. Of several failures the server's
    /// own error counts, because the others follow from it.
    pub(crate) fn split(self) -> Result<Replies, StatementError> {
        let mut failed = self.first.err();
        let mut rows = Vec::with_capacity(self.rows.len());
        for answer in self.rows {
            match answer {
                Ok(found) => rows.push(found),
                Err(error) => {
                    let said = failed.as_ref().is_some_and(StatementError::was_refused);
                    failed = if said { failed } else { Some(StatementError::from(error)) };
                }
            }
        }
        match failed {
            Some(fault) => Err(fault),
            None => Ok((rows, self.last)),
        }
    }
}

fn settings(options: &ConnectOptions) -> Config {
    let mut config = options.config.clone();
    let millis = |span: Duration| span.as_millis().max(1);
    let mut own = format!(
        "-c statement_timeout={} -c idle_in_transaction_session_timeout={}",
        millis(options.deadline),
        millis(options.deadline * 2)
    );
    if options.dialect == Dialect::Postgres {
        own = format!("{own} {PLANNER}");
    }
    let given = config.get_options().map(str::to_owned).unwrap_or_default();
    config.options(format!("{own} {given}"));
    config.application_name("lockgate");
    config.connect_timeout(options.deadline);
    config
}
