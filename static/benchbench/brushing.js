// Settings chosen in the figure of parallel coordinates narrow the leaderboard to the runs that have all of them.

const chosen = new Map(); // axis -> [setting, its runs]

function narrow() {
    const note = document.getElementById("brushed");
    const rows = [...document.querySelectorAll("tr[data-run]")];
    for (const row of rows) {
        const runs = row.dataset.run.split(" ").map(Number);
        row.hidden = ![...chosen.values()].every(([, ids]) => runs.some((run) => ids.includes(run)));
    }
    note.hidden = !chosen.size;
    const settings = [...chosen.values()].map(([setting]) => setting).join(" · ");
    note.querySelector("span").textContent =
        `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows: ${settings}`;
}

document.addEventListener("benchbench:brush", ({ detail: { axis, setting, runs } }) => {
    if (chosen.get(axis)?.[0] === setting) chosen.delete(axis);
    else chosen.set(axis, [setting, runs]);
    narrow();
});

document.addEventListener("click", ({ target }) => {
    if (!target.closest("#brushed button")) return;
    chosen.clear();
    narrow();
});
