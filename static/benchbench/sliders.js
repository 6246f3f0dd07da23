// Shows the value of a slider next to it while it moves; the form is sent when it rests, and its fold stays as it was.

document.addEventListener("input", ({ target }) => {
    if (target.type === "range" && target.nextElementSibling) target.nextElementSibling.value = target.value;
});

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (!document.querySelector("#trial-options[open]")) return;
    detail.serverResponse = detail.serverResponse.replace('id="trial-options"', "$& open"); // before focus returns
});
