// Shows the next ticks of a schedule while its cron expression or time zone is typed.
const nextTicks = document.getElementById("next-ticks");
const PAUSE_MS = 300;

const showTicks = ({ ticks, problem }) => {
    nextTicks.querySelector("ol").replaceChildren(
        ...ticks.map((tick) => Object.assign(document.createElement("li"), { textContent: tick })),
    );
    nextTicks.querySelector("p").textContent = problem;
};

if (nextTicks) {
    const typed = [document.getElementById("id_cron"), document.getElementById("id_time_zone")];
    let timer;
    let asked = 0;

    const renew = async () => {
        const number = ++asked;
        const [cron, timeZone] = typed.map((input) => input.value);
        const query = new URLSearchParams({ cron, time_zone: timeZone });
        const answer = await fetch(`${nextTicks.dataset.address}?${query}`, { redirect: "error" }).catch(() => null);
        // A slow answer to an earlier question must not replace a newer one.
        if (answer?.ok && number === asked) showTicks(await answer.json());
    };

    for (const input of typed.filter(Boolean)) {
        input.addEventListener("input", () => {
            clearTimeout(timer);
            timer = setTimeout(renew, PAUSE_MS);
        });
    }
}
