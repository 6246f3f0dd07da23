// Keys of the form of one pair: a digit presses the button of its grade, F opens the full text, N leads to the note.

const SETTING = "benchbench.judging.keys";
const switchKeys = () => document.getElementById("judging-keys");

const restore = () => {
    if (switchKeys()) switchKeys().checked = localStorage.getItem(SETTING) !== "off";
};
restore();
document.addEventListener("htmx:load", restore);
document.addEventListener("change", (event) => {
    if (event.target === switchKeys()) localStorage.setItem(SETTING, event.target.checked ? "on" : "off");
});

document.addEventListener("keydown", (event) => {
    const form = document.getElementById("judging");
    if (!form || event.ctrlKey || event.metaKey || event.altKey || event.repeat || !switchKeys().checked) return;
    if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) {
        if (event.key === "Escape") event.target.blur();
        return;
    }
    const full = form.querySelector(".bb-full");
    if (/^[0-9]$/.test(event.key)) form.querySelector(`button[name=grade][value="${event.key}"]`)?.click();
    else if (event.key.toLowerCase() === "f" && full) full.open = !full.open;
    else if (event.key.toLowerCase() === "n") {
        event.preventDefault();
        form.querySelector("[name=note]").focus();
    }
});
