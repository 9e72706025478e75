// Choosing a sender shows its steps at once; without scripts, the button does.
const chooser = document.getElementById("choose-sender");
const senders = [...chooser.querySelector("select").options];
const shown = senders.find((option) => option.defaultSelected) ?? senders[0];
chooser.querySelector("button[type=submit]").hidden = true;
chooser.addEventListener("change", () => chooser.requestSubmit());
// Somebody may choose before this script has run.
if (!shown.selected) chooser.requestSubmit();
