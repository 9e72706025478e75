// Drafts: saves what is in the editor without a reload, and shows what is newer beside it.
{
    const scriptForm = document.getElementById("script_form");
    const saveButton = document.getElementById("save-draft");
    const statusLine = document.getElementById("draft-status");
    const place = (id) => document.getElementById(id);
    const kept = (name) => scriptForm.querySelector(`[name=${name}]`);

    // Whether the person has seen what went live since the draft was begun.
    let hasCompared = false;

    // Settings are saved by publishing, so leaving the page still loses them.
    const areSettingsChanged = () =>
        [...scriptForm.querySelectorAll("input:not([type=hidden])")].some((input) =>
            input.type === "checkbox"
                ? input.checked !== input.defaultChecked
                : input.value !== input.defaultValue,
        );

    // Unfold warns of leaving a form that was changed; a saved draft has nothing to lose.
    const warnOfLeaving = (isWarned) => {
        const change = isWarned ? "addEventListener" : "removeEventListener";
        window[change]("beforeunload", window.preventLeaving);
    };

    const keepShown = (shown) => {
        for (const [name, value] of Object.entries(shown)) kept(name).value = value;
    };

    // Rendered by server templates, which escape all text.
    const put = (id, html) => {
        place(id).innerHTML = html;
        listenToComparison();
    };

    const useMerged = () => {
        window.moonhookEditor.setSource(place("merged-source").value);
        endComparison();
    };

    const endComparison = () => {
        hasCompared = true;
        put("conflict-place", "");
        document.getElementById("compare")?.remove();
        window.moonhookEditor.focus();
    };

    const listenToComparison = () => {
        for (const button of document.querySelectorAll("[data-use-merged]")) button.onclick = useMerged;
        for (const button of document.querySelectorAll("[data-keep-mine]")) button.onclick = endComparison;
    };

    const showSaved = (result, source) => {
        keepShown(result.shown);
        hasCompared = false;
        place("draft-line").innerHTML = result.line;
        put("conflict-place", "");
        put("draft-state", result.html);
        window.moonhookEditor.mark(0, "");
        const isStillSaved = window.moonhookEditor.source() === source;
        if (isStillSaved && !areSettingsChanged()) warnOfLeaving(false);
        statusLine.textContent = `Draft saved at ${new Date().toLocaleTimeString()}`;
    };

    const showConflict = (result) => {
        keepShown(result.shown);
        hasCompared = true;
        put("draft-state", "");
        put("conflict-place", result.conflict);
        statusLine.textContent = "Not saved: changed meanwhile";
        place("conflict").focus();
        place("conflict").scrollIntoView({ block: "start" });
    };

    const showProblem = ({ message, line }) => {
        place("script-problem").textContent = message ?? "";
        statusLine.textContent = message ? "Not saved" : "";
        if (line) window.moonhookEditor.mark(line, message.replace(/^Line \d+: /, ""));
    };

    let isSaving = false;

    const saveDraft = async () => {
        if (isSaving || !window.moonhookEditor) return;
        isSaving = true;
        statusLine.textContent = "Saving";
        const source = window.moonhookEditor.source();
        const input = {
            source,
            expected_revision: kept("expected_revision").value,
            seen_draft: kept("seen_draft").value,
            base: kept("base").value,
            has_compared: hasCompared,
        };
        try {
            const address = place("script-endpoints").dataset.draft;
            const { answer, problem } = await window.moonhookEditor.post(address, input);
            const isJson = answer && /json/.test(answer.headers.get("Content-Type"));
            if (!isJson) {
                showProblem({ message: problem ?? `The server answered ${answer.status}.` });
                return;
            }
            const result = await answer.json();
            showProblem({});
            if (answer.ok) showSaved(result, source);
            else if (answer.status === 409) showConflict(result);
            else showProblem({ message: result.message ?? result.detail, line: result.line });
        } finally {
            isSaving = false;
        }
    };

    if (scriptForm && saveButton) {
        saveButton.addEventListener("click", saveDraft);
        listenToComparison();
        // The editor's own listener has made the field's text that of the editor.
        scriptForm.addEventListener("input", () => {
            warnOfLeaving(true);
            if (statusLine.textContent.startsWith("Draft saved")) statusLine.textContent = "";
        });
    }
}
