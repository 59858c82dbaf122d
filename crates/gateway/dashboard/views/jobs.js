// Jobs, newest first.

import { get } from "../api.js";
import { ago, badge, button, h, jobLink, row, table } from "../dom.js";
import { newJob } from "./submit.js";

const STATES = [
  "PENDING", "APPROVAL_REQUIRED", "SCHEDULED", "DISPATCHED", "RUNNING",
  "SUCCEEDED", "FAILED", "TIMEOUT", "CANCELLED", "DENIED", "OUTPUT_QUARANTINED",
];
const PAGE = 50;

export default function jobs({ refresh }) {
  const asked = new URLSearchParams(location.hash.split("?")[1] ?? "");
  const state = h("select", { "aria-label": "State", onchange: () => turn(null) },
    h("option", { value: "" }, "every state"), STATES.map((name) => h("option", { selected: asked.get("state") === name }, name)));
  const topic = h("input", { placeholder: "topic", "aria-label": "Topic", value: asked.get("topic") ?? "", onchange: () => turn(null) });
  const label = h("input", { placeholder: "label=value", "aria-label": "Label", value: asked.get("label") ?? "", onchange: () => turn(null) });
  const job = h("input", { placeholder: "job id", "aria-label": "Job id", class: "mono", onchange: () => {
    if (job.value.trim()) location.hash = `#/jobs/${encodeURIComponent(job.value.trim())}`;
  } });
  let cursor = null;
  let next = null;

  function turn(to) {
    cursor = to;
    refresh();
  }

  const jobRow = (job) => row([
    jobLink(job.job_id), badge(job.state), job.topic, job.priority, job.attempt, ago(job.submitted_at), ago(job.ended_at),
    h("span", { class: "clip" }, job.last_error?.message ?? ""),
  ], `#/jobs/${encodeURIComponent(job.job_id)}`);

  async function body() {
    const query = new URLSearchParams({ limit: PAGE });
    for (const [name, field] of Object.entries({ state, topic, label })) if (field.value.trim()) query.set(name, field.value.trim());
    if (cursor) query.set("cursor", cursor);
    const page = await get(`/v1/jobs?${query}`);
    next = page.next_cursor;
    return [
      table(["job", "state", "topic", "priority", "attempt", "submitted", "ended", "last error"], page.jobs.map(jobRow), "No job is like that."),
      h("div", { class: "actions" }, cursor && button("Newest", () => turn(null)), next && button("Older", () => turn(next))),
    ];
  }

  const filters = h("span", { class: "filters" }, state, topic, label, job);
  return { head: h("div", { class: "head" }, h("h1", {}, "Jobs"), filters, newJob()), body };
}
