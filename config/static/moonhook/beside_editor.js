// Beside the editor: the tabs Try it and Lua reference; or below it, in its full width.
{
    const tabs = [...document.querySelectorAll(".mh-tabs [role='tab']")];
    const panelOf = (tab) => document.getElementById(tab.getAttribute("aria-controls"));
    const fullWidth = document.getElementById("full-width");
    const content = document.getElementById("content-main");
    const TAB_KEY = "moonhook:beside-editor";
    const WIDTH_KEY = "moonhook:full-width";

    const show = (shown) => {
        for (const tab of tabs) {
            const isShown = tab === shown;
            tab.setAttribute("aria-selected", String(isShown));
            tab.tabIndex = isShown ? 0 : -1;
            panelOf(tab).hidden = !isShown;
        }
        panelOf(shown).dispatchEvent(new Event("show"));
    };

    const choose = (tab) => {
        localStorage.setItem(TAB_KEY, tab.id);
        show(tab);
    };

    const widen = (isWide) => {
        content.classList.toggle("mh-full-width", isWide);
        fullWidth.setAttribute("aria-pressed", String(isWide));
        fullWidth.title = isWide ? "Moves this beside the editor" : "Moves this below the editor";
        window.dispatchEvent(new Event("resize"));
    };

    for (const tab of tabs) tab.addEventListener("click", () => choose(tab));
    tabs[0].parentElement.addEventListener("keydown", (event) => {
        if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
        const other = tabs.find((tab) => tab !== event.target);
        choose(other);
        other.focus();
    });

    // Whatever leads to Try it shows it: its skip link, and a run by Ctrl-Enter.
    const tryIt = document.getElementById("tab-try");
    document.querySelector("a[href='#try-it']")?.addEventListener("click", () => show(tryIt));
    document.getElementById("try-form").addEventListener("run", () => show(tryIt));

    fullWidth.addEventListener("click", () => {
        const isWide = fullWidth.getAttribute("aria-pressed") !== "true";
        localStorage.setItem(WIDTH_KEY, isWide ? "on" : "off");
        widen(isWide);
    });

    show(tabs.find((tab) => tab.id === localStorage.getItem(TAB_KEY)) ?? tryIt);
    widen(localStorage.getItem(WIDTH_KEY) === "on");
}
