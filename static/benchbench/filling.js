/* A button with data-fill, a JSON object, writes its values into the fields of these names, as if they were typed. */
document.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-fill]");
    if (!button) return;
    const { elements } = button.closest("form");
    for (const [name, value] of Object.entries(JSON.parse(button.dataset.fill))) {
        const field = elements.namedItem(name);
        field.closest("details")?.setAttribute("open", "");
        field.value = value;
        for (const type of ["input", "change"]) field.dispatchEvent(new Event(type, { bubbles: true }));
    }
});
