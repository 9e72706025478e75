// Waits on a hook's page for the sender's next call, and says what came of it.
const newestCall = document.getElementById("newest-call");
const POLL_MS = 3000;
// After a minute, less often: each answer may try many explanations.
const LATER_POLL_MS = 15000;
const LATER_AFTER_MS = 60 * 1000;
const GIVE_UP_AFTER_MS = 10 * 60 * 1000;

const show = (outcome) => {
    if (newestCall.dataset.text === outcome.text) return;
    newestCall.dataset.text = outcome.text;
    newestCall.className = `mh-text mh-newest mh-newest-${outcome.state}`;
    newestCall.textContent = outcome.text;
    if (!outcome.address) return;
    const link = document.createElement("a");
    link.className = "text-link";
    link.href = outcome.address;
    link.textContent = "Show it";
    newestCall.append(" ", link);
};

const watch = async () => {
    const began = Date.now();
    while (Date.now() < began + GIVE_UP_AFTER_MS) {
        const pause = Date.now() < began + LATER_AFTER_MS ? POLL_MS : LATER_POLL_MS;
        await new Promise((resolve) => setTimeout(resolve, pause));
        if (document.hidden) continue;
        const answer = await fetch(newestCall.dataset.address, { redirect: "error" }).catch(() => null);
        if (answer?.ok) show(await answer.json());
    }
};

if (newestCall) watch();
