// Shows the value of a slider next to it while it moves; the form is sent when it rests.

document.addEventListener("input", ({ target }) => {
    if (target.type === "range" && target.nextElementSibling) target.nextElementSibling.value = target.value;
});
