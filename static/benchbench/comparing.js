// Lets the ticked runs of a leaderboard be compared once they are as many as a comparison takes.

function allow() {
    const button = document.querySelector("[data-fewest]");
    if (!button) return;
    const ticked = document.querySelectorAll(`input[name=run][form=${button.form.id}]:checked`);
    button.disabled = ticked.length < Number(button.dataset.fewest);
}

allow();
document.addEventListener("change", allow);
document.addEventListener("htmx:afterSettle", allow); // the table is rendered again
window.addEventListener("pageshow", allow); // ticks that the browser kept
