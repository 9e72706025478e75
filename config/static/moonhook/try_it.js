// Try it: runs the source in the editor and shows the result beside it.

const tryForm = document.getElementById("try-form");
const field = (name) => document.getElementById(`try-${name}`);
const bodyField = field("body");
const progress = field("progress");
const resultArea = field("result");
const FIELDS = ["method", "query", "headers", "body"];

// --- Request body ------------------------------------------------------------------------------

// {run, size} of the recorded request whose bytes are sent instead of the text field.
let bodyOf = null;

const sendBodyOf = (request) => {
    bodyOf = request?.body === null ? { run: request.run, size: request.size } : null;
    bodyField.hidden = bodyOf !== null;
    field("binary").hidden = bodyOf === null;
    field("binary").textContent = bodyOf
        ? `Sends the ${bodyOf.size} bytes of that request unchanged: they cannot be edited as text.`
        : "";
};

const lineAndColumn = (text, offset) => {
    const before = text.slice(0, offset).split("\n");
    return `line ${before.length}, column ${before.at(-1).length + 1}`;
};

// Browsers report the position in different words, or not at all.
const errorPosition = (text, error) => {
    const position = /position (\d+)/.exec(error.message);
    if (position) return ` at ${lineAndColumn(text, Number(position[1]))}`;
    const place = /line (\d+) column (\d+)/.exec(error.message);
    if (place) return ` at line ${place[1]}, column ${place[2]}`;
    return /end of (JSON input|data)/.test(error.message) ? ": unexpected end" : "";
};

const checkJson = () => {
    const text = bodyField.value;
    const verdict = field("json");
    const looksLikeJson = /json/i.test(field("headers").value) || /^\s*[[{]/.test(text);
    field("format").hidden = true;
    verdict.className = "mh-quiet";
    verdict.textContent = "";
    if (!text || !looksLikeJson || bodyOf) return;
    try {
        JSON.parse(text);
        verdict.textContent = "Valid JSON";
        field("format").hidden = false;
    } catch (error) {
        verdict.className = "mh-warning";
        verdict.textContent = `Not valid JSON${errorPosition(text, error)}`;
    }
};

// Not with JSON.parse and stringify, which would change large numbers.
const indented = (text) => {
    let depth = 0;
    const newLine = () => `\n${"  ".repeat(depth)}`;
    return text
        .match(/"(?:[^"\\]|\\.)*"|[[{]\s*[\]}]|[[\]{},:]|[^\s[\]{},:"]+/g)
        .map((token) => {
            if (token === "{" || token === "[") {
                depth += 1;
                return token + newLine();
            }
            if (token === "}" || token === "]") {
                depth -= 1;
                return newLine() + token;
            }
            if (token === ",") return token + newLine();
            return token === ":" ? ": " : token.replace(/^([[{])\s+([\]}])$/, "$1$2");
        })
        .join("");
};

// --- Saving reloads the page: the form is kept in the tab's session storage ----------------------

const storageKey = `moonhook:try:${location.pathname}`;

// The source in the form, which the editor copies there; at first as the server sent it.
const sourceField = document.querySelector("textarea[name=source]");
const firstSource = sourceField?.value;

// The page of a new script has the address of every new script, so its request is recalled only
// after a refused save, or on the way back to the same source.
const isSamePage = (kept) => {
    if (tryForm.dataset.payloads || "refused" in tryForm.dataset) return true;
    const [navigation] = performance.getEntriesByType("navigation");
    return navigation.type !== "navigate" && kept.source === firstSource;
};

const formValues = () => Object.fromEntries(FIELDS.map((name) => [name, field(name).value]));

const remember = () => {
    try {
        const kept = { ...formValues(), bodyOf, source: sourceField?.value };
        sessionStorage.setItem(storageKey, JSON.stringify(kept));
    } catch {
        // The quota is exceeded: keep nothing rather than an old state.
        sessionStorage.removeItem(storageKey);
    }
};

const recall = () => {
    const kept = JSON.parse(sessionStorage.getItem(storageKey) ?? "{}");
    if (!isSamePage(kept)) return;
    fill(kept);
    if (kept.bodyOf) sendBodyOf({ ...kept.bodyOf, body: null });
};

const fill = (values) => {
    for (const name of FIELDS) {
        if (typeof values[name] === "string") field(name).value = values[name];
    }
    checkJson();
};

// The result is kept only by saving. The page of a new script has another address once it is saved.
const RESULT_KEY = "moonhook:try-result";

const keepResult = (event) => {
    if (event.defaultPrevented || event.submitter?.name !== "_continue") return;
    const kept = { from: location.pathname, html: resultArea.innerHTML, form: formValues() };
    try {
        sessionStorage.setItem(RESULT_KEY, JSON.stringify(kept));
    } catch {
        sessionStorage.removeItem(RESULT_KEY);
    }
};

const recallResult = () => {
    const kept = JSON.parse(sessionStorage.getItem(RESULT_KEY) ?? "null");
    sessionStorage.removeItem(RESULT_KEY);
    if (!kept) return;
    const cameFrom = document.referrer ? new URL(document.referrer).pathname : "";
    if (kept.from !== location.pathname && kept.from !== cameFrom) return;
    if (kept.from !== location.pathname) fill(kept.form);
    showResult(kept.html);
};

// --- Running ---------------------------------------------------------------------------------------

const showResult = (html) => {
    // Rendered by a server template, which escapes all text from scripts and callers.
    resultArea.innerHTML = html;
    const link = resultArea.querySelector("[data-line]");
    link?.addEventListener("click", () => window.moonhookEditor.goTo(Number(link.dataset.line)));
};

const show = (answer) => {
    for (const place of document.querySelectorAll("[data-error-of]")) {
        const messages = answer.errors?.[place.dataset.errorOf] ?? [];
        place.textContent = messages.join(" ");
        field(place.dataset.errorOf)?.setAttribute("aria-invalid", String(messages.length > 0));
    }
    const elsewhere = ["organisation", "source", "method", "body_of"].flatMap((name) => answer.errors?.[name] ?? []);
    if (elsewhere.length) {
        document.querySelector("[data-error-of=__all__]").textContent = elsewhere.join(" ");
    }
    // An earlier result next to a new error would look like its result.
    showResult(answer.html ?? "");
    if (!answer.html) return;
    window.moonhookEditor.markRun(answer.line, answer.message);
    resultArea.scrollIntoView({ block: "nearest", behavior: "smooth" });
    const latestRuns = document.querySelector(".mh-panel[aria-label='Latest runs']");
    if (latestRuns && answer.latestRuns) latestRuns.outerHTML = answer.latestRuns;
};

const MAX_BODY_BYTES = Number(tryForm?.dataset.maxBodyBytes);

const refusal = (name, message) => ({ errors: { [name]: [message] } });

const post = async () => {
    if (!bodyOf && new Blob([bodyField.value]).size > MAX_BODY_BYTES) {
        return refusal("body", `The maximum payload is ${MAX_BODY_BYTES} bytes.`);
    }
    const { source, post: send } = window.moonhookEditor;
    const input = { ...formValues(), body_of: bodyOf?.run, source: source() };
    if (!tryForm.dataset.payloads) {
        input.organisation = document.querySelector("#script_form [name=organisation]").value;
    }
    const { answer, problem } = await send(tryForm.dataset.try, input);
    if (problem) return refusal("__all__", problem);
    if (!/json/.test(answer.headers.get("Content-Type"))) {
        return refusal("__all__", `The server answered ${answer.status}.`);
    }
    const result = await answer.json();
    return result.html || result.errors ? result : refusal("__all__", result.detail);
};

let isRunning = false;

const run = async () => {
    if (isRunning || !window.moonhookEditor) return;
    isRunning = true;
    tryForm.dispatchEvent(new Event("run"));
    const button = field("run");
    button.disabled = true;
    const started = performance.now();
    const clock = setInterval(() => {
        progress.textContent = `Running, ${Math.round((performance.now() - started) / 1000)} s`;
    }, 1000);
    try {
        remember();
        show(await post());
    } finally {
        clearInterval(clock);
        progress.textContent = "";
        button.disabled = false;
        isRunning = false;
    }
};

if (tryForm) {
    recall();
    recallResult();

    tryForm.addEventListener("submit", (event) => {
        event.preventDefault();
        run();
    });
    tryForm.addEventListener("input", checkJson);
    field("format").addEventListener("click", () => {
        bodyField.value = indented(bodyField.value);
        remember();
    });
    // After the editor's own listener, which stops the event until it has checked the login.
    window.addEventListener("load", () =>
        document.getElementById("script_form")?.addEventListener("submit", keepResult),
    );
    // Before the focused control sees it: a list box would open.
    const runOnCtrlEnter = (event) => {
        if (!(event.ctrlKey || event.metaKey) || event.key !== "Enter") return;
        event.preventDefault();
        event.stopPropagation();
        run();
    };
    document.addEventListener("keydown", runOnCtrlEnter, { capture: true });
}
