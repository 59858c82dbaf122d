// A job by hand.

import { post } from "../api.js";
import { button, h, toast } from "../dom.js";

const EXAMPLES = ["job.echo", "job.noop", "job.flaky", "job.sleep", "job.always_fail"];
const PRIORITIES = ["critical", "high", "default", "low"];

export function newJob(done) {
  const topic = h("input", { name: "topic", value: "job.echo", required: true, list: "topics" });
  const payload = h("textarea", { name: "payload", rows: 4, spellcheck: "false" }, '{"hello": "world"}');
  const priority = h("select", { name: "priority" }, PRIORITIES.map((name) => h("option", { selected: name === "default" }, name)));
  const dialog = h("dialog", {}, h("form", { method: "dialog" },
    h("h2", {}, "New job"),
    h("label", {}, "Topic", topic, h("datalist", { id: "topics" }, EXAMPLES.map((name) => h("option", { value: name })))),
    h("label", {}, "Payload, as JSON", payload),
    h("label", {}, "Priority", priority),
    h("div", { class: "actions" }, button("Submit", submit, "primary"), button("Never mind", () => dialog.close()))));

  async function submit() {
    const job = { topic: topic.value.trim(), priority: priority.value, payload: payload.value.trim() ? JSON.parse(payload.value) : null };
    const taken = await post("/v1/jobs", job);
    dialog.close();
    toast(`${taken.job_id} is ${taken.state} and ${taken.ack}`);
    location.hash = `#/jobs/${encodeURIComponent(taken.job_id)}`;
    done?.();
  }

  return h("span", {}, button("New job", () => dialog.showModal(), "primary"), dialog);
}
