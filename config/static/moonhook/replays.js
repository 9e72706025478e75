// Follows many replays until all have ended.
const replays = document.getElementById("replays");
const REPLAYS_POLL_MS = 1000;

const showReplays = ({ ended, text, parts }) => {
    const bar = replays.querySelector("svg");
    bar.ariaValueNow = ended;
    for (const { kind, start, width } of parts) {
        const part = bar.querySelector(`.mh-progress-${kind}`);
        part.setAttribute("x", start);
        part.setAttribute("width", width);
    }
    const shown = document.getElementById("replays-text");
    if (shown.textContent !== text) shown.textContent = text;
    if (bar.ariaValueNow === bar.ariaValueMax) replays.querySelector("button")?.remove();
};

const followReplays = async () => {
    const bar = replays.querySelector("svg");
    while (bar.ariaValueNow !== bar.ariaValueMax) {
        await new Promise((resolve) => setTimeout(resolve, REPLAYS_POLL_MS));
        if (document.hidden) continue;
        const answer = await fetch(replays.dataset.address, { redirect: "error" }).catch(() => null);
        if (answer?.ok) showReplays(await answer.json());
    }
};

if (replays) followReplays();
