// What was typed into Try it is kept while its tab is open; whoever logs out leaves nothing of it.
document.addEventListener("DOMContentLoaded", () => {
    if (!document.getElementById("login-form")) return;
    for (const key of Object.keys(sessionStorage)) {
        if (key.startsWith("moonhook:")) sessionStorage.removeItem(key);
    }
});
