// The first minutes of a user, with a client that was generated from /openapi.json.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const client = createClient<paths>({ baseUrl: process.argv[2] ?? "" });

function given<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const { job_id: id } = given(await client.POST("/v1/jobs", { body: { topic: "job.echo", payload: { hello: "world" } } }));
let job = given(await client.GET("/v1/jobs/{id}", { params: { path: { id } } }));
for (let tries = 0; job.state !== "SUCCEEDED" && tries < 100; tries++) {
  await new Promise((resolve) => setTimeout(resolve, 50));
  job = given(await client.GET("/v1/jobs/{id}", { params: { path: { id } } }));
}
if (JSON.stringify(job.result) !== '{"hello":"world"}') throw new Error(JSON.stringify(job));
const waiting = given(await client.POST("/v1/jobs", { body: { topic: "job.echo", requires: ["gpu"] } }));
const why = given(await client.GET("/v1/jobs/{id}/why", { params: { path: { id: waiting.job_id } } }));
if (why.reason !== "no_workers") throw new Error(JSON.stringify(why));
console.log("typescript: submitted, read, explained");
