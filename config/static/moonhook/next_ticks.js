// Shows a schedule in a sentence and its next ticks while its cron expression or time zone is typed.
const nextTicks = document.getElementById("next-ticks");
const PAUSE_MS = 300;

const showTicks = ({ ticks, sentence, problem }) => {
    nextTicks.querySelector("ol").replaceChildren(
        ...ticks.map((tick) => Object.assign(document.createElement("li"), { textContent: tick })),
    );
    nextTicks.querySelector(".mh-sentence").textContent = sentence;
    nextTicks.querySelector(".mh-problem").textContent = problem;
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

    const [cron] = typed;
    nextTicks.querySelector(".mh-presets").hidden = !cron;
    for (const preset of nextTicks.querySelectorAll(".mh-preset")) {
        preset.addEventListener("click", () => {
            cron.value = preset.dataset.cron;
            cron.dispatchEvent(new Event("input", { bubbles: true }));
        });
    }

    for (const input of typed.filter(Boolean)) {
        input.addEventListener("input", () => {
            clearTimeout(timer);
            timer = setTimeout(renew, PAUSE_MS);
        });
    }
}
