// Narrows the senders to those that the search names.
const tiles = [...document.querySelectorAll("#tiles .mh-sender-tile")];
const search = document.getElementById("tile-search");
const none = document.getElementById("no-tile");

const found = () => tiles.filter((tile) => !tile.hidden);

const narrow = () => {
    const wanted = search.value.trim().toLowerCase();
    for (const tile of tiles) tile.hidden = !tile.textContent.toLowerCase().includes(wanted);
    none.textContent = found().length ? "" : "No sender has this name. Any sender that signs with HMAC will do.";
};

search.parentElement.hidden = false;
search.addEventListener("input", narrow);
search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    // Chooses, and does not send the form.
    event.preventDefault();
    const choice = found()[0]?.querySelector("input");
    if (!choice) return;
    choice.checked = true;
    choice.focus();
});
// Browsers may keep what was typed.
narrow();
