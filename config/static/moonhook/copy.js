// Buttons with data-copy put the text of the element with that id on the clipboard.
const said = document.createElement("div");
said.className = "sr-only";
said.setAttribute("role", "status");
document.body.append(said);

const copyText = async (text) => {
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        // Over plain http the browser has no clipboard for pages, but still copies selections.
        const field = document.createElement("textarea");
        field.value = text;
        field.className = "sr-only";
        document.body.append(field);
        field.select();
        const asItIs = (event) => {
            // A text area has lost the carriage returns.
            event.clipboardData.setData("text/plain", text);
            event.preventDefault();
        };
        document.addEventListener("copy", asItIs, { once: true });
        document.execCommand("copy");
        document.removeEventListener("copy", asItIs);
        field.remove();
    }
};

document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await copyText(document.getElementById(button.dataset.copy).textContent);
    button.focus();
    button.textContent = "Copied";
    said.textContent = `Copied: ${button.getAttribute("aria-label")}`;
    setTimeout(() => {
        button.textContent = "Copy";
        said.textContent = "";
    }, 3000);
});
