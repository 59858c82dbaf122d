// Agreeing to a job: in one step, or knowing that the credential does not show what is agreed to.

import { button, h } from "../dom.js";

const HIDDEN = "This credential does not show the payload of this job.";

export const hiddenPayload = () => h("p", { class: "notice asks" }, HIDDEN);

// What stands before the button, and the button. `ticked` remembers the tick by the hash of the request: cards are made anew
// every few seconds, and the tick for one request is none for another.
export function consent(asked, ticked, approve) {
  if (!asked.payload_hidden) return [button("Approve", () => approve({}), "primary")];
  const press = button("Approve", () => approve({ acknowledge_hidden: true }), "primary");
  const tick = h("input", { type: "checkbox", checked: ticked.has(asked.request_hash), onchange: () => {
    if (tick.checked) ticked.add(asked.request_hash);
    else ticked.delete(asked.request_hash);
    press.disabled = !tick.checked;
  } });
  press.disabled = !tick.checked;
  return [h("label", { class: "tick", title: HIDDEN }, tick, " approve without seeing the payload"), press];
}
