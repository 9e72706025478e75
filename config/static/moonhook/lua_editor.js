// A script's source: Ace with Moonhook's completions, compiler errors and Ctrl-S.

// Ace would start its own Lua 5.1 checker before the widget turns it off.
ace.config.setDefaultValue("session", "useWorker", false);

const escaped = (text) => {
    const element = document.createElement("span");
    element.textContent = text;
    return element.innerHTML;
};

const KEYWORDS = new Set(
    "and break do else elseif end false for function goto if in local nil not or repeat return then true until while".split(" "),
);

// Completes words by prefix only; no fuzzy matches.
const completer = (entries) => ({
    identifierRegexps: [/[a-zA-Z_0-9.]/],
    getCompletions(editor, session, position, prefix, done) {
        const typed = prefix.toLowerCase();
        if (!/^[a-z_]/.test(typed) || KEYWORDS.has(prefix)) {
            done(null, []);
            return;
        }
        const matches = (name) => name.toLowerCase().startsWith(typed) && name !== prefix;
        const known = entries.filter((entry) => matches(entry.name));
        const words = new Set(session.getValue().match(/\b[a-zA-Z_]\w*/g) ?? []);
        const own = [...words].filter(
            (word) => matches(word) && !KEYWORDS.has(word) && !known.some((e) => e.name === word),
        );
        done(null, [
            ...known.map((entry) => ({
                caption: entry.name,
                value: entry.insert,
                meta: entry.origin,
                score: entry.origin === "Moonhook" ? 2000 : 1000,
                docHTML: `<b>${escaped(entry.signature)}</b><br>${escaped(entry.explanation)}`,
            })),
            ...own.map((word) => ({ caption: word, value: word, meta: "this script", score: 1500 })),
        ]);
    },
});

// Leaves Ctrl-K to the search dialog of the page.
const leaveSearchKey = (editor) => editor.commands.bindKey("Ctrl-K|Command-K", null);

// While typing, nothing is preselected, so Enter still starts a new line. Tab and arrows select.
const disableAutoSelect = (editor) => {
    const { Autocomplete } = ace.require("ace/autocomplete");
    editor.commands.on("exec", ({ command }) => {
        const completion = Autocomplete.for(editor);
        if (command.name === "insertstring" && !completion.activated) completion.autoSelect = false;
    });
};

// Marks one error at a time: the compiler stops at the first, and a run at its error.
const marker = (session) => {
    const { Range } = ace.require("ace/range");
    let highlight = null;
    return (line, message) => {
        if (highlight !== null) session.removeMarker(highlight);
        highlight = null;
        const errors = line ? [{ row: line - 1, text: message, type: "error" }] : [];
        session.setAnnotations([...errors, ...window.moonhookWarnings.annotations()]);
        if (line) {
            const row = new Range(line - 1, 0, line - 1, 1);
            highlight = session.addMarker(row, "mh-marked-line", "fullLine");
        }
    };
};

const followColourScheme = (editor) => {
    const choose = () => {
        const isDark = document.documentElement.classList.contains("dark");
        editor.setTheme(`ace/theme/${isDark ? "github_dark" : "github_light_default"}`);
    };
    new MutationObserver(choose).observe(document.documentElement, { attributeFilter: ["class"] });
    choose();
};

// Logging in again in another tab changes the token; the cookie holds the current one.
const csrfToken = (textarea) =>
    /(?:^|; )moonhook_admin_csrf=([^;]+)/.exec(document.cookie)?.[1] ??
    textarea.form.querySelector("[name=csrfmiddlewaretoken]").value;

const LOGGED_OUT =
    "You have been logged out. Nothing is lost: log in again in another tab, then return to this one.";

// Resolves to {answer}, or to {problem} with a message.
const poster = (textarea) => async (address, content) => {
    try {
        const answer = await fetch(address, {
            method: "POST",
            redirect: "manual",
            headers: { "Content-Type": "application/json", "X-CSRFToken": csrfToken(textarea) },
            body: JSON.stringify(content),
        });
        return answer.type === "opaqueredirect" ? { problem: LOGGED_OUT } : { answer };
    } catch {
        return { problem: "The server cannot be reached. Try again." };
    }
};

const CHECK_AFTER_MS = 600;

// Checks the source with the server's compiler: on load, after a pause in typing, after a run.
const checkWhileTyping = (editor, endpoints, textarea, mark, post) => {
    const organisation = () =>
        endpoints.dataset.organisation ??
        textarea.form.querySelector("[name=organisation]")?.value ??
        "";
    let timer = null;
    let latestCheck = 0;
    const check = async (runError = null) => {
        if (!organisation()) return;
        const thisCheck = ++latestCheck;
        const source = editor.getValue();
        const input = { organisation: organisation(), source };
        const { answer } = await post(endpoints.dataset.check, input);
        if (!answer?.ok || thisCheck !== latestCheck) return;
        const { warnings, ...error } = await answer.json();
        const { line, message } = runError ?? error;
        window.moonhookWarnings.show(warnings);
        mark(line, message ?? "");
    };
    // After a save too, since it loads the page; a refused source keeps its error marked.
    if (!textarea.dataset.errorLine) check();
    editor.session.on("change", () => {
        clearTimeout(timer);
        timer = setTimeout(() => check(), CHECK_AFTER_MS);
    });
    return function checkAfterRun(runError) {
        clearTimeout(timer);
        check(runError);
    };
};

// Saving reloads the page: this restores the cursor and scroll position.
const keepPlace = (editor, textarea) => {
    const key = `moonhook:place:${location.pathname}`;
    const kept = JSON.parse(sessionStorage.getItem(key) ?? "null");
    sessionStorage.removeItem(key);
    // After a refusal, the wrong line is shown instead.
    if (kept && !textarea.dataset.errorLine) {
        editor.moveCursorTo(kept.row, kept.column);
        editor.session.setScrollTop(kept.top);
        window.scrollTo(0, kept.window);
        editor.focus();
    }
    textarea.form.addEventListener("submit", (event) => {
        if (event.defaultPrevented || event.submitter?.name !== "_continue") return;
        const place = { ...editor.getCursorPosition(), top: editor.session.getScrollTop() };
        sessionStorage.setItem(key, JSON.stringify({ ...place, window: window.scrollY }));
    });
};

// Submitting after the login has expired would lose the form, so this checks the login first.
const saveOnlyWhileLoggedIn = (endpoints, textarea, post) => {
    let isChecked = false;
    textarea.form.addEventListener("submit", async (event) => {
        if (isChecked) return;
        event.preventDefault();
        event.stopImmediatePropagation();
        const { problem } = await post(endpoints.dataset.alive, {});
        document.getElementById("script-problem").textContent = problem ?? "";
        if (problem) return;
        isChecked = true;
        textarea.form.querySelector("[name=csrfmiddlewaretoken]").value = csrfToken(textarea);
        textarea.form.requestSubmit(event.submitter);
    });
};

// A script that exists has drafts; a new one is created.
const saveOnCtrlS = (textarea) => {
    document.addEventListener("keydown", (event) => {
        if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "s") return;
        event.preventDefault();
        const draft = document.getElementById("save-draft");
        if (draft) {
            draft.click();
            return;
        }
        const stay = document.querySelector("button[name=_continue]");
        if (stay) textarea.form.requestSubmit(stay);
    });
};

const setUp = () => {
    const textarea = document.querySelector("textarea.source-code");
    const endpoints = document.getElementById("script-endpoints");
    const editor = textarea?.parentElement.querySelector(".django-ace-widget")?.editor;
    if (!editor || !endpoints) return;

    const entries = JSON.parse(document.getElementById("lua-completions").textContent);
    const mark = marker(editor.session);
    editor.completers = [completer(entries)];
    leaveSearchKey(editor);
    disableAutoSelect(editor);
    editor.setOptions({
        enableLiveAutocompletion: true,
        liveAutocompletionThreshold: 2,
        // Escape lets the Tab key leave the editor; Enter returns to it.
        enableKeyboardAccessibility: true,
        textInputAriaLabel: "Source",
        fixedWidthGutter: true,
        fontSize: 13,
        scrollPastEnd: 0.25,
    });
    followColourScheme(editor);
    document
        .querySelector(`label[for=${textarea.id}]`)
        ?.addEventListener("click", () => editor.focus());
    document.getElementById("skip-to-editor")?.addEventListener("click", (event) => {
        event.preventDefault();
        editor.focus();
    });
    editor.session.on("change", () => textarea.dispatchEvent(new Event("input", { bubbles: true })));
    mark(Number(textarea.dataset.errorLine), textarea.dataset.error);
    if (textarea.dataset.errorLine) {
        editor.gotoLine(Number(textarea.dataset.errorLine));
        editor.focus();
        // The browser scrolls to the cursor; the message stands above the editor.
        editor.container.scrollIntoView({ block: "center" });
    }
    const post = poster(textarea);
    const checkAfterRun = checkWhileTyping(editor, endpoints, textarea, mark, post);
    saveOnlyWhileLoggedIn(endpoints, textarea, post);
    keepPlace(editor, textarea);
    saveOnCtrlS(textarea);
    window.moonhookEditor = {
        post,
        source: () => editor.getValue(),
        focus: () => editor.focus(),
        setSource(text) {
            editor.setValue(text, -1);
        },
        insert(text) {
            editor.insert(text);
            editor.focus();
        },
        mark,
        // A run's error replaces that of a check that is still pending; warnings stay beside it.
        markRun(line, message) {
            mark(line, message);
            checkAfterRun({ line, message });
        },
        goTo(line) {
            editor.gotoLine(line, 0, true);
            editor.focus();
        },
    };
};

window.addEventListener("load", setUp);
