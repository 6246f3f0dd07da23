// Words typed above the choices of a filter leave those that contain them.

document.addEventListener("input", ({ target }) => {
    if (!target.matches(".bb-filters [type='search']")) return;
    const words = target.value.trim().toLowerCase();
    for (const chip of target.nextElementSibling.children)
        chip.hidden = !chip.textContent.toLowerCase().includes(words);
});
