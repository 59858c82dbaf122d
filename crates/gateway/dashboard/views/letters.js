// What ended badly, and its way back.

import { get, post } from "../api.js";
import { ago, badge, button, count, h, jobLink, row, table, toast } from "../dom.js";

export default function letters({ refresh }) {
  const topic = h("input", { placeholder: "topic", "aria-label": "Topic", onchange: refresh });
  const reason = h("input", { placeholder: "reason", "aria-label": "Reason", onchange: refresh });
  const filter = () =>
    Object.fromEntries(Object.entries({ topic, reason }).map(([name, field]) => [name, field.value.trim()]).filter(([, text]) => text));

  async function replayAll() {
    const wanted = filter();
    const { matched } = await post("/v1/dead-letters:replay", { ...wanted, dry_run: true });
    if (matched === 0) return toast("There is nothing to replay.");
    if (!confirm(`Replay ${count(matched, "job")}?`)) return;
    const { replayed } = await post("/v1/dead-letters:replay", wanted);
    toast(`${count(replayed, "job")} live again`);
    refresh();
  }

  const letterRow = (letter) => row([
    jobLink(letter.job_id), badge(letter.state), letter.topic, letter.priority, letter.attempts, ago(letter.at), letter.reason,
    h("span", { class: "clip" }, letter.message ?? ""),
    button("Replay", async () => {
      await post(`/v1/dead-letters/${encodeURIComponent(letter.job_id)}/replay`);
      toast(`${letter.job_id} lives again`);
      refresh();
    }),
  ], `#/jobs/${encodeURIComponent(letter.job_id)}`);

  async function body() {
    const { dead_letters } = await get(`/v1/dead-letters?${new URLSearchParams(filter())}`);
    return table(["job", "state", "topic", "priority", "attempts", "died", "reason", "message", ""],
      dead_letters.map(letterRow), "Nothing ended badly.");
  }

  const filters = h("span", { class: "filters" }, topic, reason);
  return { head: h("div", { class: "head" }, h("h1", {}, "Dead letters"), filters, button("Replay all of these", replayAll)), body };
}
