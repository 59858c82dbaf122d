#!/usr/bin/env node
// Runs the binary of the package that npm chose for this platform, as if it had been called itself.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const platform = `lockgate-server-${process.platform}-${process.arch}`;

function binary() {
  try {
    return require.resolve(`${platform}/bin/lockgate`);
  } catch {
    console.error(
      `error: the package ${platform} is not installed\n` +
        "hint: install without --omit=optional; if there is no such package, build Lockgate from source on this platform",
    );
    process.exit(1);
  }
}

const child = spawn(binary(), process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`error: ${platform} does not start: ${error.message}`);
  process.exit(1);
});
// A server that is told to end drains its jobs first, so this process waits for it instead of ending.
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
