// Warnings of globals that are not defined: in the editor's margin, and as a list below it.

window.moonhookWarnings = (() => {
    let current = [];

    const place = () => {
        const known = document.getElementById("script-warnings");
        if (known) return known;
        const editor = document.querySelector(".django-ace-widget");
        const made = document.createElement("div");
        made.id = "script-warnings";
        made.className = "mh-source-warnings";
        made.setAttribute("role", "status");
        editor.after(made);
        return made;
    };

    const entry = ({ line, message, isNote }) => {
        const item = document.createElement("li");
        item.className = isNote ? "mh-quiet" : "mh-warning";
        const jump = document.createElement("button");
        jump.type = "button";
        jump.className = "text-link";
        jump.textContent = `Line ${line}`;
        jump.addEventListener("click", () => window.moonhookEditor.goTo(line));
        item.append(jump, `: ${isNote ? "" : "Warning: "}${message}`);
        return item;
    };

    const list = () => {
        const items = document.createElement("ul");
        items.append(...current.map(entry));
        return items;
    };

    return {
        annotations: () =>
            current.map(({ line, message, isNote }) => ({
                row: line - 1,
                text: message,
                type: isNote ? "info" : "warning",
            })),
        // A source that does not compile has none: the error stands alone.
        show(warnings) {
            const isSame = JSON.stringify(warnings) === JSON.stringify(current);
            current = warnings;
            // Unchanged text is not announced again.
            if (!isSame) place().replaceChildren(...(warnings.length ? [list()] : []));
        },
    };
})();
