// Signs a webhook with a library of its sender and sends it: URL, sender, secret and body from the
// environment. Prints the answer as JSON.
import { sign } from "@octokit/webhooks-methods";
import { Webhook } from "standardwebhooks";

const { HOOK_URL, SENDER, SECRET, BODY, SENT_BODY, EVENT_ID } = process.env;

const signers = {
    github: async () => ({ "X-Hub-Signature-256": await sign(SECRET, BODY) }),
    "standard-webhooks": async () => {
        const now = new Date();
        return {
            "webhook-id": EVENT_ID,
            "webhook-timestamp": String(Math.floor(now / 1000)),
            "webhook-signature": new Webhook(SECRET).sign(EVENT_ID, now, BODY),
        };
    },
};

const answer = await fetch(HOOK_URL, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(await signers[SENDER]()) },
    body: SENT_BODY ?? BODY,
});
console.log(
    JSON.stringify({
        status: answer.status,
        headers: Object.fromEntries(answer.headers),
        body: await answer.text(),
    }),
);
