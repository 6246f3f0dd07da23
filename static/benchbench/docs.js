// The theme that the reader chose in the admin, on the page that tries the API.
document.documentElement.lang = "en"; // for which the template has no block
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => {
    const chosen = JSON.parse(localStorage.getItem("_x_adminTheme") ?? '"auto"'); // as the admin keeps it
    document.documentElement.classList.toggle("dark-mode", chosen === "auto" ? dark.matches : chosen === "dark");
};
follow();
dark.addEventListener("change", follow);
