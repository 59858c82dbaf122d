//! The worker of the README: one topic, one handler.

use lockgate_worker::{JobError, Worker};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Worker::connect("http://127.0.0.1:8080")
        .handle("greet", |ctx, payload| async move {
            let name: String = payload.json()?;
            ctx.log(format!("greeting {name}"));
            Ok::<_, JobError>(format!("hello {name}"))
        })
        .run()
        .await?;
    Ok(())
}
