// Adds what Unfold's pages lack for keyboards and screen readers.

// Names of buttons that consist of an icon only.
const ICON_NAMES = {
    close: "Close the menu",
    menu: "Open the menu",
    dock_to_right: "Show or hide the menu",
    filter_list: "Filters",
    delete: "Remove",
    more_vert: "More",
    expand_more: "Expand",
};

const textOf = (element) =>
    [...element.childNodes]
        .filter((node) => !node.classList?.contains("material-symbols-outlined"))
        .map((node) => node.textContent.trim())
        .join(" ")
        .trim();

function nameIconsAndHideThem() {
    for (const icon of document.querySelectorAll(".material-symbols-outlined")) {
        const control = icon.closest("a, button, [role=button], [x-on\\:click]");
        if (icon !== control) icon.setAttribute("aria-hidden", "true");
        if (!control || control.getAttribute("aria-label") || control.title) continue;
        const hasWords = control !== icon && textOf(control) !== "";
        if (!hasWords) control.setAttribute("aria-label", ICON_NAMES[icon.textContent.trim()] ?? icon.textContent.trim().replaceAll("_", " "));
    }
}

function makeClickTargetsButtons() {
    for (const control of document.querySelectorAll("[x-on\\:click]")) {
        const isButton = control.matches("button, input, select, label, a[href]");
        const isVisible = control.textContent.trim() !== "" || control.hasAttribute("aria-label");
        if (isButton || !isVisible || control.querySelector("a, button, input, form")) continue;
        control.setAttribute("role", "button");
        control.tabIndex = 0;
        control.addEventListener("keydown", (event) => {
            if (event.key !== "Enter" && event.key !== " ") return;
            event.preventDefault();
            control.click();
        });
    }
}

// A field in a table has no label, so its column heading serves as one.
function headingOf(field) {
    const cell = field.closest("td");
    if (!cell) return "";
    const heading = cell.closest("table")?.querySelectorAll("thead th")[cell.cellIndex];
    return (heading?.textContent || cell.dataset.label || "").replace("*", "").trim();
}

function nameFields() {
    for (const field of document.querySelectorAll("#main input, #main select, #main textarea")) {
        const isNamed = field.labels?.length || field.getAttribute("aria-label") || field.getAttribute("aria-labelledby");
        if (isNamed || field.type === "hidden") continue;
        const name = field.id === "searchbar" ? `Search: ${field.placeholder}` : headingOf(field) || field.title || field.placeholder;
        if (name) field.setAttribute("aria-label", name);
    }
}

// Select2 draws its own box, which lacks the select's label.
function nameSelect2() {
    for (const box of document.querySelectorAll(".select2-selection")) {
        const select = box.closest(".select2")?.previousElementSibling;
        const name = select?.labels?.[0]?.textContent || select?.getAttribute("aria-label") || select?.dataset.placeholder;
        if (!name) continue;
        const value = box.querySelector(".select2-selection__rendered")?.title ?? "";
        const label = [name.replace(/[*:\s]+$/, "").trim(), value].filter(Boolean).join(": ");
        for (const part of [box, box.querySelector("[role=textbox]")]) {
            part?.removeAttribute("aria-labelledby");
            part?.setAttribute("aria-label", label);
        }
        const described = select.getAttribute("aria-describedby");
        if (described) box.setAttribute("aria-describedby", described);
    }
}

function focusTheFirstError() {
    const field = document.querySelector("#main [aria-invalid=true]");
    const box = field?.parentElement.querySelector(".select2-selection");
    const note = document.querySelector("#main .errornote:not(.mh-error-message)");
    if (note) note.tabIndex = -1;
    (box ?? field ?? note)?.focus();
}

// Panels follow the form; this keeps the form's buttons next to the form.
function keepButtonsWithTheirForm() {
    const row = document.getElementById("submit-row");
    const form = document.querySelector("#content-main > form");
    if (row && form) form.after(row);
}

function prepare() {
    document.getElementById("main")?.setAttribute("role", "main");
    nameIconsAndHideThem();
    makeClickTargetsButtons();
    nameFields();
}

document.addEventListener("DOMContentLoaded", () => {
    keepButtonsWithTheirForm();
    prepare();
});
addEventListener("load", () => {
    nameSelect2();
    focusTheFirstError();
    // Select2 redraws the box on each change, and new inline rows add boxes.
    new MutationObserver(nameSelect2).observe(document.getElementById("main") ?? document.body, {
        childList: true,
        subtree: true,
    });
});
document.addEventListener("formset:added", prepare);
