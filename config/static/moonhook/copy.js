// Buttons with data-copy put the text of the element with that id on the clipboard.
document.querySelectorAll("[data-copy]").forEach((button) => {
    button.addEventListener("click", async () => {
        const source = document.getElementById(button.dataset.copy);
        getSelection().selectAllChildren(source);
        try {
            await navigator.clipboard.writeText(source.textContent);
        } catch {
            // Over plain http the browser has no clipboard for pages, but still copies selections.
            document.execCommand("copy");
        }
        button.textContent = "Copied";
    });
});
