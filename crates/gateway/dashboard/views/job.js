// One job: what it is, why it waits, what happened, and what a person can do about it.

import { follow, get, post } from "../api.js";
import { ago, badge, button, card, code, facts, h, row, runLink, table, toast, took } from "../dom.js";
import { consent, hiddenPayload } from "./consent.js";

const TERMINAL = ["SUCCEEDED", "FAILED", "TIMEOUT", "CANCELLED", "DENIED", "OUTPUT_QUARANTINED"];
const DEAD = ["FAILED", "TIMEOUT", "DENIED", "OUTPUT_QUARANTINED"];

export default function job({ id, signal, refresh }) {
  const path = `/v1/jobs/${encodeURIComponent(id)}`;
  const happened = [];
  let looking = null;
  // Many events in a row are one look.
  follow(`${path}/events`, signal, (event) => {
    happened.push(event);
    clearTimeout(looking);
    looking = setTimeout(refresh, 50);
  });

  const ticked = new Set();
  const told = async (text, sent) => { await sent; toast(text); refresh(); };

  function actions(job) {
    const asked = { request_hash: job.request_hash, rule_hash: job.approval?.rule_hash };
    return [
      !TERMINAL.includes(job.state) && button("Cancel", () => told("Cancelled", post(`${path}/cancel`)), "danger"),
      job.state === "APPROVAL_REQUIRED" && consent(job, ticked, (more) => told("Approved", post(`${path}/approve`, { ...asked, ...more }))),
      job.state === "APPROVAL_REQUIRED" && button("Reject", () => told("Rejected", post(`${path}/reject`, asked)), "danger"),
      job.state === "OUTPUT_QUARANTINED" && button("Release the result", () => told("Released", post(`${path}/release`))),
      DEAD.includes(job.state) && button("Replay", () => told("It lives again", post(`/v1/dead-letters/${encodeURIComponent(id)}/replay`))),
    ].flat().filter(Boolean);
  }

  const attemptRow = (attempt) => row([
    attempt.no, attempt.worker_id ?? "–", attempt.outcome ?? (attempt.worker_id ? "under way" : "waits"), ago(attempt.started_at ?? attempt.dispatched_at),
    took(attempt.started_at ?? attempt.dispatched_at, attempt.ended_at), attempt.reason ?? "", attempt.message ?? "",
  ]);
  const eventRow = (event) => row([
    event.n, ago(event.at), event.kind.replaceAll("_", " "), event.attempt ?? "",
    [event.worker_id, event.actor, event.reason, event.message].filter(Boolean).join(" · "),
  ]);
  const consideredRow = (worker) => row([worker.worker_id, worker.verdict, worker.free_slots]);

  const waiting = (why) => card("Why it waits",
    h("p", { class: "lead" }, why.summary), why.next_step && h("p", {}, why.next_step),
    (why.pools ?? []).map((pool) => [h("h3", {}, `pool ${pool.pool}: ${pool.reason}`),
      table(["worker", "verdict", "free slots"], pool.workers.map(consideredRow), "It has no workers.")]));

  const checked = (output) => card("Check of the result",
    facts([["decision", output.decision], ["rule", output.rule], ["reason", output.reason], ["stage", output.stage]]),
    output.findings?.length > 0 && table(["kind", "rule", "offset", "length"],
      output.findings.map((found) => row([found.kind, found.rule, found.offset, found.length])), ""));

  async function body() {
    const job = await get(path);
    const over = TERMINAL.includes(job.state);
    const [why, logs] = await Promise.all([over ? null : get(`${path}/why`), get(`${path}/logs`).catch(() => ({ lines: [] }))]);
    const run = /^run-[0-9a-f-]+/.exec(job.job_id)?.[0];
    return [
      h("div", { class: "head" }, badge(job.state), h("span", { class: "actions" }, actions(job))),
      why && waiting(why),
      card("Facts", facts([
        ["topic", job.topic], ["tenant", `${job.tenant} (by ${job.actor})`], ["priority", job.priority], ["run", run && runLink(run)],
        ["failures", `${job.failures} of ${job.max_attempts}`], ["life", job.life > 1 ? job.life : null],
        ["labels", Object.entries(job.labels ?? {}).map(([name, value]) => `${name}=${value}`).join(" ")],
        ["submitted", ago(job.submitted_at)], ["ended", job.ended_at && ago(job.ended_at)], ["deadline", job.deadline_at && ago(job.deadline_at)],
        ["verdict", job.verdict && `${job.verdict.decision} by ${job.verdict.rule}: ${job.verdict.reason}`],
        ["last error", job.last_error && `${job.last_error.reason}: ${job.last_error.message}`], ["trace", job.trace_id],
      ])),
      job.output && checked(job.output),
      h("div", { class: "pair" }, card("Payload", job.payload_hidden ? hiddenPayload() : code(job.payload ?? null)), job.result !== undefined && card("Result", code(job.result))),
      card("Attempts", table(["no", "worker", "outcome", "began", "took", "reason", "message"], (job.attempts ?? []).map(attemptRow), "None yet.")),
      logs.lines.length > 0 && card("Log", code(logs.lines.map((line) => line.text ?? line.message).join("\n"))),
      card("What happened", table(["", "when", "what", "attempt", ""], happened.map(eventRow), "Nothing yet.")),
    ].filter(Boolean);
  }

  return { head: h("div", { class: "head" }, h("h1", { class: "mono" }, id)), body, every: 5000 };
}
