// Draws the figures that the server built: [data-chart] names the <script type="application/json"> that holds one.
// A point whose customdata is an address leads there; numbers of runs are announced.
// Plotly is large, so it is loaded when a figure comes near the window. Colours follow the theme of the page.

const source = document.getElementById("chart-module").dataset.plotly;
let loading;

function plotly() {
    loading ??= new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = source;
        script.addEventListener("load", () => resolve(window.Plotly));
        script.addEventListener("error", reject);
        document.head.append(script);
    });
    return loading;
}

function themed(layout) {
    const dark = document.documentElement.classList.contains("dark");
    const text = dark ? "#cbd5e1" : "#475569";
    const grid = dark ? "rgba(148, 163, 184, 0.18)" : "rgba(100, 116, 139, 0.18)";
    const axis = { gridcolor: grid, linecolor: grid, zerolinecolor: grid, automargin: true };
    return {
        ...layout,
        paper_bgcolor: "rgba(0, 0, 0, 0)",
        plot_bgcolor: "rgba(0, 0, 0, 0)",
        font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: text },
        xaxis: { ...layout.xaxis, ...axis },
        yaxis: { ...layout.yaxis, ...axis },
    };
}

const OF_VALUES = new Set([".3~f", ".2~f", "+.2~f"]); // formats of axes of measures and their differences

// Values have no zero before the point, as in tables, which Plotly's formats cannot say.
function shortenTicks(element) {
    for (const name of ["x", "y"]) {
        if (!OF_VALUES.has(element.layout[`${name}axis`]?.tickformat)) continue;
        for (const tick of element.querySelectorAll(`.${name}tick text`)) {
            tick.textContent = tick.textContent.replace(/^([+−-]?)0\./, "$1.");
        }
    }
}

export async function draw(element) {
    const figure = JSON.parse(document.getElementById(element.dataset.chart).textContent);
    element.style.minHeight = `${figure.layout.height}px`;
    const Plotly = await plotly();
    await Plotly.react(element, figure.data, themed(figure.layout), { displayModeBar: false, responsive: true });
    shortenTicks(element);
    if (element.dataset.linked) return;
    element.dataset.linked = "true";
    element.on("plotly_afterplot", () => shortenTicks(element));
    element.on("plotly_click", ({ points }) => {
        const { customdata, x, text } = points[0] ?? {};
        if (typeof customdata === "string") window.location.assign(customdata);
        else if (customdata) {
            const detail = { axis: x, setting: text, runs: customdata };
            document.dispatchEvent(new CustomEvent("benchbench:brush", { detail }));
        }
    });
}

const seen = new IntersectionObserver(
    (entries) => {
        for (const { isIntersecting, target } of entries) {
            if (!isIntersecting) continue;
            seen.unobserve(target);
            draw(target);
        }
    },
    { rootMargin: "300px" },
);

// Drawn charts are drawn again; the others wait until they are near.
function drawAll() {
    for (const element of document.querySelectorAll("[data-chart]")) {
        if (element.dataset.linked) draw(element);
        else seen.observe(element);
    }
}

drawAll();
document.addEventListener("benchbench:done", drawAll);
document.addEventListener("htmx:afterSettle", () => {
    for (const element of document.querySelectorAll("[data-chart]:not([data-linked])")) seen.observe(element);
});
new MutationObserver(drawAll).observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
