// One run: its graph as it goes, and its nodes.

import { follow, get, picture, post } from "../api.js";
import { badge, bar, button, card, code, facts, ago, h, jobLink, row, table, toast, took } from "../dom.js";

const OVER = ["SUCCEEDED", "SUCCEEDED_WITH_FAILURES", "FAILED", "CANCELED", "COMPENSATED"];

export default function run({ id, signal, refresh }) {
  const path = `/v1/runs/${encodeURIComponent(id)}`;
  const graph = h("img", { class: "graph", alt: "The nodes of the run and how they depend on each other" });
  let drawn = null;
  let looking = null;
  // An event has only what changed; many in a row are one look.
  follow(`${path}/events`, signal, () => {
    clearTimeout(looking);
    looking = setTimeout(refresh, 50);
  });

  async function draw(version) {
    if (drawn === version) return;
    drawn = version;
    const before = graph.src;
    graph.src = await picture(`${path}/graph`);
    if (before) URL.revokeObjectURL(before);
  }

  const told = async (text, sent) => { await sent; toast(text); };
  const actions = (run) => [
    run.state === "RUNNING" && button("Pause", () => told("Paused", post(`${path}/pause`))),
    run.state === "PAUSED" && button("Resume", () => told("Resumed", post(`${path}/resume`)), "primary"),
    !OVER.includes(run.state) && button("Cancel", () => told("Cancelled", post(`${path}/cancel`)), "danger"),
    !OVER.includes(run.state) && button("Cancel and undo", () => told("It is being undone", post(`${path}/cancel`, { compensate: true })), "danger"),
  ].filter(Boolean);

  const nodeRow = (node) => row([
    h("b", {}, node.name), badge(node.state), node.job_id ? jobLink(node.job_id) : "–", took(node.began_at, node.ended_at),
    node.undo ? h("span", {}, "undo ", badge(node.undo.state)) : "", h("span", { class: "clip" }, node.error?.message ?? ""),
  ]);

  async function body() {
    const run = await get(path);
    await draw(run.version).catch(() => {});
    return [
      h("div", { class: "head" }, badge(run.state), bar(run.done, run.total), h("span", {}, `${run.done} of ${run.total}`),
        h("span", { class: "actions" }, actions(run))),
      run.error && h("p", { class: "notice bad" }, run.error.message),
      card("Graph", h("div", { class: "scroll" }, graph)),
      card("Nodes", table(["node", "state", "job", "took", "", "error"], run.nodes.map(nodeRow), "None has begun.")),
      card("Facts", facts([["DAG", run.dag_version ? `${run.dag} version ${run.dag_version}` : run.dag], ["by", run.actor], ["began", ago(run.began_at)],
        ["ended", run.ended_at && ago(run.ended_at)], ["took", took(run.began_at, run.ended_at)]])),
      h("div", { class: "pair" }, card("Parameters", code(run.params ?? {})), run.output !== undefined && card("Output", code(run.output))),
    ].filter(Boolean);
  }

  return { head: h("div", { class: "head" }, h("h1", { class: "mono" }, id)), body, every: 5000 };
}
