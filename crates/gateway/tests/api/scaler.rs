//! What KEDA asks and is told.

use std::collections::HashMap;

use lockgate_proto::keda::external_scaler_client::ExternalScalerClient;
use lockgate_proto::keda::{GetMetricsRequest, ScaledObjectRef};
use lockgate_proto::v1;
use tokio::time::Instant;
use tonic::Code;
use tonic::transport::Channel;

use crate::support::{PATIENCE, ScriptedWorker, Server, echo, hello, succeeded};

async fn keda(server: &Server) -> ExternalScalerClient<Channel> {
    ExternalScalerClient::new(server.channel().await)
}

fn asks(pairs: &[(&str, &str)]) -> ScaledObjectRef {
    let scaler_metadata: HashMap<_, _> =
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ScaledObjectRef { name: "workers".to_owned(), namespace: "jobs".to_owned(), scaler_metadata }
}

async fn waiting(keda: &mut ExternalScalerClient<Channel>) -> Option<i64> {
    let request = GetMetricsRequest {
        scaled_object_ref: Some(asks(&[("pool", "default")])),
        metric_name: "lockgate-default-waiting".to_owned(),
    };
    let answer = keda.get_metrics(request).await.ok()?.into_inner();
    let [value] = &answer.metric_values[..] else { panic!("{answer:?}") };
    assert_eq!(value.metric_name, "lockgate-default-waiting");
    Some(value.metric_value)
}

/// The engine looks every two seconds.
async fn wait_for_waiting(keda: &mut ExternalScalerClient<Channel>, jobs: i64) {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = tokio::time::interval(std::time::Duration::from_millis(50));
    while waiting(keda).await != Some(jobs) {
        assert!(Instant::now() < deadline, "never {jobs}");
        pause.tick().await;
    }
}

#[tokio::test]
async fn a_pool_is_active_while_jobs_wait_or_run_and_says_how_many() {
    let server = Server::start().await;
    let mut keda = keda(&server).await;
    wait_for_waiting(&mut keda, 0).await;
    let pool = || asks(&[("pool", "default"), ("waitingPerReplica", "2")]);
    assert!(!keda.is_active(pool()).await.expect("told").into_inner().result);
    let mut awake = keda.stream_is_active(pool()).await.expect("told").into_inner();
    assert!(!awake.message().await.expect("unbroken").expect("at once").result);

    for _ in 0..3 {
        server.submit(echo()).await;
    }
    wait_for_waiting(&mut keda, 3).await;
    assert!(awake.message().await.expect("unbroken").expect("when it changes").result);
    assert!(keda.is_active(pool()).await.expect("told").into_inner().result);
    let rest = asks(&[("pool", "default"), ("activationWaiting", "5")]);
    assert!(!keda.is_active(rest).await.expect("told").into_inner().result);
    let spec = keda.get_metric_spec(pool()).await.expect("told").into_inner().metric_specs;
    assert_eq!((spec[0].metric_name.as_str(), spec[0].target_size), ("lockgate-default-waiting", 2));

    // One at a time: of assignments that come together only the first is taken.
    let mut worker = ScriptedWorker::attach(&server, v1::Hello { slots: 1, ..hello("s-1") }).await;
    for _ in 0..3 {
        worker.run_one(Some(succeeded("1"))).await;
    }
    wait_for_waiting(&mut keda, 0).await;
    assert!(!awake.message().await.expect("unbroken").expect("when it changes").result);
}

#[tokio::test]
async fn a_question_that_makes_no_sense_is_refused_by_name() {
    let server = Server::start().await;
    let mut keda = keda(&server).await;
    wait_for_waiting(&mut keda, 0).await;
    for (pairs, word) in [
        (&[][..], "pool"),
        (&[("pool", "nowhere")], "nowhere"),
        (&[("pool", "default"), ("waitingPerReplica", "none")], "waitingPerReplica"),
    ] {
        let refused = keda.is_active(asks(pairs)).await.expect_err("refused");
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
        assert!(refused.message().contains(word), "{refused:?}");
    }
}
