// The searchable reference beside the editor: what can be called, with examples to insert or copy.
{
    const panel = document.getElementById("lua-reference");
    const search = document.getElementById("lua-search");
    const list = document.getElementById("lua-entries");

    const element = (tag, properties = {}, ...children) => {
        const made = Object.assign(document.createElement(tag), properties);
        made.append(...children);
        return made;
    };

    const row = (entry, number) => {
        const id = `lua-example-${number}`;
        const insert = element(
            "button",
            { type: "button", className: "mh-reference-insert", tabIndex: -1, title: "Insert at the cursor" },
            element("span", { className: "mh-hidden" }, "Insert "),
            element("code", entry.example ? {} : { id }, entry.signature),
        );
        insert.addEventListener("click", () => window.moonhookEditor?.insert(entry.insert));
        const copy = element(
            "button",
            {
                type: "button",
                className: "mh-copy-button mh-copy-small border border-base-200 dark:border-base-700 rounded-default text-important",
                tabIndex: -1,
            },
            "Copy",
        );
        copy.dataset.copy = id;
        copy.setAttribute("aria-label", `Copy ${entry.example ? "example of " : ""}${entry.name}`);
        const help = element("p", { className: "mh-help" }, `${entry.explanation} ${entry.limits}`.trim());
        const made = element("li", {}, insert, copy, help);
        if (entry.example) made.append(element("pre", { id }, entry.example));
        const { signature, explanation, limits, example, words } = entry;
        made.dataset.text = [signature, explanation, limits, example, words].join(" ").toLowerCase();
        return made;
    };

    const shown = () => [...list.children].filter((item) => !item.hidden);

    // One row at a time is in the tab order.
    const activate = (item) => {
        for (const button of list.querySelectorAll("[tabindex='0']")) button.tabIndex = -1;
        for (const button of item?.querySelectorAll("button") ?? []) button.tabIndex = 0;
    };

    const filter = () => {
        const words = search.value.toLowerCase().split(/\s+/);
        for (const item of list.children) {
            item.hidden = !words.every((word) => item.dataset.text.includes(word));
        }
        const found = shown();
        document.getElementById("lua-count").textContent = found.length
            ? `${found.length} of ${list.children.length}.`
            : "No matches.";
        activate(found[0]);
        list.scrollTop = 0;
    };

    const build = () => {
        if (list.children.length) return;
        const entries = JSON.parse(document.getElementById("lua-completions").textContent);
        list.append(...entries.map(row));
        filter();
    };

    const move = (event) => {
        const items = shown();
        const at = items.indexOf(event.target.closest("li"));
        const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
        if (next === undefined || (at < 0 && event.key !== "ArrowDown")) return;
        event.preventDefault();
        if (next < 0) {
            search.focus();
            return;
        }
        const item = items[Math.min(next, items.length - 1)];
        activate(item);
        item?.querySelector("button").focus();
    };

    if (panel) {
        if (!panel.hidden) build();
        panel.addEventListener("show", build);
        search.addEventListener("input", filter);
        panel.addEventListener("keydown", move);
        list.addEventListener("focusin", (event) => activate(event.target.closest("li")));
    }
}
