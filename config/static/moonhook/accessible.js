// What Unfold's pages lack for who works by keyboard or screen reader.

// Buttons that are spans or links without an address, made of an icon: their names.
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

function letKeysPressWhatTheMouseClicks() {
    for (const control of document.querySelectorAll("[x-on\\:click]")) {
        const isButton = control.matches("button, input, select, label, a[href]");
        const hasFace = control.textContent.trim() !== "" || control.hasAttribute("aria-label");
        if (isButton || !hasFace || control.querySelector("a, button, input, form")) continue;
        control.setAttribute("role", "button");
        control.tabIndex = 0;
        control.addEventListener("keydown", (event) => {
            if (event.key !== "Enter" && event.key !== " ") return;
            event.preventDefault();
            control.click();
        });
    }
}

// A field in a table has no label of its own: its column's heading is one.
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

// Select2 draws a box of its own, which has the value for a name and no label.
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
    const note = document.querySelector("#main .errornote");
    if (note) note.tabIndex = -1;
    (box ?? field ?? note)?.focus();
}

// Below a form stands what belongs to its object; the buttons are the form's and stay with it.
function keepButtonsWithTheirForm() {
    const row = document.getElementById("submit-row");
    const form = document.querySelector("#content-main > form");
    if (row && form) form.after(row);
}

function prepare() {
    document.getElementById("main")?.setAttribute("role", "main");
    nameIconsAndHideThem();
    letKeysPressWhatTheMouseClicks();
    nameFields();
}

document.addEventListener("DOMContentLoaded", () => {
    keepButtonsWithTheirForm();
    prepare();
});
addEventListener("load", () => {
    nameSelect2();
    focusTheFirstError();
    // Each choice draws the box anew, and a new row of a table brings one.
    new MutationObserver(nameSelect2).observe(document.getElementById("main") ?? document.body, {
        childList: true,
        subtree: true,
    });
});
document.addEventListener("formset:added", prepare);
