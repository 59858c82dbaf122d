//! Compiles the public contract without a protoc on the machine.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

#[expect(clippy::disallowed_methods, reason = "cargo tells build scripts where to write by environment")]
fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let files =
        ["access", "schedules", "verdict", "job", "dags", "kernel", "governance", "monitor", "pools", "scheduler", "worker"]
            .map(|name| root.join(format!("lockgate/v1/{name}.proto")));
    let files = files.into_iter().chain([root.join("keda/externalscaler.proto")]);
    let descriptors = protox::compile(files, [&root])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?).join("descriptors.bin");
    std::fs::write(out, descriptors.encode_to_vec())?;
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}
