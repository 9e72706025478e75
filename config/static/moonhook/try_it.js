// Try it: runs the source as it stands in the editor, and shows what came of it beside it.

const tryForm = document.getElementById("try-form");
const field = (name) => document.getElementById(`try-${name}`);
const bodyField = field("body");
const progress = field("progress");
const resultArea = field("result");
const TYPED = ["method", "query", "headers", "body"];

// --- What is sent ------------------------------------------------------------------------------

// {run, size} of the call whose bytes are sent in the place of what is typed.
let bodyOf = null;

const sendBodyOf = (call) => {
    bodyOf = call?.body === null ? { run: call.run, size: call.size } : null;
    bodyField.hidden = bodyOf !== null;
    field("binary").hidden = bodyOf === null;
    field("binary").textContent = bodyOf
        ? `The ${bodyOf.size} bytes of that call, sent as they came: no text field could hold them.`
        : "";
};

const lineAndColumn = (text, offset) => {
    const before = text.slice(0, offset).split("\n");
    return `line ${before.length}, column ${before.at(-1).length + 1}`;
};

// Browsers say it in different words, or not at all.
const whereIsItWrong = (text, error) => {
    const position = /position (\d+)/.exec(error.message);
    if (position) return ` at ${lineAndColumn(text, Number(position[1]))}`;
    const place = /line (\d+) column (\d+)/.exec(error.message);
    if (place) return ` at line ${place[1]}, column ${place[2]}`;
    return /end of (JSON input|data)/.test(error.message) ? ": it ends too early" : "";
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
        verdict.textContent = "JSON";
        field("format").hidden = false;
    } catch (error) {
        verdict.className = "mh-warning";
        verdict.textContent = `No JSON${whereIsItWrong(text, error)}`;
    }
};

// By hand, because a round trip through numbers would change large ones.
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

// --- What was typed survives saving, which reloads the page --------------------------------------

const memory = `moonhook:try:${location.pathname}`;

const typed = () => Object.fromEntries(TYPED.map((name) => [name, field(name).value]));

const remember = () => {
    try {
        sessionStorage.setItem(memory, JSON.stringify({ ...typed(), bodyOf }));
    } catch {
        // More than a browser keeps: then it is not kept.
        sessionStorage.removeItem(memory);
    }
};

const recall = () => {
    const kept = JSON.parse(sessionStorage.getItem(memory) ?? "{}");
    fill(kept);
    if (kept.bodyOf) sendBodyOf({ ...kept.bodyOf, body: null });
};

const fill = (values) => {
    for (const name of TYPED) {
        if (typeof values[name] === "string") field(name).value = values[name];
    }
    checkJson();
};

// --- Recent calls --------------------------------------------------------------------------------

const payloads = async (query = "") => {
    const answer = await fetch(tryForm.dataset.payloads + query);
    return answer.ok ? answer.json() : null;
};

const listCalls = async () => {
    const chooser = field("payload");
    const { calls = [], lookedAt = 0 } = (await payloads()) ?? {};
    chooser.length = 1;
    chooser.options[0].text = calls.length
        ? "What stands below"
        : `None among the latest ${lookedAt} runs: call a hook of this script`;
    for (const call of calls) chooser.add(new Option(call.title, call.run));
};

const takeCall = async (run) => {
    const call = run ? await payloads(`?run=${encodeURIComponent(run)}`) : null;
    if (run && !call) {
        show({ errors: { __all__: ["This run's payload is not there any more."] } });
        return;
    }
    sendBodyOf(call);
    if (call) fill(call);
    remember();
};

// --- Running ---------------------------------------------------------------------------------------

const show = (answer) => {
    for (const place of document.querySelectorAll("[data-error-of]")) {
        const messages = answer.errors?.[place.dataset.errorOf] ?? [];
        place.textContent = messages.join(" ");
        field(place.dataset.errorOf)?.setAttribute("aria-invalid", String(messages.length > 0));
    }
    const elsewhere = ["source", "method", "body_of"].flatMap((name) => answer.errors?.[name] ?? []);
    if (elsewhere.length) {
        document.querySelector("[data-error-of=__all__]").textContent = elsewhere.join(" ");
    }
    if (answer.html === undefined) return;
    // Our own template, in which everything that a script or a caller said is escaped.
    resultArea.innerHTML = answer.html;
    window.moonhookEditor.markRun(answer.line, answer.message);
    const link = resultArea.querySelector("[data-line]");
    link?.addEventListener("click", () => window.moonhookEditor.goTo(Number(link.dataset.line)));
    resultArea.scrollIntoView({ block: "nearest", behavior: "smooth" });
};

const MAX_BODY_BYTES = Number(tryForm?.dataset.maxBodyBytes);

const refusal = (name, message) => ({ errors: { [name]: [message] } });

const post = async () => {
    if (!bodyOf && new Blob([bodyField.value]).size > MAX_BODY_BYTES) {
        return refusal("body", `A payload may have at most ${MAX_BODY_BYTES} bytes.`);
    }
    const { source, post: send } = window.moonhookEditor;
    const call = { ...typed(), body_of: bodyOf?.run, source: source() };
    const { answer, problem } = await send(tryForm.dataset.try, call);
    if (problem) return refusal("__all__", problem);
    if (!/json/.test(answer.headers.get("Content-Type"))) {
        return refusal("__all__", `The server answered ${answer.status}.`);
    }
    const told = await answer.json();
    return told.html || told.errors ? told : refusal("__all__", told.detail);
};

let isRunning = false;

const run = async () => {
    if (isRunning || !window.moonhookEditor) return;
    isRunning = true;
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
    listCalls();
    const asked = new URLSearchParams(location.search).get("payload");
    if (asked) {
        // Taken once: what is typed from now on is not overwritten when the page comes again.
        history.replaceState(null, "", location.pathname);
        takeCall(asked);
    }

    tryForm.addEventListener("submit", (event) => {
        event.preventDefault();
        run();
    });
    tryForm.addEventListener("input", checkJson);
    field("payload").addEventListener("change", (event) => takeCall(event.target.value));
    field("refresh").addEventListener("click", listCalls);
    field("format").addEventListener("click", () => {
        bodyField.value = indented(bodyField.value);
        remember();
    });
    document.addEventListener("keydown", (event) => {
        if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
            event.preventDefault();
            run();
        }
    });
}
