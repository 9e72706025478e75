// The source of a script: Ace with Moonhook's completions, the compiler's marks, and Ctrl-S.

// Ace would start its own checker, of Lua 5.1, before the widget turns it off.
ace.config.setDefaultValue("session", "useWorker", false);

const escaped = (text) => {
    const element = document.createElement("span");
    element.textContent = text;
    return element.innerHTML;
};

const KEYWORDS = new Set(
    "and break do else elseif end false for function goto if in local nil not or repeat return then true until while".split(" "),
);

// Words that begin with what stands before the cursor: nothing is ever guessed from the middle.
const completer = (entries) => ({
    identifierRegexps: [/[a-zA-Z_0-9.]/],
    getCompletions(editor, session, position, prefix, done) {
        const begun = prefix.toLowerCase();
        if (!/^[a-z_]/.test(begun) || KEYWORDS.has(prefix)) {
            done(null, []);
            return;
        }
        const matches = (name) => name.toLowerCase().startsWith(begun) && name !== prefix;
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
            ...own.map((word) => ({ caption: word, value: word, meta: "here", score: 1500 })),
        ]);
    },
});

// While typing, the list only offers: Enter stays a new line. Tab and the arrows choose.
const onlyOffer = (editor) => {
    const { Autocomplete } = ace.require("ace/autocomplete");
    editor.commands.on("exec", ({ command }) => {
        const completion = Autocomplete.for(editor);
        if (command.name === "insertstring" && !completion.activated) completion.autoSelect = false;
    });
};

// One flaw at a time is marked: Lua's compiler stops at the first, and a run at its error.
const marker = (session) => {
    const { Range } = ace.require("ace/range");
    let highlight = null;
    return (line, message) => {
        if (highlight !== null) session.removeMarker(highlight);
        highlight = null;
        session.setAnnotations(line ? [{ row: line - 1, text: message, type: "error" }] : []);
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

// Logging in again, in another tab, changes the token: the cookie has the one that is good.
const csrfToken = (textarea) =>
    /(?:^|; )moonhook_admin_csrf=([^;]+)/.exec(document.cookie)?.[1] ??
    textarea.form.querySelector("[name=csrfmiddlewaretoken]").value;

const LOGGED_OUT =
    "You have been logged out; nothing is lost. Log in again in another tab, then come back to this one.";

// {answer}, or {problem} in words.
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

// Asks the compiler that would run the source, once the person stops typing.
const checkWhileTyping = (editor, desk, textarea, mark, post) => {
    const organisation = () =>
        desk.dataset.organisation ??
        textarea.form.querySelector("[name=organisation]")?.value ??
        "";
    let timer = null;
    let asked = 0;
    const check = async () => {
        if (!organisation()) return;
        const question = ++asked;
        const source = editor.getValue();
        const asking = { organisation: organisation(), source };
        const { answer } = await post(desk.dataset.check, asking);
        if (!answer?.ok || question !== asked) return;
        const flaw = await answer.json();
        mark(flaw.line, flaw.message ?? "");
    };
    editor.session.on("change", () => {
        clearTimeout(timer);
        timer = setTimeout(check, CHECK_AFTER_MS);
    });
    return function forgetQuestion() {
        clearTimeout(timer);
        asked += 1;
    };
};

// Saving reloads the page: cursor and scroll position come back with it.
const keepPlace = (editor, textarea) => {
    const key = `moonhook:place:${location.pathname}`;
    const kept = JSON.parse(sessionStorage.getItem(key) ?? "null");
    sessionStorage.removeItem(key);
    if (kept) {
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

// A form that is sent after the login has ended loses what is in it: so it is asked first.
const saveOnlyWhileLoggedIn = (desk, textarea, post) => {
    let isSure = false;
    textarea.form.addEventListener("submit", async (event) => {
        if (isSure) return;
        event.preventDefault();
        event.stopImmediatePropagation();
        const { problem } = await post(desk.dataset.alive, {});
        document.getElementById("script-problem").textContent = problem ?? "";
        if (problem) return;
        isSure = true;
        textarea.form.querySelector("[name=csrfmiddlewaretoken]").value = csrfToken(textarea);
        textarea.form.requestSubmit(event.submitter);
    });
};

const saveOnCtrlS = (textarea) => {
    document.addEventListener("keydown", (event) => {
        if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "s") return;
        event.preventDefault();
        const stay = document.querySelector("button[name=_continue]");
        if (stay) textarea.form.requestSubmit(stay);
    });
};

const setUp = () => {
    const textarea = document.querySelector("textarea.source-code");
    const desk = document.getElementById("script-desk");
    const editor = textarea?.parentElement.querySelector(".django-ace-widget")?.editor;
    if (!editor || !desk) return;

    const entries = JSON.parse(document.getElementById("lua-completions").textContent);
    const mark = marker(editor.session);
    editor.completers = [completer(entries)];
    onlyOffer(editor);
    editor.setOptions({
        enableLiveAutocompletion: true,
        liveAutocompletionThreshold: 2,
        // Escape lets the Tab key leave the editor; Enter comes back.
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
    editor.session.on("change", () => textarea.dispatchEvent(new Event("input", { bubbles: true })));
    mark(Number(textarea.dataset.errorLine), textarea.dataset.error);
    if (textarea.dataset.errorLine) {
        editor.gotoLine(Number(textarea.dataset.errorLine));
        editor.focus();
    }
    const post = poster(textarea);
    const forgetQuestion = checkWhileTyping(editor, desk, textarea, mark, post);
    saveOnlyWhileLoggedIn(desk, textarea, post);
    keepPlace(editor, textarea);
    saveOnCtrlS(textarea);
    window.moonhookEditor = {
        post,
        source: () => editor.getValue(),
        // A run knows more than the compiler, whose answer may still be on its way.
        markRun(line, message) {
            forgetQuestion();
            mark(line, message);
        },
        goTo(line) {
            editor.gotoLine(line, 0, true);
            editor.focus();
        },
    };
};

window.addEventListener("load", setUp);
