// Runs before the page is drawn, so that a chosen theme does not flash in late.
const theme = localStorage.getItem("queryard.theme");
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
