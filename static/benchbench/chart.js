// Draws the figures that the server built: [data-chart] names the <script type="application/json"> that holds one.
// A point whose customdata is an address leads there. Plotly is large, so it is loaded when a figure comes near the window. Colours follow the theme of the page.

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

export async function draw(place) {
    const figure = JSON.parse(document.getElementById(place.dataset.chart).textContent);
    place.style.minHeight = `${figure.layout.height}px`;
    const Plotly = await plotly();
    await Plotly.react(place, figure.data, themed(figure.layout), { displayModeBar: false, responsive: true });
    if (place.dataset.linked) return;
    place.dataset.linked = "true";
    place.on("plotly_click", ({ points }) => {
        if (typeof points[0]?.customdata === "string") window.location.assign(points[0].customdata);
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

// What was drawn is drawn anew; the rest waits until it is near.
function drawAll() {
    for (const place of document.querySelectorAll("[data-chart]")) place.dataset.linked ? draw(place) : seen.observe(place);
}

drawAll();
document.addEventListener("benchbench:done", drawAll);
document.addEventListener("htmx:afterSettle", () => {
    for (const place of document.querySelectorAll("[data-chart]:not([data-linked])")) seen.observe(place);
});
new MutationObserver(drawAll).observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
