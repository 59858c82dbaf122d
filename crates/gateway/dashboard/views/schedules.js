// What starts by the clock.

import { get, post } from "../api.js";
import { ago, badge, button, h, row, table, toast } from "../dom.js";

export default function schedules({ refresh }) {
  const told = async (text, sent) => { await sent; toast(text); refresh(); };

  const scheduleRow = (schedule) => {
    const path = `/v1/schedules/${encodeURIComponent(schedule.name)}`;
    return row([
      h("b", {}, schedule.name), badge(schedule.paused ? "paused" : "open"), h("span", { class: "mono" }, schedule.rhythm), schedule.time_zone,
      schedule.topic ?? `DAG ${schedule.dag}`, ago(schedule.upcoming?.[0]), schedule.misfire, schedule.overlap,
      h("span", { class: "clip" }, schedule.description ?? ""),
      h("span", { class: "actions" }, button("Start now", () => told("Started", post(`${path}/trigger`))),
        schedule.paused ? button("Resume", () => told("Resumed", post(`${path}/resume`))) : button("Pause", () => told("Paused", post(`${path}/pause`)))),
    ]);
  };

  async function body() {
    const { schedules } = await get("/v1/schedules");
    return table(["schedule", "state", "when", "zone", "starts", "next", "misfire", "overlap", "", ""], schedules.map(scheduleRow),
      "Nothing starts by the clock yet. Try: lockgate schedule apply examples/schedules.yaml");
  }

  return { head: h("div", { class: "head" }, h("h1", {}, "Schedules")), body };
}
