//! The `ExternalScaler` service, which KEDA asks how many workers a pool needs.
//!
//! Everything comes from what the engine looked at for its gauges a moment ago: a question costs a look into memory, however many
//! jobs wait and however many autoscalers ask.

use std::collections::HashMap;
use std::pin::Pin;

use futures::Stream;
use lockgate_core::ids::PoolName;
use lockgate_core::lane::Priority;
use lockgate_core::request::FieldError;
use lockgate_engine::{ApiError, PoolLevel, PoolLevels};
use lockgate_proto::keda::external_scaler_server::ExternalScaler;
use lockgate_proto::keda::{
    GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse, IsActiveResponse, MetricSpec, MetricValue, ScaledObjectRef,
};
use tonic::{Request, Status};

use super::{GrpcResult, ScalerService, answer};

/// Of every metric name.
const PREFIX: &str = "lockgate";

/// What a ScaledObject asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ScalerTarget {
    pool: PoolName,
    /// Jobs that wait, for each replica.
    waiting: u64,
    /// A pool with no more than this is at rest.
    rest: u64,
    /// Only jobs as urgent as this, or more.
    least: Option<Priority>,
}

impl ScalerTarget {
    fn read(metadata: &HashMap<String, String>) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        let mut number = |name: &str, default: u64, least: u64| match metadata.get(name) {
            None => default,
            Some(text) => text.parse().ok().filter(|number| *number >= least).unwrap_or_else(|| {
                errors.push(FieldError::new(name, format_args!("{text:?} must be a number, at least {least}")));
                default
            }),
        };
        let (waiting, rest) = (number("waitingPerReplica", 100, 1), number("activationWaiting", 0, 0));
        let least = metadata.get("priority").filter(|text| !text.is_empty()).and_then(|text| match text.parse() {
            Ok(priority) => Some(priority),
            Err(error) => {
                errors.push(FieldError::new("priority", error));
                None
            }
        });
        let known = ["pool", "waitingPerReplica", "activationWaiting", "priority"];
        let pool = metadata.get("pool").filter(|pool| !pool.is_empty());
        if pool.is_none() {
            errors.push(FieldError::new("pool", "must name a pool"));
        }
        // KEDA adds words of its own; ours must be spelt right.
        let misspelt =
            |name: &&String| !known.contains(&name.as_str()) && known.iter().any(|k| k.eq_ignore_ascii_case(name));
        let mut wrong: Vec<&String> = metadata.keys().filter(misspelt).collect();
        wrong.sort();
        errors.extend(
            wrong.into_iter().map(|name| FieldError::new(name.as_str(), format_args!("is spelt otherwise: {known:?}"))),
        );
        match pool {
            Some(pool) if errors.is_empty() => Ok(Self { pool: PoolName::from(pool.as_str()), waiting, rest, least }),
            _ => Err(ApiError::Invalid(errors)),
        }
    }

    fn metric(&self) -> String {
        let least = self.least.map_or_else(String::new, |least| format!("-{least}"));
        format!("{PREFIX}-{}{least}-waiting", self.pool)
    }

    /// Jobs that wait and count.
    fn waiting(&self, level: &PoolLevel) -> u64 {
        let Some(least) = self.least else { return level.waiting };
        // The most urgent comes first.
        level.waiting_by.iter().take(least as usize + 1).sum()
    }

    fn level(&self, levels: &PoolLevels) -> Result<PoolLevel, ApiError> {
        // An autoscaler that is told 0, or what was long ago, would scale down in front of a backlog.
        if !levels.is_fresh() {
            return Err(ApiError::Unavailable("the queues could not be looked at lately; ask again".into()));
        }
        match levels.get(&self.pool) {
            Some(level) => Ok(*level),
            None => Err(ApiError::invalid("pool", format_args!("there is no pool {:?}", self.pool.as_str()))),
        }
    }

    /// Work that is under way keeps a pool awake: its workers must not be scaled away, whichever process dispatched it.
    fn is_active(&self, level: &PoolLevel) -> bool {
        self.waiting(level) > self.rest || level.busy > 0 || level.busy_elsewhere > 0
    }
}

#[tonic::async_trait]
impl ExternalScaler for ScalerService {
    type StreamIsActiveStream = Pin<Box<dyn Stream<Item = Result<IsActiveResponse, Status>> + Send>>;

    async fn is_active(&self, request: Request<ScaledObjectRef>) -> GrpcResult<IsActiveResponse> {
        let active = ScalerTarget::read(&request.into_inner().scaler_metadata).and_then(|asked| {
            let level = asked.level(&self.0.engine.pool_levels().borrow())?;
            Ok(IsActiveResponse { result: asked.is_active(&level) })
        });
        answer(active)
    }

    /// At once, and whenever it changes.
    async fn stream_is_active(&self, request: Request<ScaledObjectRef>) -> GrpcResult<Self::StreamIsActiveStream> {
        let (levels, closing) = (self.0.engine.pool_levels(), self.0.closing.clone());
        let state = ScalerTarget::read(&request.into_inner().scaler_metadata).map(|asked| (asked, levels, closing, None));
        answer(state.map(|state| {
            let stream = futures::stream::unfold(state, |(asked, mut levels, closing, told)| async move {
                loop {
                    let level = asked.level(&levels.borrow_and_update());
                    let active = level.ok().map(|level| asked.is_active(&level));
                    if let Some(result) = active.filter(|_| active != told) {
                        return Some((Ok(IsActiveResponse { result }), (asked, levels, closing, active)));
                    }
                    closing.run_until_cancelled(levels.changed()).await?.ok()?;
                }
            });
            Box::pin(stream) as Self::StreamIsActiveStream
        }))
    }

    async fn get_metric_spec(&self, request: Request<ScaledObjectRef>) -> GrpcResult<GetMetricSpecResponse> {
        let spec = ScalerTarget::read(&request.into_inner().scaler_metadata).map(|asked| MetricSpec {
            metric_name: asked.metric(),
            target_size: i64::try_from(asked.waiting).unwrap_or(i64::MAX),
            target_size_float: float(asked.waiting),
        });
        answer(spec.map(|spec| GetMetricSpecResponse { metric_specs: vec![spec] }))
    }

    async fn get_metrics(&self, request: Request<GetMetricsRequest>) -> GrpcResult<GetMetricsResponse> {
        let GetMetricsRequest { scaled_object_ref, metric_name } = request.into_inner();
        let value = ScalerTarget::read(&scaled_object_ref.unwrap_or_default().scaler_metadata).and_then(|asked| {
            let level = asked.level(&self.0.engine.pool_levels().borrow())?;
            let waiting = asked.waiting(&level);
            let value = i64::try_from(waiting).unwrap_or(i64::MAX);
            Ok(MetricValue { metric_name, metric_value: value, metric_value_float: float(waiting) })
        });
        answer(value.map(|value| GetMetricsResponse { metric_values: vec![value] }))
    }
}

#[expect(clippy::cast_precision_loss, reason = "KEDA wants both")]
fn float(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<ScalerTarget, ApiError> {
        ScalerTarget::read(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    fn fields(pairs: &[(&str, &str)]) -> Vec<String> {
        let Err(ApiError::Invalid(errors)) = read(pairs) else { panic!("must be refused: {pairs:?}") };
        errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn what_is_asked_for_is_read_and_mistakes_are_named() {
        let asked = read(&[("pool", "cpu"), ("scalerAddress", "gate:8080")]).expect("good");
        assert_eq!(asked, ScalerTarget { pool: "cpu".into(), waiting: 100, rest: 0, least: None });
        assert_eq!(asked.metric(), "lockgate-cpu-waiting");
        assert_eq!(read(&[("pool", "cpu"), ("waitingPerReplica", "7")]).expect("good").waiting, 7);
        assert_eq!(fields(&[]), ["pool"]);
        assert_eq!(
            fields(&[("waitingPerReplica", "0"), ("activationWaiting", "x")]),
            ["waitingPerReplica", "activationWaiting", "pool"]
        );
        assert_eq!(fields(&[("pool", "cpu"), ("waitingperreplica", "7")]), ["waitingperreplica"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_could_look_at_lately_is_not_told() {
        let asked = ScalerTarget { pool: "cpu".into(), waiting: 1, rest: 0, least: None };
        let level = PoolLevel { waiting: 7, ..PoolLevel::default() };
        let levels = PoolLevels::looked_at_now([(asked.pool.clone(), level)].into());
        assert_eq!(asked.level(&levels).expect("a moment ago").waiting, 7);
        assert!(matches!(asked.level(&PoolLevels::default()), Err(ApiError::Unavailable(_))), "never");
        tokio::time::advance(Duration::from_secs(11)).await;
        assert!(matches!(asked.level(&levels), Err(ApiError::Unavailable(_))));
    }

    #[test]
    fn only_jobs_that_are_urgent_enough_count() {
        let asked = read(&[("pool", "cpu"), ("priority", "high")]).expect("good");
        assert_eq!(asked.metric(), "lockgate-cpu-high-waiting");
        let level = PoolLevel { waiting: 60, waiting_by: [1, 2, 50, 7], ..PoolLevel::default() };
        assert_eq!((asked.waiting(&level), read(&[("pool", "cpu")]).expect("good").waiting(&level)), (3, 60));
        assert!(!asked.is_active(&PoolLevel { waiting: 7, waiting_by: [0, 0, 0, 7], ..level }));
        assert_eq!(fields(&[("pool", "cpu"), ("priority", "urgent")]), ["priority"]);
    }

    #[test]
    fn a_pool_is_awake_while_something_waits_or_runs() {
        let asked = ScalerTarget { pool: "cpu".into(), waiting: 1, rest: 2, least: None };
        let level = |waiting, busy| PoolLevel { waiting, busy, ..PoolLevel::default() };
        assert!(!asked.is_active(&level(2, 0)) && asked.is_active(&level(3, 0)) && asked.is_active(&level(0, 1)));
        assert!(asked.is_active(&PoolLevel { busy_elsewhere: 1, ..PoolLevel::default() }));
    }
}
