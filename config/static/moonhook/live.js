// Keeps parts of a page current: fetches the page, and replaces the parts whose data-live differs.
// A part without it is final. While nothing changes, asks less and less often; never when hidden.
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 15000;
const SLOWDOWN = 1.3;
const GIVE_UP_AFTER_MS = 10 * 60 * 1000;

const liveParts = () => document.querySelectorAll("[data-live][id]");

const shown = () =>
    new Promise((resolve) => {
        if (!document.hidden) resolve();
        else document.addEventListener("visibilitychange", resolve, { once: true });
    });

// The element stays, so that screen readers announce what is new in it.
const replace = (part, fresh) => {
    for (const { name } of [...part.attributes]) {
        if (!fresh.hasAttribute(name)) part.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) part.setAttribute(name, value);
    part.innerHTML = fresh.innerHTML;
    // The script of lists knows the check boxes that it found.
    const boxes = part.querySelectorAll("tr input.action-select");
    if (boxes.length) window.Actions?.(boxes, { parent: part.closest(".result-list-wrapper") });
};

// Rows that somebody has selected stay as they are.
const isInUse = (part) => part.querySelector("input.action-select:checked") !== null;

const update = (page) => {
    let isChanged = false;
    for (const part of liveParts()) {
        const fresh = page.getElementById(part.id);
        if (!fresh || fresh.dataset.live === part.dataset.live || isInUse(part)) continue;
        replace(part, fresh);
        isChanged = true;
    }
    return isChanged;
};

const keepCurrent = async () => {
    let pause = FIRST_PAUSE_MS;
    let changed = Date.now();
    while (liveParts().length && Date.now() < changed + GIVE_UP_AFTER_MS) {
        await new Promise((resolve) => setTimeout(resolve, pause));
        await shown();
        const answer = await fetch(location.href, { redirect: "error" }).catch(() => null);
        const text = answer?.ok ? await answer.text().catch(() => null) : null;
        const isChanged = text && update(new DOMParser().parseFromString(text, "text/html"));
        if (isChanged) changed = Date.now();
        pause = isChanged ? FIRST_PAUSE_MS : Math.min(pause * SLOWDOWN, LONGEST_PAUSE_MS);
    }
};

keepCurrent();
