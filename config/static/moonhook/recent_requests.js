// Recent requests in Try it, and the request of the run that the page's address names (?run=).
{
    const chooser = field("payload");
    const NO_RUN = "The requested run is not available for this script. Nothing was filled in.";
    const notice = (text) => {
        field("notice").textContent = text;
    };

    const payloads = async (query) => {
        const answer = await fetch(`${tryForm.dataset.payloads}?${new URLSearchParams(query)}`);
        return answer.ok && !answer.redirected ? answer.json() : null;
    };

    const listRequests = async () => {
        const chosen = chooser.value;
        const { requests = [] } = (await payloads(field("failed").checked ? { failed: 1 } : {})) ?? {};
        chooser.length = 1;
        chooser.options[0].text = requests.length ? "Custom (below)" : "No recent requests";
        for (const request of requests) chooser.add(new Option(request.title, request.run));
        if (requests.some((request) => request.run === chosen)) chooser.value = chosen;
    };

    // Selects the run's request, also if it is too old for the list or was not sent to a hook.
    const select = (request) => {
        if (![...chooser.options].some((option) => option.value === request.run)) {
            chooser.add(new Option(request.title, request.run));
            chooser.options[0].text = "Custom (below)";
        }
        chooser.value = request.run;
    };

    const useRequest = async (run) => {
        const request = run ? await payloads({ run }) : null;
        if (run && !request) return false;
        sendBodyOf(request);
        if (request) {
            fill(request);
            select(request);
        }
        notice("");
        remember();
        return true;
    };

    const useRunOfAddress = async () => {
        const address = new URL(location.href);
        const run = address.searchParams.get("run");
        if (run === null) return;
        // Used once: a reload must not overwrite later edits.
        address.searchParams.delete("run");
        history.replaceState(null, "", address);
        if (!(await useRequest(run))) notice(NO_RUN);
    };

    if (chooser) {
        listRequests().then(useRunOfAddress);
        chooser.addEventListener("change", async () => {
            if (await useRequest(chooser.value)) return;
            chooser.value = "";
            show({ errors: { __all__: ["The payload of this run no longer exists."] } });
        });
        field("failed").addEventListener("change", listRequests);
        field("refresh").addEventListener("click", listRequests);
    } else if (tryForm && new URLSearchParams(location.search).has("run")) {
        notice(NO_RUN);
    }
}
