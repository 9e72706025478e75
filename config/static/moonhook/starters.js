// Starters: fill in an example source and its sample request; ask before replacing typed text.
{
    const read = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "null");
    const starters = read("script-starters");
    const chooser = field("starter");
    const firstHeaders = field("headers")?.defaultValue;

    const isOneOf = (text, known) => ["", ...known].some((other) => other.trim() === text.trim());

    const isUntyped = () =>
        isOneOf(window.moonhookEditor.source(), [
            read("script-first-source"),
            ...starters.map(({ source }) => source),
        ]) &&
        isOneOf(bodyField.value, starters.map(({ body }) => body)) &&
        isOneOf(field("headers").value, [firstHeaders, ...starters.map(({ headers }) => headers)]) &&
        isOneOf(field("query").value, []);

    const QUESTION =
        "Replace the source and the request with this example? Your text is lost, " +
        "except that Ctrl-Z in the editor brings the source back.";

    const use = (starter) => {
        window.moonhookEditor.setSource(starter.source);
        sendBodyOf(null);
        fill({ query: "", ...starter });
        showResult("");
        remember();
    };

    let chosen = "";
    chooser?.addEventListener("change", () => {
        const starter = starters[chooser.value];
        if (starter && window.moonhookEditor && (isUntyped() || window.confirm(QUESTION))) {
            use(starter);
            chosen = chooser.value;
        }
        chooser.value = chosen;
    });
}
