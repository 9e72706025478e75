// Waits on a hook's page for the next call, and shows the newest of each kind.
const newestCall = document.getElementById("newest-call");
const POLL_MS = 3000;
// After a minute, less often: each answer may try many explanations.
const LATER_POLL_MS = 15000;
const LATER_AFTER_MS = 60 * 1000;
const GIVE_UP_AFTER_MS = 10 * 60 * 1000;

const line = (call) => {
    const text = document.createElement("p");
    text.className = `mh-text mh-newest mh-newest-${call.state}`;
    text.textContent = call.text;
    text.title = call.ago;
    if (!call.address) return text;
    const link = document.createElement("a");
    link.className = "text-link";
    link.href = call.address;
    link.textContent = call.link;
    text.append(" ", link);
    return text;
};

const show = ({ calls }) => {
    const said = calls.map((call) => call.text).join("\n");
    if (newestCall.dataset.text === said) return;
    newestCall.dataset.text = said;
    newestCall.replaceChildren(...calls.map(line));
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
