// Try it keeps its input in the tab's session storage; the login page clears it after a logout.
document.addEventListener("DOMContentLoaded", () => {
    if (!document.getElementById("login-form")) return;
    for (const key of Object.keys(sessionStorage)) {
        if (key.startsWith("moonhook:")) sessionStorage.removeItem(key);
    }
});
