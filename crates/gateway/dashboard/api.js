// How the page speaks to the server: the same REST API that everybody has. The credential stays in this tab.

const KEY = "lockgate.credential";
const TENANT = "lockgate.tenant";

export const credential = {
  get: () => sessionStorage.getItem(KEY),
  set: (text) => (text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY)),
};

export const tenant = {
  get: () => sessionStorage.getItem(TENANT),
  set: (name) => (name ? sessionStorage.setItem(TENANT, name) : sessionStorage.removeItem(TENANT)),
};

export class Refused extends Error {
  constructor(status, problem) {
    const fields = (problem.errors ?? []).map((error) => `${error.field}: ${error.message}`).join("; ");
    super(fields || problem.detail || problem.title || `the server answered ${status}`);
    this.status = status;
    this.code = problem.code;
  }
}

function headers(more = {}) {
  const all = new Headers(more);
  if (credential.get()) all.set("authorization", `Bearer ${credential.get()}`);
  if (tenant.get()) all.set("x-lockgate-tenant", tenant.get());
  return all;
}

async function call(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: headers(options.headers) });
  if (answer.ok) return answer;
  throw new Refused(answer.status, await answer.json().catch(() => ({})));
}

export const get = async (path) => (await call(path)).json();

export async function post(path, body = {}) {
  const sent = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return (await call(path, sent)).json().catch(() => ({}));
}

// A picture behind a credential, as an address that an image can show.
export const picture = async (path) => URL.createObjectURL(await (await call(path)).blob());

// Follows a stream of events. A cut connection is taken up where it was; a signal ends it.
export async function follow(path, signal, heard) {
  let last = null;
  while (!signal.aborted) {
    try {
      const answer = await call(path, { signal, headers: last ? { "last-event-id": last } : {} });
      if (answer.status === 204) return;
      for await (const event of events(answer.body)) {
        last = event.id ?? last;
        heard(JSON.parse(event.data));
      }
      return;
    } catch (error) {
      if (signal.aborted || error instanceof Refused) return;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const lines = part.split("\n");
      const field = (name) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trim());
      if (field("data").length > 0) yield { id: field("id")[0], data: field("data").join("\n") };
    }
  }
}
