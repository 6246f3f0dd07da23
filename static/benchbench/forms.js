/* A list with search reports its choice to jQuery alone: report it to the page, as a plain list does. */
window.django.jQuery(document).on("select2:select select2:unselect select2:clear", ({ target }) => {
    for (const type of ["input", "change"]) target.dispatchEvent(new Event(type, { bubbles: true }));
});
