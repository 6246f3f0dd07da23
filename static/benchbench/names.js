// Names the controls that Django's, unfold's and django-rq's scripts and templates make without one, for screen readers.

function nameControls() {
    for (const box of document.querySelectorAll("#action-toggle:not([aria-label])"))
        box.setAttribute("aria-label", "Select all rows");
    for (const box of document.querySelectorAll(".action-select:not([aria-label])"))
        box.setAttribute("aria-label", "Select this row");
    for (const hint of document.querySelectorAll("span.help-tooltip[aria-label]:not([role])"))
        hint.setAttribute("role", "img");
    for (const box of document.querySelectorAll(".select2-selection:not([aria-label])")) {
        const label = box.closest(".select2").previousElementSibling?.labels?.[0];
        if (!label) continue;
        const name = label.textContent.replace("*", "").trim();
        box.setAttribute("aria-label", name);
        box.setAttribute("aria-describedby", box.getAttribute("aria-labelledby")); // what is chosen
        box.removeAttribute("aria-labelledby");
        box.querySelector(".select2-selection__rendered").setAttribute("aria-label", name);
    }
}

window.addEventListener("load", () => setTimeout(nameControls)); // once the others have made them
document.addEventListener("htmx:afterSettle", nameControls);
