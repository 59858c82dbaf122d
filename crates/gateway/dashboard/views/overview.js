// Everything at a glance: how much there is, how fast it goes, and what asks for a person.

import { get } from "../api.js";
import { ago, badge, bar, card, count, h, link, row, span, spark, table } from "../dom.js";
import { newJob } from "./submit.js";
import { overviewOf } from "./tenant.js";

const SAMPLES = 60;
const ROWS = 8;

export default function overview({ refresh }) {
  const rates = { came: [], ended: [] };
  let before = null;
  let me = null;

  // Rates follow from two looks; old jobs are forgotten now and then, and that is no negative rate.
  function note(queues) {
    const now = { at: performance.now(), known: queues.live + queues.ended, ended: queues.ended };
    if (before) {
      const seconds = Math.max(0.001, (now.at - before.at) / 1000);
      rates.came.push(Math.max(0, now.known - before.known) / seconds);
      rates.ended.push(Math.max(0, now.ended - before.ended) / seconds);
      for (const kept of Object.values(rates)) kept.splice(0, kept.length - SAMPLES);
    }
    before = now;
  }

  const figure = (number, what, href) =>
    h("a", { class: "figure", href }, h("b", {}, number.toLocaleString("en")), h("span", {}, what));
  const rate = (values, what) =>
    h("div", { class: "figure" }, h("b", {}, `${Math.round(values.at(-1) ?? 0).toLocaleString("en")}/s`), h("span", {}, what), spark(values));

  const poolRow = (pool) => row([
    pool.name, badge(pool.state), pool.workers, bar(pool.busy, pool.slots), `${pool.busy} of ${pool.slots}`, pool.waiting,
  ]);
  const queueRow = (queue) => row([
    queue.pool ?? "–", queue.priority, queue.tenant, h("span", { class: "mono" }, queue.shape), queue.waiting, ago(queue.oldest_at),
  ]);
  const findingRow = (finding) =>
    h("p", { class: `notice ${finding.serious ? "bad" : "asks"}` }, h("b", {}, finding.code), ` ${finding.detail} `, h("i", {}, finding.advice));

  async function body() {
    me ??= await get("/v1/whoami");
    return me.grant?.tenant ? overviewOf(me.grant.tenant) : ofAll();
  }

  async function ofAll() {
    const [queues, pools, health, approvals] = await Promise.all(
      ["/v1/queues", "/v1/pools", "/monitor/health", "/v1/approvals"].map(get));
    note(queues);
    const dead = Object.values(queues.dead_letters).reduce((sum, number) => sum + number, 0);
    const waiting = queues.queues.filter((queue) => queue.waiting > 0).sort((a, b) => b.waiting - a.waiting);
    const asked = approvals.approvals.length;
    return [
      h("div", { class: "figures" },
        figure(queues.live, "live", "#/jobs"), figure(queues.held, "at work", "#/jobs?state=RUNNING"),
        figure(queues.ended, "ended", "#/jobs"), figure(dead, "dead letters", "#/dead-letters"),
        rate(rates.came, "came in"), rate(rates.ended, "ended")),
      asked > 0 && h("p", { class: "notice asks" }, link("#/approvals", count(asked, "job")), " cannot go on before somebody agrees."),
      health.findings.map(findingRow),
      card("Pools", table(["pool", "state", "workers", "", "busy", "waiting"], pools.pools.map(poolRow), "There are no pools.")),
      card("What waits", table(["pool", "priority", "tenant", "shape", "waiting", "oldest"],
        waiting.slice(0, ROWS).map(queueRow), "Nothing waits.")),
      h("p", { class: "quiet" }, badge(health.status), ` up ${span(health.up_for_ms / 1000)}, ${health.roles.join(", ")}. `,
        health.components.map((part) => `${part.name}: ${part.detail ?? part.state}`).join(" · ")),
    ].flat().filter(Boolean);
  }

  return { head: h("div", { class: "head" }, h("h1", {}, "Overview"), newJob(refresh)), body };
}
