// Workflows: the definitions, and their runs, newest first.

import { get } from "../api.js";
import { ago, badge, bar, card, h, row, runLink, table, took } from "../dom.js";

export default function runs() {
  const dagRow = (dag) => row([h("b", {}, dag.name), dag.version, dag.nodes, ago(dag.stored_at), dag.description ?? ""]);
  const runRow = (run) => row([
    runLink(run.run_id), badge(run.state), run.dag_version ? `${run.dag} ${run.dag_version}` : run.dag, bar(run.done, run.total), `${run.percent}%`,
    ago(run.began_at), took(run.began_at, run.ended_at), h("span", { class: "clip" }, run.error?.message ?? ""),
  ], `#/runs/${encodeURIComponent(run.run_id)}`);

  async function body() {
    const [{ runs }, { dags }] = await Promise.all([get("/v1/runs"), get("/v1/dags")]);
    return [
      card("Runs", table(["run", "state", "DAG", "", "done", "began", "took", "error"], runs.map(runRow),
        "Nothing ran yet. Start one with: lockgate dag start NAME")),
      card("Definitions", table(["DAG", "version", "nodes", "stored", ""], dags.map(dagRow),
        "There are none yet. Store one with: lockgate dag apply FILE")),
    ];
  }

  return { head: h("div", { class: "head" }, h("h1", {}, "Workflows")), body };
}
