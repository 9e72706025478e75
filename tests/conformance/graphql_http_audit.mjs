/**
 * Audits one endpoint for conformance with "GraphQL over HTTP", by the audits of graphql-http.
 *
 *   GRAPHQL_URL    the endpoint
 *   GRAPHQL_TOKEN  optional: sent as "Authorization: Bearer …"
 *
 * Prints what failed. Exits with 1 when a MUST or a SHOULD failed. What the specification leaves
 * to the server (MAY) is printed too, but fails nothing: GET is not served here.
 */
import { auditServer } from "graphql-http";

const { GRAPHQL_URL: url, GRAPHQL_TOKEN: token } = process.env;
if (!url) {
  console.error("GRAPHQL_URL is not set.");
  process.exit(2);
}

async function fetchAsSession(address, options = {}) {
  const headers = new Headers(options.headers);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  return fetch(address, { ...options, headers });
}

const results = await auditServer({ url, fetchFn: fetchAsSession });
const failed = results.filter(({ status }) => status !== "ok");
const binding = failed.filter(({ status }) => status !== "notice");

for (const { id, name, reason, response } of failed) {
  console.log(`${id} ${name}: ${reason} (it is ${response.status})`);
}
console.log(
  `${url}: ${results.length - failed.length} of ${results.length} audits passed, ` +
    `${binding.length} of MUST and SHOULD failed.`,
);
process.exit(binding.length ? 1 : 0);
