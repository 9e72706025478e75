// A button with data-copy copies the text of the element with that id to the clipboard.
const announcer = document.createElement("div");
announcer.className = "sr-only";
announcer.setAttribute("role", "status");
document.body.append(announcer);

const copyText = async (text) => {
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        // Over plain http browsers offer no clipboard API, but can still copy a selection.
        const field = document.createElement("textarea");
        field.value = text;
        field.className = "sr-only";
        document.body.append(field);
        field.select();
        const setExactText = (event) => {
            // The text area has dropped the carriage returns.
            event.clipboardData.setData("text/plain", text);
            event.preventDefault();
        };
        document.addEventListener("copy", setExactText, { once: true });
        document.execCommand("copy");
        document.removeEventListener("copy", setExactText);
        field.remove();
    }
};

document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await copyText(document.getElementById(button.dataset.copy).textContent);
    button.focus();
    button.dataset.label ??= button.textContent;
    button.textContent = "Copied";
    announcer.textContent = `Copied: ${button.getAttribute("aria-label")}`;
    setTimeout(() => {
        button.textContent = button.dataset.label;
        announcer.textContent = "";
    }, 3000);
});
